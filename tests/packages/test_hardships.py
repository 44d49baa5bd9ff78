"""What goes wrong on the way: killed, twice at once, a full disk, a silent index. Nothing is half done, nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.package_index import PackageIndex
from support.running import anybody_runs, needs, wait_for

from skillkit.core.manager import SkillManager
from skillkit.core.store.environments import Environments
from skillkit.packages import prepare
from skillkit.packages.prepare import prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

pytestmark = pytest.mark.slow
SCRIPT = '# /// script\n# dependencies = ["zebra"]\n# ///\nimport zebra; print(zebra.VERSION)\n'
# The person's yes is where an index may begin to hang.
PROGRAM = """
import sys, urllib.request
from skillkit import SkillManager
from skillkit.approvers.callback import CallbackApprover

def yes(request):
    urllib.request.urlopen(sys.argv[3]).read()
    return "yes_once"

with SkillManager("", "", [], [sys.argv[1]], state_dir=sys.argv[2]) as manager:
    manager.prepare_packages("animals", approver=CallbackApprover(yes))
"""


@pytest.fixture
def skills(manager: SkillManager, index: PackageIndex) -> Path:
    index.add("zebra", "1.0")
    folder = Path(manager.roots[0].path)
    skill_folder(folder, "animals", {"scripts/run.py": SCRIPT})
    return folder


@pytest.fixture
def started(manager: SkillManager, skills: Path, index: PackageIndex) -> Iterator[subprocess.Popen[str]]:
    """A preparation in a process of its own, which asks the index for `/answered` when it is answered."""
    words = (str(skills), str(manager.state_dir), f"{index.address.removesuffix('/simple/')}/answered")
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def typed(skills: Path, state: Path, *words: str) -> subprocess.Popen[str]:
    places = (*(("--skills", str(skills)) if words[0] == "prepare" else ()), "--state-dir", str(state))
    command = [sys.executable, "-m", "skillkit", *words, *places]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def leftovers(manager: SkillManager) -> list[Path]:
    return list((manager.state_dir / "packages").glob(".new-*"))


def require_recovery(manager: SkillManager) -> None:
    """The next one works, and takes away what the killed one left."""
    prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"))
    assert leftovers(manager) == []
    result = manager.execute_skill_script("animals", "run")
    assert result.stdout == "1.0\n", result.stderr


@pytest.mark.parametrize("moment", ["resolving", "installing"])
def test_killed_in_the_middle(
    manager: SkillManager, index: PackageIndex, started: subprocess.Popen[str], moment: str
) -> None:
    index.hangs_at, index.hangs_after = "/files/", "/answered" if moment == "installing" else ""
    index.hangs = moment == "resolving"
    assert index.is_hanging.wait(60), started.communicate()
    (shop,) = leftovers(manager)
    assert anybody_runs(str(shop)), "uv works inside walls"
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    assert wait_for(lambda: not anybody_runs(str(shop)), 20), "what it started went with it"
    assert leftovers(manager) == [shop], "there was no time to tidy up"
    assert Environments(manager.state_dir).all_built() == []
    assert not manager.execute_skill_script("animals", "run").success
    kinds = [record.kind for record in manager.flow.audit.records() if record.fields.get("purpose") == "prepare"]
    assert kinds == (["started"] if moment == "installing" else [])
    index.hangs, index.hangs_after = False, ""
    index.stopping.set()
    require_recovery(manager)


@pytest.mark.usefixtures("skills")
def test_an_index_that_hangs_while_a_tool_waits_is_given_up(manager: SkillManager, index: PackageIndex) -> None:
    index.hangs, index.hangs_at = True, "/files/"
    with pytest.raises(PackagesError, match="the index takes too long"):
        prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"), patience=1)
    assert leftovers(manager) == []
    index.hangs = False
    index.stopping.set()
    require_recovery(manager)


def test_two_processes_that_prepare_the_same_build_it_once(manager: SkillManager, skills: Path) -> None:
    both = [typed(skills, manager.state_dir, "prepare", "animals", "--yes", "--json") for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    one, other = (json.loads(out or "{}").get("environments") for out, _ in said)
    assert one == other, said
    assert len(one) == 1
    assert len(Environments(manager.state_dir).all_built()) == 1
    assert leftovers(manager) == []
    assert manager.execute_skill_script("animals", "run").stdout == "1.0\n"
    assert manager.flow.audit.verify().ok


def test_what_is_being_prepared_is_not_pruned_and_what_was_left_is(manager: SkillManager, skills: Path) -> None:
    left = manager.state_dir / "packages" / ".new-left"
    environments = Environments(manager.state_dir)

    class Pruned(type(environments)):  # type: ignore[misc]
        """Somebody prunes between the end of the build and the note about it."""

        def keep(self, approved: object) -> None:
            left.mkdir()
            ended = typed(skills, manager.state_dir, "packages", "prune")
            told.append(ended.communicate(timeout=60))
            super().keep(approved)

    told: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "Environments", Pruned)
        prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"))
    assert told[0][0] == "Removed 0 environments, 0.0 MB.\n", told
    assert not left.exists()
    assert manager.execute_skill_script("animals", "run").stdout == "1.0\n"


def test_a_full_disk_is_said_and_nothing_stays_of_it(
    manager: SkillManager, index: PackageIndex, skills: Path, tmp_path: Path
) -> None:
    needs("bwrap")
    index.add("zebra", "1.0", f"VERSION = '1.0'\nBALLAST = '{os.urandom(2_000_000).hex()}'\n")
    small = tmp_path / "small"
    small.mkdir()
    program = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from skillkit import SkillManager
        from skillkit.core.exceptions import SkillKitError
        from skillkit.testing import ScriptedApprover
        state = Path(sys.argv[2]) / "state"
        with SkillManager("", "", [], [sys.argv[1]], state_dir=state) as manager:
            try:
                manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
            except SkillKitError as error:
                print(type(error).__name__, error)
            print("left", sorted(os.listdir(state / "packages" / "environments")), list(state.glob("packages/.new-*")))
        """
    )
    space = ("--size", "6000000", "--tmpfs", str(small))
    inner = (sys.executable, "-c", program, str(skills), str(small))
    said = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *space, *inner], capture_output=True, text=True, check=False, timeout=120
    )
    if "Unknown option --size" in said.stderr:
        pytest.skip("this bubblewrap makes no small file systems")
    if os.geteuid() and "SandboxUnavailableError" in said.stdout:
        pytest.skip("an ordinary user has no walls inside these walls")
    assert "left [] []" in said.stdout, (said.stdout, said.stderr)
    assert "No space left" in said.stdout, (said.stdout, said.stderr)
    require_recovery(manager)
