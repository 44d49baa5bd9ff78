"""From a skill's needs to a run that finds its packages, with an index of our own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.package_index import PackageIndex

from skillkit.core.exceptions import ApprovalDeclinedError, ApprovalUnavailableError
from skillkit.core.manager import SkillManager
from skillkit.core.store import environments as store
from skillkit.core.store.environments import Environments
from skillkit.packages.prepare import Preparation, prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

BLOCK = '# /// script\n# dependencies = ["{}"]\n# ///\n'
USE = "import zebra; print(zebra.VERSION)"


def declared(manager: SkillManager, requirement: str = "zebra", code: str = USE, **files: str) -> Path:
    folder = Path(manager.roots[0].path)
    made = skill_folder(folder, "animals", {"scripts/run.py": BLOCK.format(requirement) + code, **files})
    manager.discover()
    return made


def prepare(manager: SkillManager, *answers: str, **options: object) -> Preparation:
    approver = ScriptedApprover(*(answers or ("yes_once",)))
    return prepare_packages(manager, "animals", approver=approver, **options)  # type: ignore[arg-type]


def printed(manager: SkillManager) -> str:
    result = manager.execute_skill_script("animals", "run")
    assert result.success, result.stderr
    return result.stdout.strip()


def test_a_declared_package_is_found_by_the_run_and_its_version_is_kept_to(
    index: PackageIndex, manager: SkillManager
) -> None:
    for version in ("1.0", "2.0"):
        index.add("zebra", version, needs=["stripes"])
    index.add("stripes", "0.1")
    declared(manager, "zebra<2")
    failed = manager.execute_skill_script("animals", "run")
    assert failed.needs_packages
    assert "skillkit prepare animals" in failed.hint
    approver = ScriptedApprover("yes_once")
    done = prepare_packages(manager, "animals", approver=approver)
    (request,) = approver.requests
    assert "nobody here has read" in request.message
    assert "zebra 1.0, 1 kB, 100 days old, declared in scripts/run.py:2" in request.message
    assert "stripes 0.1, 1 kB, 100 days old, needed by another" in request.message
    assert not done.was_ready
    assert printed(manager) == "1.0"
    assert all(need.is_met for need in manager.needs_of("animals") if need.kind == "package")


def test_a_second_preparation_asks_nobody_and_no_index(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    prepare(manager)
    index.asked.clear()
    assert prepare_packages(manager, "animals", approver=None).was_ready
    assert index.asked == []


def test_an_instructed_package_is_said_to_be_one(index: PackageIndex, manager: SkillManager) -> None:
    for version in ("1.0", "2.0"):
        index.add("zebra", version)
    folder = Path(manager.roots[0].path)
    skill_folder(folder, "animals", {"scripts/run.py": USE}, body='```\npip install "zebra==1.0"\n```\n')
    done = prepare(manager)
    assert [(each.version, each.source) for each in done.plans[0].packages] == [("1.0", "instructed")]
    assert printed(manager) == "1.0"


def test_an_inferred_package_needs_a_word_of_its_own(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    skill_folder(Path(manager.roots[0].path), "animals", {"scripts/run.py": USE})
    with pytest.raises(ApprovalDeclinedError):
        prepare(manager, "yes_once", "no")
    assert Environments(manager.state_dir).all_built() == []
    prepare(manager, "yes_once", "yes_once")
    assert printed(manager) == "1.0"


def test_a_young_release_needs_a_word_of_its_own_and_a_flag_is_not_enough(
    index: PackageIndex, manager: SkillManager
) -> None:
    from skillkit.approvers.callback import FlagApprover

    index.add("zebra", "1.0")
    index.age_days = 2
    declared(manager)
    with pytest.raises(ApprovalUnavailableError, match="add --young"):
        prepare_packages(manager, "animals", approver=FlagApprover())
    prepare_packages(manager, "animals", approver=FlagApprover(), young=True)
    assert printed(manager) == "1.0"


def test_an_index_without_upload_times_is_named_and_the_limit_does_not_apply(
    index: PackageIndex, manager: SkillManager
) -> None:
    index.add("zebra", "1.0")
    index.tells_times, index.age_days = False, 0
    declared(manager)
    approver = ScriptedApprover("yes_once")
    prepare_packages(manager, "animals", approver=approver)
    assert "127.0.0.1" in approver.requests[0].message
    assert "does not tell when" in approver.requests[0].message


def test_a_name_one_letter_from_a_common_one_is_said_to_be_so(index: PackageIndex, manager: SkillManager) -> None:
    index.add("reqeusts", "1.0")
    declared(manager, "reqeusts")
    approver = ScriptedApprover("no")
    with pytest.raises(ApprovalDeclinedError):
        prepare_packages(manager, "animals", approver=approver)
    assert "MORE COMMON 'requests'" in approver.requests[0].message
    assert "Left out, since there are no such packages: zebra (guessed)." in approver.requests[0].message


def test_a_file_with_another_hash_is_not_installed(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)

    class Swapping(ScriptedApprover):
        def ask(self, *given: object, **more: object) -> object:  # type: ignore[override]
            other = PackageIndex()
            other.add("zebra", "1.0", "VERSION = 'evil'")
            index.swapped = dict(other.packages["zebra"])
            return super().ask(*given, **more)  # type: ignore[arg-type]

    with pytest.raises(PackagesError, match=r"[Hh]ash"):
        prepare_packages(manager, "animals", approver=Swapping("yes_once"))  # type: ignore[arg-type]
    assert Environments(manager.state_dir).all_built() == []


def test_a_lock_of_the_skill_decides_version_and_hash(index: PackageIndex, manager: SkillManager) -> None:
    for version in ("1.0", "2.0"):
        index.add("zebra", version)
    declared(manager, **{"requirements.lock": f"zebra==1.0 \\\n    --hash=sha256:{'0' * 64}\n"})
    with pytest.raises(PackagesError, match="no file of the index has a hash"):
        prepare(manager)
    declared(manager, **{"requirements.lock": "zebra==1.0\n"})
    prepare(manager)
    assert printed(manager) == "1.0"


def test_an_index_that_the_skill_or_the_workspace_names_is_not_asked(
    index: PackageIndex, manager: SkillManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.package_index import serving_index

    index.add("zebra", "1.0")
    with serving_index() as evil:
        evil.add("zebra", "9.0")
        text = f'[[index]]\nurl = "{evil.address}"\ndefault = true\n'
        project = f'[tool.uv]\nindex-url = "{evil.address}"\n'
        declared(manager, **{"uv.toml": text, "scripts/uv.toml": text, ".npmrc": f"registry={evil.address}\n"})
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "uv.toml").write_text(text)
        (tmp_path / "work" / "pyproject.toml").write_text(project)
        (tmp_path / "work" / "pip.conf").write_text(f"[global]\nindex-url = {evil.address}\n")
        monkeypatch.chdir(tmp_path / "work")
        prepare(manager)
        assert evil.asked == []
    assert printed(manager) == "1.0"


def test_code_of_a_source_package_does_not_run(index: PackageIndex, manager: SkillManager, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    index.add_source("zebra", "1.0", f"open({str(mark)!r}, 'w'); print('RAN')\n")
    declared(manager)
    with pytest.raises(PackagesError, match="Only wheels are installed") as failed:
        prepare(manager)
    assert "RAN" not in str(failed.value)
    assert not mark.exists()


def test_a_name_that_the_index_does_not_know_is_said(index: PackageIndex, manager: SkillManager) -> None:
    index.add("lion", "1.0")
    declared(manager)
    with pytest.raises(PackagesError, match="has no package 'zebra'"):
        prepare(manager)


def test_an_index_that_hangs_is_given_up(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    index.hangs = True
    declared(manager)
    with pytest.raises(PackagesError, match="does not answer"):
        prepare(manager, patience=1.0)


def test_two_at_once_build_it_once(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    outcomes: list[Preparation] = []
    threads = [threading.Thread(target=lambda: outcomes.append(prepare(manager))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (one, other) = outcomes
    assert one.environments[0].mark == other.environments[0].mark
    assert len(Environments(manager.state_dir).all_built()) == 1


def test_a_killed_preparation_leaves_nothing_half_done(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    folder = declared(manager).parent
    packages = manager.state_dir / "packages"
    index.hangs = True
    words = ("prepare", "animals", "--yes", "--skills", str(folder), "--state-dir", str(manager.state_dir))
    started = subprocess.Popen([sys.executable, "-m", "skillkit", *words], start_new_session=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (packages.is_dir() and any(packages.glob(".new-*/work/settings"))):
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.kill(started.pid, signal.SIGKILL)
    started.wait()
    assert list(packages.glob(".new-*")), "it was killed too late"
    assert Environments(manager.state_dir).all_built() == []
    index.hangs = False
    index.stopping.set()
    prepare(manager)
    assert list(packages.glob(".new-*")) == []
    assert printed(manager) == "1.0"


def test_a_changed_environment_is_not_used_and_is_built_anew_without_a_question(
    index: PackageIndex, manager: SkillManager
) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    tree = prepare(manager).environments[0].tree
    assert printed(manager) == "1.0"
    (module,) = tree.glob("lib/python3*/site-packages/zebra.py")
    module.parent.chmod(0o755)
    module.chmod(0o644)
    module.write_text("VERSION = 'evil'\n")
    store._intact.clear()  # as in a new process
    failed = manager.execute_skill_script("animals", "run")
    assert failed.needs_packages
    assert prepare_packages(manager, "animals", approver=None).environments[0].tree == tree
    assert printed(manager) == "1.0"


def test_a_script_can_neither_write_to_its_packages_nor_read_the_state_around_them(
    index: PackageIndex, manager: SkillManager, tmp_path: Path
) -> None:
    index.add("zebra", "1.0")
    code = (
        "import zebra, os, sys\n"
        "state = sys.prefix.split('/packages/')[0]\n"
        "print(sorted(os.listdir(state)), sorted(os.listdir(state + '/packages')))\n"
        "for path in (zebra.__file__, sys.prefix + '/new', state + '/new'):\n"
        "    try:\n        open(path, 'a').write('x'); print('WROTE', path)\n"
        "    except OSError: pass\n"
    )
    declared(manager, code=code)
    prepare(manager)
    assert (manager.state_dir / "packages" / "skills").is_dir()
    # The first has nothing of the host around its packages; the second opens the folder that the state lies in.
    manager.execute_skill_script("animals", "run")
    assert not (manager.state_dir / "new").exists()
    opened = manager.execute_skill_script("animals", "run", workspace=tmp_path)
    assert opened.stdout.strip() == "['packages'] ['environments']", opened.stderr
    assert not (manager.state_dir / "new").exists()


def test_a_skill_that_changed_is_prepared_again(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    folder = declared(manager)
    prepare(manager)
    (folder / "notes.txt").write_text("new")
    assert manager.execute_skill_script("animals", "run").needs_packages
    with pytest.raises(ApprovalUnavailableError):
        prepare_packages(manager, "animals", approver=None)
    prepare(manager)
    assert printed(manager) == "1.0"


def test_a_dry_run_asks_nobody_and_installs_nothing(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    planned = prepare_packages(manager, "animals", dry_run=True)
    assert [each.name for each in planned.plans[0].packages] == ["zebra"]
    assert Environments(manager.state_dir).all_built() == []
    assert Environments(manager.state_dir).approved("animals", manager.load_skill("animals").base_directory) is None
