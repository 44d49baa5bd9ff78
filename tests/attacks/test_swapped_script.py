"""Content that changes after it was decided about: between detection, decision and start."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import UserDict
from collections.abc import Callable
from pathlib import Path

import pytest
from support.running import kinds, made_manager, only_record, ordinary_user, runnable, said_by_user

from skillkit import (
    STANDARD,
    TRUSTED,
    ContentChangedError,
    ScriptNotFoundError,
    ScriptPolicy,
    SkillKitError,
    SkillManager,
)
from skillkit.core.resolve import CallArguments
from skillkit.core.values.runs import PreparedRun

GOOD = "echo good\n"
EVIL = 'echo evil > "$1"\n'


def prepared(manager: SkillManager, tmp_path: Path) -> PreparedRun:
    return manager.flow.prepare(manager.load_skill("demo"), CallArguments("run", argv=[str(tmp_path / "mark")]))


def test_control_a_check_and_a_plain_start_run_what_was_swapped_in(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(GOOD)
    assert script.read_text() == GOOD, "checked"
    script.write_text(EVIL)
    subprocess.run(["bash", script, tmp_path / "mark"], check=True)
    assert (tmp_path / "mark").exists()


def rewrite(base: Path) -> None:
    (base / "scripts/run.sh").write_text(EVIL)


def rename_over(base: Path) -> None:
    (base.parent / "new").write_text(EVIL)
    os.replace(base.parent / "new", base / "scripts/run.sh")


def same_size_and_time(base: Path) -> None:
    script = base / "scripts/run.sh"
    status = script.stat()
    script.write_text("echo evil\n")
    os.utime(script, ns=(status.st_atime_ns, status.st_mtime_ns))


def change_a_library(base: Path) -> None:
    (base / "lib.sh").write_text(EVIL)


def add_a_file(base: Path) -> None:
    (base / "scripts/new.sh").write_text("")


def remove_a_file(base: Path) -> None:
    (base / "lib.sh").unlink()


def swap_a_folder(base: Path) -> None:
    (base / "scripts").rename(base.parent / "old")
    (base / "scripts").mkdir()
    (base / "scripts/run.sh").write_text(EVIL)


def retarget_a_link(base: Path) -> None:
    (base / "link").unlink()
    (base / "link").symlink_to("/etc")


@pytest.mark.parametrize(
    "change",
    [
        rewrite,
        rename_over,
        same_size_and_time,
        change_a_library,
        add_a_file,
        remove_a_file,
        swap_a_folder,
        retarget_a_link,
    ],
)
def test_a_change_between_decision_and_start_is_refused_and_recorded(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo good\n", "lib.sh": ""}) as manager:
        base = tmp_path / "skills/demo"
        (base / "link").symlink_to("lib.sh")
        run = prepared(manager, tmp_path)
        change(base)
        with pytest.raises(ContentChangedError, match="changed after it was decided") as caught:
            manager.flow.complete(run)
        assert caught.value.reasons == ("'demo' changed after it was decided that it may run",)
    assert not (tmp_path / "mark").exists()
    assert kinds(tmp_path) == ["refused"]
    assert only_record(tmp_path, "refused")["error"] == "ContentChangedError"


def test_a_script_deleted_between_decision_and_start_is_not_found(tmp_path: Path) -> None:
    with runnable(tmp_path, GOOD) as manager:
        run = prepared(manager, tmp_path)
        (tmp_path / "skills/demo/scripts/run.sh").unlink()
        with pytest.raises(ScriptNotFoundError, match="not there any more"):
            manager.flow.complete(run)
    assert kinds(tmp_path) == ["refused"]


def test_arguments_that_the_caller_changes_after_the_decision_are_recorded_as_they_ran(tmp_path: Path) -> None:
    arguments = {"paths": ["good"]}
    with runnable(tmp_path, "cat\n") as manager:
        run = manager.prepare_skill_script("demo", "run", arguments)
        arguments["paths"][0] = "evil"
        assert manager.complete_skill_script(run).stdout == '{"paths": ["good"]}'
    assert only_record(tmp_path, "started")["arguments"] == 'arguments {"paths":["good"]}'


@pytest.mark.parametrize(
    ("closed", "error"),
    [("above/skills/demo", "ContentLoadError"), ("above", "ContentLoadError"), ("around", "ConfigurationError")],
    ids=["skill", "folder above it", "folder above the workspace"],
)
def test_what_can_no_longer_be_looked_at_between_decision_and_start_is_refused_and_recorded(
    closed: str, error: str
) -> None:
    with ordinary_user() as folder:
        said = said_by_user(
            f"""
            import os
            from pathlib import Path
            from skillkit import TRUSTED, SkillKitError, SkillManager
            Path("around/workspace").mkdir(parents=True)
            Path("above/skills/demo/scripts").mkdir(parents=True)
            Path("above/skills/demo/SKILL.md").write_text("---\\nname: demo\\ndescription: Demo.\\n---\\n")
            Path("above/skills/demo/scripts/run.sh").write_text("touch $SKILL_WORKSPACE/ran")
            settings = dict(policy=TRUSTED, state_dir="state", workspace="around/workspace")
            with SkillManager("above/skills", "", [], [], **settings) as manager:
                run = manager.prepare_skill_script("demo", "run")
                os.chmod("{closed}", 0)
                try:
                    manager.complete_skill_script(run)
                except SkillKitError as error:
                    print(type(error).__name__, [record.kind for record in manager.flow.audit.records()])
                os.chmod("{closed}", 0o700)
            print(os.listdir("around/workspace"))
            """,
            folder,
        )
    assert said == f"{error} ['refused']\n[]\n"


@pytest.mark.parametrize("policy", [TRUSTED, STANDARD], ids=["trusted", "standard"])
def test_a_folder_that_comes_back_after_it_was_looked_at_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: ScriptPolicy
) -> None:
    """Nobody has seen its content, so there is no copy of it that could run either."""
    skill, away = tmp_path / "skills/demo", tmp_path / "away"

    class ComesBack(UserDict[str, str]):
        def __getitem__(self, name: str) -> str:
            if away.exists():
                away.rename(skill)
            return super().__getitem__(name)

    with runnable(tmp_path, GOOD, policy=policy) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "good\n"
        skill.rename(away)
        monkeypatch.setattr(os, "environ", ComesBack(os.environ))
        with pytest.raises(ContentChangedError, match="changed while it was looked at"):
            manager.execute_skill_script("demo", "run")
        assert skill.exists()
        assert manager.execute_skill_script("demo", "run").stdout == "good\n"
    assert kinds(tmp_path) == ["started", "finished", "refused", "started", "finished"]


def test_a_change_of_git_metadata_is_no_change_of_the_skill(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": GOOD, ".git/HEAD": "a"}) as manager:
        run = prepared(manager, tmp_path)
        (tmp_path / "skills/demo/.git/HEAD").write_text("b")
        assert manager.flow.complete(run).stdout == "good\n"


def test_what_was_decided_can_be_completed_when_nothing_changed(tmp_path: Path) -> None:
    with runnable(tmp_path, GOOD) as manager:
        assert manager.flow.complete(prepared(manager, tmp_path)).stdout == "good\n"


def test_a_swapper_at_full_speed_never_gets_a_half_checked_error_through(tmp_path: Path) -> None:
    """Every run is a result or a typed error, whatever happens on disk meanwhile."""
    stop = threading.Event()
    script = tmp_path / "skills/demo/scripts/run.sh"

    def swap() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            other = tmp_path / "other"
            if turn % 3:
                other.write_text(f"echo {turn}\n")
            else:
                other.symlink_to(tmp_path)
            os.replace(other, script)

    with runnable(tmp_path, GOOD) as manager:
        thread = threading.Thread(target=swap)
        thread.start()
        outcomes: list[int | str] = []
        try:
            for _ in range(60):
                try:
                    outcomes.append(manager.execute_skill_script("demo", "run").exit_code)
                except SkillKitError as error:
                    outcomes.append(type(error).__name__)
        finally:
            stop.set()
            thread.join()
    assert len(outcomes) == 60
    found = kinds(tmp_path)
    assert found.count("started") == found.count("finished")
    assert found.count("started") + found.count("refused") == 60


@pytest.mark.parametrize("robbed", ["run.sh", "beside.sh", "new.sh"], ids=["script", "file beside it", "new file"])
def test_without_mounts_a_skill_changed_after_the_decision_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, robbed: str
) -> None:
    """All of the folder is looked at again just before the start, also when one call decides and runs."""
    from skillkit.core import flow

    decide = flow.__dict__["decide"]

    def decide_and_be_robbed(*given: object) -> object:
        ruling: object = decide(*given)
        (tmp_path / "skills/demo/scripts" / robbed).write_text("echo evil\n")
        return ruling

    with runnable(tmp_path, ". scripts/beside.sh\n") as manager:
        (tmp_path / "skills/demo/scripts/beside.sh").write_text("echo good\n")
        assert manager.execute_skill_script("demo", "run").stdout == "good\n"
        monkeypatch.setattr(flow, "decide", decide_and_be_robbed)
        with pytest.raises(ContentChangedError, match="changed"):
            manager.execute_skill_script("demo", "run")
