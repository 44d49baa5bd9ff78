"""From a skill's needs to a run that finds its packages, with an index of our own."""

from __future__ import annotations

import contextlib
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest
from support.package_index import PackageIndex
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit.approvers.callback import CallbackApprover, FlagApprover
from skillkit.core.exceptions import ApprovalDeclinedError, ApprovalUnavailableError, AuditUnavailableError
from skillkit.core.manager import SkillManager
from skillkit.core.record import Record
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.run.warm.spares import spares
from skillkit.core.store import environments as store
from skillkit.core.store.environments import Environments
from skillkit.core.values.policy import GUARDED, STANDARD, ScriptPolicy
from skillkit.core.values.questions import OptionAnswer, OptionRequest
from skillkit.core.values.runs import PreparedRun
from skillkit.packages.prepare import Preparation, prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

BLOCK = '# /// script\n# dependencies = ["{}"]\n# ///\n'
TRIES = 3
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


def test_nothing_is_read_again_while_skill_and_interpreter_stay_as_they_are(
    index: PackageIndex, manager: SkillManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    first = prepare(manager)
    monkeypatch.setattr("skillkit.packages.making.make", lambda order: pytest.fail(f"made again: {order.owner.name}"))
    again = prepare_packages(manager, "animals")
    assert (again.was_ready, again.environments) == (True, first.environments)
    assert [(each.name, each.hashes) for each in again.plans[0].packages] == [
        (each.name, each.hashes) for each in first.plans[0].packages
    ]
    prepare_packages(manager, "animals", "run")  # the whole skill was prepared, this script with it
    monkeypatch.undo()
    monkeypatch.setenv("PYENV_VERSION", "another")
    asked: list[str] = []
    monkeypatch.setattr("skillkit.packages.making.make", lambda order: asked.append(order.owner.name))
    prepare_packages(manager, "animals")
    assert asked == ["animals"]


def answer_to(prepared: PreparedRun, option_id: str) -> OptionAnswer:
    assert prepared.request is not None
    return OptionAnswer(option_id, "test", time.time(), prepared.request.id)


def records(manager: SkillManager) -> list[Record]:
    return list(manager.flow.audit.records())


def test_a_preparation_is_on_record_before_anything_is_installed_and_after(
    index: PackageIndex, manager: SkillManager
) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    prepare_packages(manager, "animals", dry_run=True)
    assert records(manager) == []
    done = prepare(manager)
    started, finished = records(manager)
    assert (started.kind, finished.kind, finished.fields["started"]) == ("started", "finished", started.seq)
    about = ("purpose", "skill", "answer", "channel", "decision")
    assert [started.fields[name] for name in about] == ["prepare", "animals", "yes_once", "scripted", "ask"]
    lock = started.fields["locks"]["python"]  # type: ignore[index,call-overload]
    assert lock["packages"] == ["zebra 1.0"]  # type: ignore[index,call-overload]
    assert lock["digest"] == sha256(done.plans[0].lock.encode()).hexdigest()  # type: ignore[index,call-overload]
    built = finished.fields["environments"]["python"]  # type: ignore[index,call-overload]
    assert built["digest"] == done.plans[0].key  # type: ignore[index,call-overload]
    assert any(each["received_bytes"] for each in finished.fields["hosts"])  # type: ignore[index,call-overload,union-attr]
    prepare_packages(manager, "animals")
    assert len(records(manager)) == 2, "nothing was done"
    assert manager.flow.audit.verify().ok


def test_a_yes_to_packages_is_no_earlier_yes_to_a_run(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    prepare(manager)
    given = {"policy": GUARDED, "state_dir": manager.state_dir}
    with SkillManager("", "", [], [manager.roots[0].path], **given) as guarded:  # type: ignore[arg-type]
        first = guarded.prepare_skill_script("animals", "run")
        assert first.reasons == ("Policy asks a person before a skill's first run.",)
        guarded.complete_skill_script(first, answer_to(first, "yes_once"))
        again = guarded.prepare_skill_script("animals", "run")
        assert again.reasons == ("Policy asks a person again, because the last yes was for one run.",)


def test_a_refusal_and_a_failure_are_on_record_too(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    with pytest.raises(ApprovalDeclinedError):
        prepare(manager, "no")
    declined = records(manager)[-1]
    assert (declined.kind, declined.fields["error"]) == ("refused", "ApprovalDeclinedError")
    assert "zebra 1.0" in str(declined.fields["locks"])
    with pytest.raises(PackagesError):
        prepare_packages(manager, "animals", approver=swapping(index))
    started, failed = records(manager)[-2:]
    assert (started.kind, failed.kind, failed.fields["started"]) == ("started", "finished", started.seq)
    assert "PackagesError" in str(failed.fields["error"])
    index.packages.clear()
    with pytest.raises(PackagesError):
        prepare(manager)
    assert records(manager)[-1].kind == "refused"


def test_what_cannot_be_recorded_is_not_installed(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    manager.flow.store.close()
    for file in manager.state_dir.glob("*.sqlite3*"):
        file.unlink()
    with contextlib.closing(manager.flow.store):
        Path(manager.flow.store.place).mkdir(parents=True)
        with pytest.raises(AuditUnavailableError):
            prepare(manager)
    assert Environments(manager.state_dir).all_built() == []


def test_an_instructed_package_is_said_to_be_one(index: PackageIndex, manager: SkillManager) -> None:
    for version in ("1.0", "2.0"):
        index.add("zebra", version)
    folder = Path(manager.roots[0].path)
    skill_folder(folder, "animals", {"scripts/run.py": USE}, body='```\npip install "zebra==1.0"\n```\n')
    done = prepare(manager)
    assert [(each.version, each.source) for each in done.plans[0].packages] == [("1.0", "instructed")]
    assert printed(manager) == "1.0"


def ticking(*words: str) -> CallbackApprover:
    """A person who says yes, and ticks what begins with one of these words."""

    def answer(request: OptionRequest) -> OptionAnswer:
        ticked = tuple(tick.id for tick in request.grants if tick.id.startswith(words))
        return OptionAnswer("yes_once", "", time.time(), grants=ticked)

    return CallbackApprover(answer)


def swapping(index: PackageIndex) -> CallbackApprover:
    """A person who says yes, and an index that gives another file from then on."""

    def answer(_: OptionRequest) -> str:
        other = PackageIndex()
        other.add("zebra", "1.0", "VERSION = 'evil'")
        index.swapped = dict(other.packages["zebra"])
        return "yes_once"

    return CallbackApprover(answer)


def test_an_inferred_package_needs_a_tick_of_its_own(index: PackageIndex, manager: SkillManager) -> None:
    for name in ("zebra", "lion"):
        index.add(name, "1.0")
    skill_folder(Path(manager.roots[0].path), "animals", {"scripts/run.py": f"import lion\n{USE}"})
    asked = ScriptedApprover("yes_once")
    with pytest.raises(
        ApprovalDeclinedError, match=r"not ticked\. lion 1\.0 \(Python\): guessed: .*; zebra 1\.0 \(Python\): guessed: "
    ):
        prepare_packages(manager, "animals", approver=asked)
    assert [tick.id for tick in asked.requests[0].grants] == ["guessed:python:lion@1.0", "guessed:python:zebra@1.0"]
    with pytest.raises(ApprovalDeclinedError, match=r"not ticked\. lion 1\.0 \(Python\): guessed"):
        prepare_packages(manager, "animals", approver=ticking("guessed:python:zebra@"))
    assert Environments(manager.state_dir).all_built() == []
    prepare_packages(manager, "animals", approver=ticking("guessed:"))
    assert printed(manager) == "1.0"


def test_a_young_release_needs_a_tick_of_its_own_and_a_flag_is_not_enough(
    index: PackageIndex, manager: SkillManager
) -> None:
    index.add("zebra", "1.0")
    index.age_days = 2
    declared(manager)
    with pytest.raises(ApprovalUnavailableError, match="add --young"):
        prepare_packages(manager, "animals", approver=FlagApprover())
    with pytest.raises(ApprovalDeclinedError, match=r"zebra 1\.0 \(Python\): younger than 7 days"):
        prepare_packages(manager, "animals", approver=ticking("guessed:"))
    prepare_packages(manager, "animals", approver=ticking("young:python:zebra@1.0"))
    assert printed(manager) == "1.0"


def test_the_word_for_young_releases_can_be_given_beforehand(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    index.age_days = 2
    declared(manager)
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

    with pytest.raises(PackagesError, match=r"[Hh]ash"):
        prepare_packages(manager, "animals", approver=swapping(index))
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


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
def test_a_shell_script_finds_the_prepared_python_first(
    index: PackageIndex, manager: SkillManager, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    index.add("zebra", "1.0")
    code = "python3 -c 'import zebra; print(zebra.VERSION)' && python -c 'import zebra; print(zebra.VERSION)'\n"
    files = {"scripts/run.sh": code, "requirements.txt": "zebra\n"}
    skill_folder(Path(manager.roots[0].path), "animals", files)
    assert not manager.execute_skill_script("animals", "run").success
    prepare(manager)
    found = next((each.sandbox for each in machine_tiers() if each.tier == tier), None)
    if found is None:
        pytest.skip(f"no {tier} here")
    monkeypatch.setattr(tiers, "this_machines", Choice({tier: lambda: found}))
    with SkillManager("", "", [], [manager.roots[0].path], policy=STANDARD, state_dir=manager.state_dir) as other:
        result = other.execute_skill_script("animals", "run")
    assert (result.isolation.tier, result.stdout) == (tier, "1.0\n1.0\n"), result.stderr


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


def test_a_yes_for_the_session_holds_for_runs_with_packages_that_were_prepared_later(
    index: PackageIndex, manager: SkillManager
) -> None:
    index.add("zebra", "1.0")
    declared(manager)
    approver = ScriptedApprover("yes_in_session")
    given = {"policy": GUARDED, "approver": approver, "session_id": "one", "state_dir": manager.state_dir}
    with SkillManager("", "", [], [manager.roots[0].path], **given) as guarded:  # type: ignore[arg-type]
        assert guarded.execute_skill_script("animals", "run").needs_packages
        prepare(manager)
        assert guarded.execute_skill_script("animals", "run").stdout == "1.0\n"
        assert len(approver.requests) == 1
        Environments(manager.state_dir).forget("animals", guarded.load_skill("animals").base_directory)
        assert guarded.execute_skill_script("animals", "run").needs_packages


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


@needs_spares
def test_what_was_prepared_is_imported_ahead_of_the_next_run(index: PackageIndex, manager: SkillManager) -> None:
    index.add("zebra", "1.0")
    declared(manager, code="import json\nimport zebra\nprint(zebra.VERSION)\n")
    prepare(manager)
    assert printed(manager) == "1.0"
    assert wait_for_spare()
    assert spares._kept[0][1].done == len(("json", "zebra"))
    starts: list[str] = []
    while "warm" not in starts and len(starts) < TRIES:  # who changes this Python meanwhile makes one of no use
        assert wait_for_spare()
        result = manager.execute_skill_script("animals", "run")
        assert result.stdout == "1.0\n"
        starts.append(result.isolation.start)
    assert "warm" in starts


@needs_spares
def test_packages_that_lie_in_the_workspace_are_no_reason_to_fail(index: PackageIndex, tmp_path: Path) -> None:
    """Where the state lies in the folder that is shown late, they cannot be shown early: each run starts anew."""
    index.add("zebra", "1.0")
    (tmp_path / "skills").mkdir()
    policy = ScriptPolicy(**WARM)
    with SkillManager(
        tmp_path / "skills", "", [], [], policy=policy, state_dir=tmp_path / "state", workspace=tmp_path
    ) as manager:
        declared(manager)
        prepare(manager)
        for _ in range(3):
            result = manager.execute_skill_script("animals", "run")
            assert (result.stdout, result.isolation.start) == ("1.0\n", "cold")
            assert not wait_for_spare(0.5)
