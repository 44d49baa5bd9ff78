"""Every field of a policy changes what really happens; a field that nothing proves fails here."""

from __future__ import annotations

import os
import pwd
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from support.network import ProxyOutside, answer_http, listening
from support.running import made_manager
from support.warm_runs import can_have_spares, wait_for_spare

from skillkit import (
    ApprovalUnavailableError,
    InterpreterNotAllowedError,
    Limits,
    SandboxUnavailableError,
    ScriptExecutionResult,
    ScriptPolicy,
    ScriptRefusedError,
    ToolRestrictionError,
)
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.warm.spares import spares
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover

OPEN = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
Proof = Callable[[Path, pytest.MonkeyPatch], None]
WARM_POLICY = ScriptPolicy(allow_scripts=True, approval="never", sandbox="preferred", warm="auto")
PROOFS: dict[str, Proof] = {}


def proves(name: str) -> Callable[[Proof], Proof]:
    """Notes that a function shows, by running scripts, what the field or limit of this name does."""

    def noted(proof: Proof) -> Proof:
        PROOFS[name] = proof
        return proof

    return noted


def ran(folder: Path, script: str, policy: ScriptPolicy, *argv: str, **settings: Any) -> ScriptExecutionResult:
    tools = settings.pop("tools", "")
    frontmatter = f"name: demo\ndescription: A demo.\n{tools}"
    with made_manager(
        folder, {"scripts/run.sh": script}, policy=policy, frontmatter=frontmatter, **settings
    ) as manager:
        return manager.execute_skill_script("demo", "run", argv=argv)


def output(folder: Path, script: str, policy: ScriptPolicy, *argv: str, **settings: Any) -> str:
    return ran(folder, script, policy, *argv, **settings).stdout.strip()


