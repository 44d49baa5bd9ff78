"""A path that was judged is swapped before the walls stand; whoever swaps it, the script gets what was judged or nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.running import made_manager, wait_for

from skillkit import (
    STANDARD,
    TRUSTED,
    ConfigurationError,
    SandboxUnavailableError,
    ScriptPolicy,
    SkillKitError,
    SkillManager,
)
from skillkit.core.resolve import CallArguments
from skillkit.core.run.process import run_confined
from skillkit.core.run.reach import reach_of
from skillkit.core.run.sandbox.base import Reach
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.values.runs import ScriptCommand

WALLS = replace(STANDARD, sandbox="required")
KEY = "a private key"
READ = 'cat "$1" "$1/data" 2>/dev/null; echo; echo read\n'
# Exchanges two names as fast as it can; a walled script that may write the folder they are in.
SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
one, other, target, folder = (each.encode() for each in sys.argv[1:])
swaps = 0
open(os.path.join(folder, b"swapping"), "w").close()
while not os.path.exists(os.path.join(folder, b"stop")):
    for _ in range(50):
        swaps += libc.renameat2(-100, one, -100, other, 2) == 0
        if target:
            try:
                os.link(target, other + b".linked"); os.rename(other + b".linked", other)
            except OSError:
                pass
print(swaps)
"""


@dataclass(frozen=True)
class Swap:
    """What a call names, and the two names that change places; all below the folder that the swapper may write."""

    named: str
    one: str
    other: str
    leads_to: str = ""
    """Where the second leads: a link. Without it, a file that a hard link to the key may replace."""


SWAPS = {
    "a file and a link": Swap("data", "data", "trap", ".ssh/data"),
    "a folder and a link": Swap("folder", "folder", "trap", ".ssh"),
    "the folder above": Swap("folder/data", "folder", "trap", ".ssh"),
    "a folder on the way": Swap("one/two/three/data", "one/two", "one/trap", "deep"),
    "a file and a further name of the key": Swap("data", "data", "plain"),
}


def laid_out(folder: Path, home: Path, swap: Swap) -> Path:
    """A folder with good data in every form, the trap beside it, and keys where nobody grants anything."""
    shared = folder / "shared"
    for good in ("data", "folder/data", "one/two/three/data", "plain"):
        (shared / good).parent.mkdir(parents=True, exist_ok=True)
        (shared / good).write_text("good")
    for bad in (".ssh/data", ".ssh/three/data"):
        (home / bad).parent.mkdir(parents=True, exist_ok=True)
        (home / bad).write_text(KEY)
    (home / "deep").symlink_to(".ssh")
    if swap.leads_to:
        # Relative: the walls' own program looks names up from a root of its own.
        (shared / swap.other).symlink_to(os.path.relpath(home / swap.leads_to, (shared / swap.other).parent))
    return shared


@contextmanager
def swapping(folder: Path, home: Path, shared: Path, swap: Swap, policy: ScriptPolicy) -> Iterator[Callable[[], int]]:
    """A second script that swaps all the while; gives how often it has, once it is over."""
    target = "" if swap.leads_to else str(home / ".ssh/data")
    words = [str(shared / swap.one), str(shared / swap.other), target, str(shared)]
    said: list[str] = []
    place = folder / "second"
    with made_manager(place, {"scripts/swap.py": SWAP}, policy=policy, workspace=shared) as manager:
        run = threading.Thread(
            target=lambda: said.append(manager.execute_skill_script("demo", "swap", argv=words, timeout=60).stdout)
        )
        run.start()
        try:
            assert wait_for((shared / "swapping").exists)
            yield lambda: int(said[0])
        finally:
            (shared / "stop").touch()
            run.join()


def read_plainly(path: Path, home: Path) -> str:
    """Looked at by name, then opened by name."""
    with suppress(OSError):  # gone at that moment
        if not Path(os.path.realpath(path)).is_relative_to(home):
            return (path / "data" if path.is_dir() else path).read_text()
    return ""


@pytest.mark.parametrize("name", SWAPS)
def test_control_who_looks_by_name_and_opens_by_name_loses(tmp_path: Path, private_home: Path, name: str) -> None:
    swap = SWAPS[name]
    shared = laid_out(tmp_path, private_home, swap)
    with swapping(tmp_path, private_home, shared, swap, TRUSTED):
        assert wait_for(lambda: KEY in read_plainly(shared / swap.named, private_home), seconds=60)


