"""The Landlock tier with real processes: what a script inside can reach and what it cannot."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.landlock_runs import NEEDS_LANDLOCK, PYTHON, Place, name_of, place, users

from skillkit.core.run.sandbox import landlock
from skillkit.core.values.policy import Limits

pytestmark = NEEDS_LANDLOCK
VERSIONS = [version for version in (1, 2, 3, 4, 5, 6, 7) if version <= landlock.abi()]

ACCESS = """
import errno, json, os, sys
found = {}
for name in sys.argv[1:]:
    kind, _, path = name.partition(":")
    try:
        if kind == "read": open(path).read()
        elif kind == "list": os.listdir(path)
        elif kind == "write": open(path, "a").write("more")
        elif kind == "empty": os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))
        elif kind == "cut": os.truncate(path, 0)
        elif kind == "make": os.mkdir(path)
        elif kind == "remove": os.unlink(path)
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
    else:
        found[name] = "done"
print(json.dumps(found))
"""

HOG = """
kept = []
try:
    for _ in range(64):
        kept.append(bytearray(16 << 20))
except MemoryError:
    print(len(kept) < 20)
"""


@pytest.fixture(params=users(), ids=name_of)
def here(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place(user=request.param) as made:
        yield made


def accesses(here: Place, *names: str, version: int | None = None, **changes: Any) -> dict[str, str]:
    ended = here.run(PYTHON, "-I", "-c", ACCESS, *names, version=version, **changes)
    assert (ended.returncode, ended.stderr) == (0, "")
    found: dict[str, str] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_keeps_files_out_of_reach(here: Place, version: int) -> None:
    """A ruleset as for an older kernel, on this one: rights it does not know are guarded by the filter."""
    secret, own = here.file("outside/secret"), here.file("skill/data.txt")
    found = accesses(
        here,
        *(f"{kind}:{secret}" for kind in ("read", "write", "empty", "cut", "remove")),
        *(f"{kind}:{own}" for kind in ("read", "write", "empty", "cut", "remove")),
        *(f"{kind}:{here.outside}" for kind in ("list", "make")),
        f"make:{here.skill}/new",
        f"make:{here.work}/new",
        f"write:{here.work}/file",
        version=version,
    )
    done = {name for name, answer in found.items() if answer == "done"}
    assert done == {f"read:{own}", f"make:{here.work}/new", f"write:{here.work}/file"}
    assert (secret.read_text(), own.read_text()) == ("secret\n", "secret\n")
    assert sorted(path.name for path in here.outside.iterdir()) == ["secret"]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_runs_python_and_a_shell(here: Place, version: int) -> None:
    ended = here.run("/bin/bash", "-c", f"echo one | cat; {PYTHON} -c 'print(2)'; exit 3", version=version)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("one\n2\n", "", 3)


def test_a_file_can_move_between_folders_of_the_work_folder(here: Place) -> None:
    if landlock.abi() < 2:
        pytest.skip("this kernel cannot allow it")
    ended = here.run("/bin/bash", "-c", f"cd {here.work} && mkdir a b && echo x > a/f && mv a/f b/f && cat b/f")
    assert (ended.stdout, ended.stderr) == ("x\n", "")


def test_home_and_temporary_files_are_private_and_writable(here: Place) -> None:
    ended = here.run("/bin/bash", "-c", "echo $HOME $TMPDIR; echo x > ~/f; mktemp > /dev/null; stat -c %a ~ $TMPDIR")
    assert ended.stdout == f"{here.work}/.home {here.work}/.tmp\n700\n700\n"
    assert sorted(path.name for path in here.work.iterdir()) == [".home", ".tmp"]


def test_a_link_in_the_place_of_a_private_folder_stops_the_run(here: Place) -> None:
    (here.work / ".home").symlink_to(here.outside)
    ended = here.run("/bin/true")
    assert (ended.returncode, ended.stderr) == (125, "skillkit-walls: folders: EEXIST\n")


def test_paths_are_readable_and_writable_as_the_walls_say(here: Place) -> None:
    one, two = here.file("outside/one"), here.file("outside/two")
    folder = here.folder("outside/folder")
    found = accesses(
        here,
        *(f"{kind}:{path}" for path in (one, two) for kind in ("read", "write")),
        f"make:{folder}/new",
        readable=(str(one), str(here.root / "missing")),
        writable=(str(two), str(folder)),
    )
    assert found == {
        f"read:{one}": "done",
        f"write:{one}": "EACCES",
        f"read:{two}": "done",
        f"write:{two}": "done",
        f"make:{folder}/new": "done",
    }


def workspace(here: Place) -> tuple[str, tuple[str, ...]]:
    for name in ("project", "project/.git", "project/.git/hooks", "project/src", "project/src/.claude"):
        here.folder(name)
    for name in ("README", ".git/config", "src/code", "src/.claude/rules", "skillkit.toml"):
        here.file(f"project/{name}")
    project = str(here.root / "project")
    return project, tuple(f"{project}/{name}" for name in (".git", "skillkit.toml", "src/.claude", ".agents"))


def test_in_a_workspace_all_but_the_protected_entries_can_be_changed(here: Place) -> None:
    project, protected = workspace(here)
    writes = [f"write:{project}/{name}" for name in ("README", "src/code")]
    refused = [f"write:{project}/{name}" for name in (".git/config", "src/.claude/rules", "skillkit.toml")]
    refused += [f"make:{project}/{name}" for name in (".agents", ".git/new", "src/.claude/new")]
    refused += [f"remove:{project}/{name}" for name in (".git/config", "skillkit.toml")]
    reads = [f"read:{project}/{name}" for name in (".git/config", "src/.claude/rules", "README")]
    found = accesses(here, *writes, *refused, *reads, workspace=project, protected=protected)
    assert {name for name, answer in found.items() if answer == "done"} == {*writes, *reads}
    assert not (Path(project) / ".agents").exists()


def test_a_workspace_without_protected_entries_is_writable_as_a_whole(here: Place) -> None:
    project, _ = workspace(here)
    found = accesses(here, f"make:{project}/new", f"write:{project}/.git/config", workspace=project)
    assert set(found.values()) == {"done"}


def test_a_link_in_the_workspace_opens_nothing_outside(here: Place) -> None:
    project, protected = workspace(here)
    secret = here.file("outside/secret")
    os.symlink(here.outside, f"{project}/way-out")
    found = accesses(here, f"write:{project}/way-out/secret", f"write:{secret}", workspace=project, protected=protected)
    assert set(found.values()) == {"EACCES"}
    assert secret.read_text() == "secret\n"


def test_a_workspace_that_is_gone_stops_the_run(here: Place) -> None:
    ended = here.run("/bin/true", workspace=str(here.root / "gone"))
    assert (ended.returncode, ended.stderr) == (125, "skillkit-walls: landlock: ENOENT\n")


def test_with_the_users_files_all_but_skill_protected_and_system_can_be_changed(here: Place) -> None:
    theirs, own, kept = here.file("outside/theirs"), here.file("skill/data"), here.folder("outside/kept")
    record = here.file("outside/kept/record")
    found = accesses(
        here,
        *(f"{kind}:{path}" for path in (theirs, own, record) for kind in ("read", "write")),
        "list:/run",
        "list:/sys",
        "list:/dev",
        filesystem=True,
        protected=(str(kept),),
    )
    assert {name for name, answer in found.items() if answer != "done"} == {
        f"write:{own}",
        f"write:{record}",
        "list:/run",
        "list:/sys",
        "list:/dev",
    }


def test_the_snapshot_is_readable_and_the_folder_is_not(here: Place) -> None:
    snapshot = here.folder("snapshot")
    hashed, changed = here.file("snapshot/run.sh", "echo hashed"), here.file("skill/run.sh", "echo changed")
    assert here.run("/bin/bash", str(hashed), snapshot=str(snapshot)).stdout == "hashed\n"
    assert here.run("/bin/bash", str(changed), snapshot=str(snapshot)).stdout == ""


def test_limits_hold_inside(here: Place) -> None:
    limits = Limits(data_megabytes=300, file_megabytes=2, processes=40, open_files=50)
    ended = here.run("/bin/bash", "-c", "ulimit -d; ulimit -f; ulimit -n; ulimit -c; ulimit -t", limits=limits)
    assert ended.stdout.split() == [str(300 * 1024), "2048", "50", "0", "35"]
    assert here.run(PYTHON, "-I", "-c", HOG, limits=limits).stdout == "True\n"
    big = here.run("/bin/bash", "-c", f"head -c 5000000 /dev/zero > {here.work}/big", limits=limits)
    assert big.returncode == 153 or "too large" in big.stderr
    assert (here.work / "big").stat().st_size == 2 << 20


def test_a_limit_is_never_raised_above_the_callers_own(here: Place) -> None:
    _, ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)
    ended = here.run("/bin/bash", "-c", "ulimit -Hn; ulimit -Sn", limits=Limits(open_files=100_000_000))
    assert ended.stdout.split() == [str(ceiling)] * 2


def test_the_report_is_what_a_process_inside_says_of_itself(here: Place) -> None:
    ended = here.run("/bin/cat", "/proc/self/status")
    status = dict(line.split(":\t", 1) for line in ended.stdout.splitlines() if ":\t" in line)
    wanted = ("NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapAmb")
    assert [status[name].strip() for name in wanted] == ["1", "2", *["0" * 16] * 4]


def test_the_environment_arrives_as_it_was_given(here: Place) -> None:
    """Python, which runs the keeper, would add its own LC_CTYPE where no language is set."""
    confined = here.confined(("/usr/bin/env",))
    environment = {"PATH": "/usr/bin", "ODD": "a=b\n\udcff", "EMPTY": ""}
    with here.started(confined._replace(environment=environment)) as process:
        out, err = process.communicate(timeout=60)
    assert (out.decode(errors="surrogateescape"), err) == ("PATH=/usr/bin\nODD=a=b\n\udcff\nEMPTY=\n", b"")


def test_arguments_arrive_as_they_were_given(here: Place) -> None:
    arguments = ("", "--", "a b", "$HOME", "\udcff\u20ac", "{descriptor 7}")
    ended = here.confined(("/usr/bin/printf", "%s|", *arguments))
    with here.started(ended) as process:
        out, _ = process.communicate(timeout=60)
    assert out.decode(errors="surrogateescape") == "".join(f"{each}|" for each in arguments)