@proves("allow_scripts")
def scripts(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert output(folder, "echo ran", OPEN) == "ran"
    with pytest.raises(ScriptRefusedError, match="allow_scripts"):
        ran(folder, "echo ran", replace(OPEN, allow_scripts=False))


@proves("allow_network")
def network(folder: Path, _: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"(exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}) 2>/dev/null && echo connected"
        assert output(folder, script, OPEN) == ""
        assert output(folder, script, replace(OPEN, allow_network=True)) == "connected"


@proves("allowed_hosts")
def hosts(folder: Path, patch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    script = "curl -s http://api.example.com/x"
    with listening(answer_http(seen)) as host, listening(ProxyOutside({"api.example.com:80": host})) as port:
        patch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        assert output(folder, script, OPEN) == ""
        assert output(folder, script, replace(OPEN, allowed_hosts=("api.example.com",))) == "hello"
        assert output(folder, script, replace(OPEN, allowed_hosts=("other.example.com",))) != "hello"


@contextmanager
def users_folder() -> Iterator[Path]:
    """A folder among users' files, which temporary ones are not; removed afterwards."""
    places = ("/srv", pwd.getpwuid(os.getuid()).pw_dir, os.getcwd())
    usable = [place for place in places if os.access(place, os.W_OK) and not place.startswith(("/tmp", "/var/"))]
    if not usable:
        pytest.skip(f"no writable folder outside the temporary ones; tried {', '.join(places)}")
    with tempfile.TemporaryDirectory(prefix="skillkit-proof-", dir=usable[0]) as folder:
        yield Path(folder)


@proves("allow_filesystem")
def filesystem(folder: Path, _: pytest.MonkeyPatch) -> None:
    with users_folder() as users:
        (users / "diary").write_text("private")
        script = f'cat "{users}/diary"; echo made > "{users}/file"'
        assert output(folder, script, OPEN) == ""
        assert not (users / "file").exists()
        assert output(folder, script, replace(OPEN, allow_filesystem=True)) == "private"
        assert (users / "file").read_text() == "made\n"


@proves("timeout_seconds")
def timeout(folder: Path, _: pytest.MonkeyPatch) -> None:
    result = ran(folder, "sleep 20", replace(OPEN, timeout_seconds=1))
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert not ran(folder, "sleep 1.2", OPEN).timed_out


@proves("allowed_commands")
def commands(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert output(folder, "echo ran", replace(OPEN, allowed_commands=("git", "demo:scripts/*"))) == "ran"
    with pytest.raises(ScriptRefusedError, match="allowed_commands"):
        ran(folder, "echo ran", replace(OPEN, allowed_commands=("scripts/other.sh",)))


@proves("allowed_interpreters")
def interpreters(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert output(folder, "echo ran", replace(OPEN, allowed_interpreters=("bash",))) == "ran"
    with pytest.raises(InterpreterNotAllowedError, match="bash"):
        ran(folder, "echo ran", replace(OPEN, allowed_interpreters=("python3",)))


@proves("allowed_tools_mode")
def tools(folder: Path, _: pytest.MonkeyPatch) -> None:
    listed = {"tools": "allowed-tools: Read\n"}
    assert output(folder, "echo ran", replace(OPEN, allowed_tools_mode="ignore"), **listed) == "ran"
    with pytest.raises(ToolRestrictionError, match="Allowed tools: Read"):
        ran(folder, "echo ran", replace(OPEN, allowed_tools_mode="restrict"), **listed)
    with pytest.raises(ApprovalUnavailableError, match="allowed-tools"):
        ran(folder, "echo ran", replace(OPEN, allowed_tools_mode="grant"), **listed)
    fitting = {"tools": "allowed-tools: Bash(bash scripts/run.sh:*)\n"}
    assert output(folder, "echo ran", replace(OPEN, allowed_tools_mode="grant"), **fitting) == "ran"


@proves("approval")
def approval(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert output(folder, "echo ran", replace(OPEN, approval="never")) == "ran"
    for value in ("first_run", "always"):
        with pytest.raises(ApprovalUnavailableError, match="a person"):
            ran(folder, "echo ran", replace(OPEN, approval=value))


@proves("run_on_load")
def run_on_load(folder: Path, _: pytest.MonkeyPatch) -> None:
    def loaded(value: str) -> str:
        policy = replace(OPEN, run_on_load=value)
        text = "Run `scripts/run.sh`.\n"
        frontmatter = "name: demo\ndescription: A demo.\n"
        files = {"scripts/run.sh": "echo ran", "SKILL.md": f"---\n{frontmatter}---\n{text}"}
        with made_manager(folder, files, policy=policy) as manager:
            functions = SkillFunctions(manager, approver=ScriptedApprover("yes_once"))
            return functions.load_skill("demo").content

    assert 'status="ok"' in loaded("ask")
    for value in ("trusted", "never"):
        assert 'status="refused"' in loaded(value)


@proves("working_directory")
def working_directory(folder: Path, _: pytest.MonkeyPatch) -> None:
    workspace = folder / "work"
    workspace.mkdir()
    assert output(folder, "pwd -P", OPEN, workspace=workspace) == os.path.realpath(folder / "skills/demo")
    elsewhere = replace(OPEN, working_directory="workspace")
    assert output(folder, "pwd -P", elsewhere, workspace=workspace) == os.path.realpath(workspace)


@proves("pass_environment")
def passed_environment(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("FAVOURITE", "blue")
    assert output(folder, "echo $FAVOURITE", OPEN) == ""
    assert output(folder, "echo $FAVOURITE", replace(OPEN, pass_environment=("FAVOURITE",))) == "blue"


@proves("inherit_environment")
def inherited_environment(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("FAVOURITE", "blue")
    assert output(folder, "echo $FAVOURITE", replace(OPEN, inherit_environment=True)) == "blue"


@proves("readable_paths")
def readable(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder / "data").write_text("data")
    script = f'cat "{folder}/data" 2>/dev/null; echo more >> "{folder}/data"'
    assert output(folder, script, OPEN) == ""
    assert output(folder, script, replace(OPEN, readable_paths=(folder / "data",))) == "data"
    assert (folder / "data").read_text() == "data"


@proves("writable_paths")
def writable(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder / "data").mkdir()
    script = f'echo made > "{folder}/data/file"'
    ran(folder, script, OPEN)
    assert not (folder / "data/file").exists()
    ran(folder, script, replace(OPEN, writable_paths=(folder / "data",)))
    assert (folder / "data/file").read_text() == "made\n"


@proves("grant_argument_paths")
def argument_paths(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder / "data").write_text("data")
    script, path = 'cat "$1" 2>/dev/null', str(folder / "data")
    assert output(folder, script, OPEN, path) == "data"
    assert output(folder, script, replace(OPEN, grant_argument_paths=False), path) == ""


@proves("home")
def home(folder: Path, _: pytest.MonkeyPatch) -> None:
    script = "echo x >> ~/kept; wc -l < ~/kept"
    assert [output(folder, script, replace(OPEN, home="kept")) for _ in range(2)] == ["1", "2"]
    assert [output(folder, script, replace(OPEN, home="fresh")) for _ in range(2)] == ["1", "1"]


@proves("grantable")
def grantable(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("TEAM", "blue")
    script = 'echo "$TEAM"'
    same = "name: demo\ndescription: A demo.\n"
    with made_manager(folder, {"scripts/run.sh": script}, frontmatter=same) as manager:
        manager.grant("demo", variables=["TEAM"])
    assert output(folder, script, OPEN) == ""
    assert output(folder, script, replace(OPEN, grantable=("variable",))) == "blue"


@proves("sandbox")
def sandbox(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "data").write_text("data")
    script = f'cat "{folder}/data" 2>/dev/null'
    for value in ("required", "preferred"):
        assert output(folder, script, replace(OPEN, sandbox=value)) == ""
    assert output(folder, script, replace(OPEN, sandbox="off")) == "data"
    patch.setattr(tiers, "this_machines", Choice({}))
    assert output(folder, script, replace(OPEN, sandbox="preferred")) == "data"
    with pytest.raises(SandboxUnavailableError):
        ran(folder, script, OPEN)


@proves("limits")
def limits(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Each of them by a proof of its own; where no walls keep them, nothing starts."""
    assert {f"limits.{each.name}" for each in fields(Limits)} <= PROOFS.keys()
    with pytest.raises(SandboxUnavailableError, match="limits"):
        ran(folder, "echo ran", replace(OPEN, sandbox="off", limits=Limits(processes=8)))


def limited(**values: int) -> ScriptPolicy:
    return replace(OPEN, limits=replace(Limits(), **values))


@proves("limits.data_megabytes")
def data(folder: Path, _: pytest.MonkeyPatch) -> None:
    script = "python3 -c 'bytearray(300 << 20); print(1)' 2>/dev/null"
    assert output(folder, script, limited(data_megabytes=1024)) == "1"
    assert output(folder, script, limited(data_megabytes=200)) == ""


@proves("limits.file_megabytes")
def file_size(folder: Path, _: pytest.MonkeyPatch) -> None:
    script = "cd $SKILL_WORK_DIR; (head -c 3000000 /dev/zero > big) 2>/dev/null; stat -c %s big"
    assert output(folder, script, limited(file_megabytes=4)) == "3000000"
    assert output(folder, script, limited(file_megabytes=1)) == str(1 << 20)


@proves("limits.processes")
def processes(folder: Path, _: pytest.MonkeyPatch) -> None:
    """The kernel does not count root's processes; the result of such a run says so."""
    script = "for i in $(seq 12); do sleep 5 & done 2>/dev/null; jobs -p | wc -l"
    assert output(folder, script, limited(processes=64)) == "12"
    result = ran(folder, script, limited(processes=6))
    if os.geteuid() == 0:
        assert any("of processes" in each for each in result.isolation.degraded)
    else:
        assert result.stdout.strip() != "12"


@proves("limits.open_files")
def open_files(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert output(folder, "ulimit -n", limited(open_files=100)) == "100"
    assert output(folder, "ulimit -n", limited(open_files=50)) == "50"


@proves("limits.temporary_megabytes")
def temporary(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Walls with mounts keep the sum; others say that they do not."""
    script = "for i in 1 2 3; do head -c 1000000 /dev/zero > /tmp/$i; done 2>/dev/null; cat /tmp/[123] | wc -c"
    result = ran(folder, script, limited(temporary_megabytes=2))
    if result.isolation.tier == "bubblewrap":
        assert int(result.stdout) <= 2 << 20
        assert output(folder, script, limited(temporary_megabytes=8)) == "3000000"
    else:
        assert any("temporary" in each for each in result.isolation.degraded)


@proves("limits.home_megabytes")
def home_size(folder: Path, _: pytest.MonkeyPatch) -> None:
    script = "head -c 3000000 /dev/urandom > ~/big; echo $?"
    assert output(folder, script, replace(limited(home_megabytes=8), home="kept")) == "0"
    assert "limits.home_megabytes" in ran(folder, script, replace(limited(home_megabytes=2), home="kept")).hint


@proves("warm")
def warm(folder: Path, _: pytest.MonkeyPatch) -> None:
    assert starts(folder, WARM_POLICY) == ["cold", "warm" if can_have_spares() else "cold"]
    assert starts(folder, replace(WARM_POLICY, warm="off")) == ["cold", "cold"]


@proves("limits.warm_sandboxes")
def warm_sandboxes(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Two scripts in turn; where there is room for one only, who ran last has it."""
    assert waiting(folder, WARM_POLICY) == 2 * can_have_spares()
    assert waiting(folder, replace(WARM_POLICY, limits=Limits(warm_sandboxes=1))) == 1 * can_have_spares()


@proves("limits.warm_megabytes")
def warm_megabytes(folder: Path, _: pytest.MonkeyPatch) -> None:
    """One needs more than this, so that none stays."""
    assert starts(folder, replace(WARM_POLICY, limits=Limits(warm_megabytes=1))) == ["cold", "cold"]


def starts(folder: Path, policy: ScriptPolicy) -> list[str]:
    """How two runs of one script began, with time enough between them."""
    with made_manager(folder, {"scripts/run.py": "import json\n"}, policy=policy) as manager:
        first = manager.execute_skill_script("demo", "run")
        wait_for_spare(3.0 if policy.limits.warm_megabytes == 1 or policy.warm == "off" else 20.0 * can_have_spares())
        return [first.isolation.start, manager.execute_skill_script("demo", "run").isolation.start]


def waiting(folder: Path, policy: ScriptPolicy) -> int:
    with made_manager(folder, {"scripts/a.py": "", "scripts/b.py": ""}, policy=policy) as manager:
        for name in ("a", "b", "a", "b"):
            manager.execute_skill_script("demo", name)
        wait_for_spare(20.0 * can_have_spares(), count=policy.limits.warm_sandboxes)
        return spares.count()


def test_every_field_has_a_proof() -> None:
    names = [each.name for each in fields(ScriptPolicy)] + [f"limits.{each.name}" for each in fields(Limits)]
    assert sorted(PROOFS) == sorted(names)


@pytest.mark.parametrize("name", PROOFS)
def test_a_field_is_enforced(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PROOFS[name](tmp_path, monkeypatch)