@pytest.mark.parametrize("name", SWAPS)
@pytest.mark.usefixtures("tier")
def test_a_script_that_swaps_an_argument_all_the_while_wins_nothing(
    tmp_path: Path, private_home: Path, name: str
) -> None:
    swap = SWAPS[name]
    shared = laid_out(tmp_path, private_home, swap)
    seen = ""
    with made_manager(tmp_path, {"scripts/read.sh": READ}, policy=WALLS) as manager:
        with swapping(tmp_path, private_home, shared, swap, WALLS) as swaps:
            for _ in range(15):
                with suppress(SkillKitError):
                    seen += manager.execute_skill_script("demo", "read", argv=[str(shared / swap.named)]).stdout
        assert swaps() > 100
    assert KEY not in seen
    assert "read" in seen


# Between the plan of the walls and the walls: what stands in for the judged thing, and by what name it is read.
@dataclass(frozen=True)
class Replaced:
    policy: dict[str, object]
    named: str
    replaced: str
    read: str
    workspace: str | None = None
    argv: tuple[str, ...] = ()


REPLACED = {
    "an argument": Replaced({}, "data", "shared/data", "shared/data", argv=("shared/data",)),
    "a folder above an argument": Replaced({}, "", "shared/folder", "shared/folder/data", argv=("shared/folder/data",)),
    "a readable path": Replaced({"readable_paths": ("shared/folder",)}, "", "shared/folder", "shared/folder/data"),
    "a writable path": Replaced({"writable_paths": ("shared/folder",)}, "", "shared/folder", "shared/folder/data"),
    "the workspace": Replaced({}, "", "shared/folder", "shared/folder/data", workspace="shared/folder"),
    "a folder above the workspace": Replaced(
        {}, "", "shared/one", "shared/one/three/data", workspace="shared/one/three"
    ),
    "the work folder": Replaced({}, "", "work", "work/data"),
    "the skill": Replaced({}, "", "skills/demo", "skills/demo/data"),
}


def planned(folder: Path, case: Replaced) -> tuple[ScriptCommand, ScriptPolicy, Reach]:
    """The walls of a run of `cat`, as they are planned before anything is replaced."""
    paths = {key: tuple(folder / each for each in value) for key, value in case.policy.items()}  # type: ignore[attr-defined]
    policy = replace(WALLS, **paths)  # type: ignore[arg-type]  # lists of paths
    (folder / "work").mkdir()
    (folder / "shared/one/three").mkdir(exist_ok=True)
    with made_manager(folder, {"scripts/read.sh": "echo\n"}, policy=policy) as manager:
        workspace = folder / case.workspace if case.workspace else None
        argv = tuple(str(folder / each) for each in case.argv)
        call = CallArguments("read", argv=argv, workspace=workspace)
        command = manager.flow.prepare(manager.load_skill("demo"), call).command
    assert command is not None
    walls = reach_of(command, policy, work=folder / "work", snapshot=None, state_folder=folder / "state")
    return command, policy, walls


def said_inside(folder: Path, case: Replaced, policy: ScriptPolicy, walls: Reach, *, is_by_name: bool = False) -> str:
    """With `is_by_name` as an older bubblewrap does it, which takes no descriptors."""
    words = ("/bin/cat", str(folder / case.read))
    sandbox = sandbox_for(policy)
    if isinstance(sandbox, BubblewrapSandbox):
        sandbox = replace(sandbox, has_bind_fd=sandbox.has_bind_fd and not is_by_name)
    confined = sandbox.confine(words, "/", {"PATH": os.defpath}, walls)
    try:
        ended = run_confined(confined, stdin=b"", timeout=30, output_limit=10_000)
    except SandboxUnavailableError as error:
        return f"skillkit-walls: {error}"
    return f"{ended.status} {ended.stdout.decode()} {ended.stderr.decode()}"


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.usefixtures("tier")
def test_what_takes_the_place_of_a_judged_thing_before_the_walls_stand_is_not_shown(
    tmp_path: Path, private_home: Path, name: str
) -> None:
    case = REPLACED[name]
    laid_out(tmp_path, private_home, SWAPS["a folder and a link"])
    _, policy, walls = planned(tmp_path, case)
    place = tmp_path / case.replaced
    place.rename(f"{place}-before")
    target = private_home / (".ssh/data" if case.read == case.replaced else ".ssh")
    place.symlink_to(os.path.relpath(target, place.parent))
    assert KEY in said_inside(tmp_path, case, policy, replace(walls, identities={}))
    said = [said_inside(tmp_path, case, policy, walls, is_by_name=each) for each in (False, True)]
    assert not any(KEY in each for each in said)
    assert all("skillkit-walls" in each for each in said)
    place.unlink()
    Path(f"{place}-before").rename(place)
    assert "skillkit-walls" not in said_inside(tmp_path, case, policy, walls)
    assert "skillkit-walls" not in said_inside(tmp_path, case, policy, walls, is_by_name=True)


# Between the question and the answer, which may be days.
@pytest.mark.usefixtures("tier")
def test_a_workspace_that_became_a_link_before_the_run_is_refused(tmp_path: Path, private_home: Path) -> None:
    shared = laid_out(tmp_path, private_home, SWAPS["a folder and a link"])
    with made_manager(tmp_path, {"scripts/read.sh": READ}, policy=WALLS) as manager:
        call = CallArguments("read", argv=(str(shared / "folder"),), workspace=shared / "folder")
        prepared = manager.flow.prepare(manager.load_skill("demo"), call)
        (shared / "folder").rename(shared / "before")
        (shared / "folder").symlink_to(private_home / ".ssh")
        with pytest.raises(
            ConfigurationError, match=r"workspace: .*folder was replaced since it was named and leads to .*\.ssh now"
        ):
            manager.flow.complete(prepared)


def said_by_reader(manager: SkillManager, path: Path) -> str:
    return manager.execute_skill_script("demo", "read", argv=[str(path)]).stdout


@pytest.mark.parametrize("key", ["readable_paths", "writable_paths"])
@pytest.mark.parametrize("target", [".ssh", "diary"])
@pytest.mark.usefixtures("tier")
def test_a_path_of_the_policy_that_a_script_makes_a_link_opens_nothing(
    tmp_path: Path, private_home: Path, key: str, target: str
) -> None:
    """In the same process by where it led before; in the next one because the link lies where scripts write."""
    shared = laid_out(tmp_path, private_home, SWAPS["a folder and a link"])
    (private_home / "diary").mkdir()
    (private_home / "diary/data").write_text(KEY)
    files = {"scripts/read.sh": READ, "scripts/plant.sh": 'cd "$1" && mv folder before && ln -s "$2" folder\n'}
    policy = replace(WALLS, **{key: (shared / "folder",)})  # type: ignore[arg-type]
    without = replace(WALLS, **{key: (private_home / target,)})  # type: ignore[arg-type]
    with made_manager(tmp_path / "control", files, policy=without) as manager:
        if target == "diary":  # what is closed, no policy opens
            assert KEY in said_by_reader(manager, private_home / target)
    plain = made_manager(tmp_path / "first", files, policy=WALLS, workspace=shared)
    again = made_manager(tmp_path / "next", files, policy=policy)
    with plain, again:
        assert "good" in said_by_reader(again, shared / "folder")
        plain.execute_skill_script("demo", "plant", argv=[str(shared), str(private_home / target)])
        assert (shared / "folder").is_symlink()
        with pytest.raises(ConfigurationError, match=r"a script can have done that|never opened to scripts"):
            said_by_reader(again, shared / "folder")
    with (
        made_manager(tmp_path / "later", files, policy=policy, workspace=shared) as later,
        pytest.raises(ConfigurationError, match=f"lies where scripts can put one.*{target}|never opened to scripts"),
    ):
        said_by_reader(later, shared / "folder")


@pytest.mark.usefixtures("tier")
def test_a_link_of_the_users_own_in_a_policy_is_followed(tmp_path: Path, private_home: Path) -> None:
    shared = laid_out(tmp_path, private_home, SWAPS["a folder and a link"])
    (tmp_path / "link").symlink_to(shared / "folder")
    policy = replace(WALLS, readable_paths=(tmp_path / "link",))
    with made_manager(tmp_path, {"scripts/read.sh": READ}, policy=policy, workspace=shared) as manager:
        assert "good" in said_by_reader(manager, shared / "folder")
