"""Getting more than a person gave: through a grant, beside it, or after the skill has changed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager

from skillkit import GUARDED, ApprovalUnavailableError, ConfigurationError, OptionAnswer, ScriptRefusedError, World
from skillkit.approvers.callback import CallbackApprover
from skillkit.core.store.skills import StandingGrants
from skillkit.core.store.state import StateStore
from skillkit.core.values.needs import Grant

OPEN = replace(GUARDED, approval="never")
WRITE = """cd "$SKILL_WORKSPACE"
for file in .git/config .git/hooks/pre-commit .vscode/settings.json sub/.git/config; do
  (echo planted >> "$file") 2>/dev/null && echo "$file"
done
true
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for folder in (".git/hooks", ".vscode", "sub/.git"):
        (work / folder).mkdir(parents=True)
    for file in (".git/config", ".vscode/settings.json", "sub/.git/config"):
        (work / file).write_text("own\n")
    return work


def test_a_guarded_name_opens_where_it_was_granted_and_nowhere_else(tmp_path: Path, workspace: Path, tier: str) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": WRITE}, policy=OPEN, workspace=workspace) as manager:
        result = manager.execute_skill_script("demo", "run")
        assert result.isolation.tier == tier
        assert (workspace / ".git/config").read_text() == "own\n"
        manager.grant("demo", write=[workspace / ".git"])
        result = manager.execute_skill_script("demo", "run")
        assert {".git/config", ".git/hooks/pre-commit"} <= set(result.stdout.split())
        assert (workspace / ".git/config").read_text() == "own\nplanted\n", "and it stays"
        assert (workspace / ".git/hooks/pre-commit").exists()
        for file in (".vscode/settings.json", "sub/.git/config"):
            assert (workspace / file).read_text() == "own\n"
        manager.revoke("demo")
        manager.execute_skill_script("demo", "run")
        assert (workspace / ".git/config").read_text() == "own\nplanted\n"


def test_who_writes_the_store_opens_no_closed_place(tmp_path: Path) -> None:
    """Whoever can write the store can grant; even so, what is closed stays closed at use."""
    with made_manager(tmp_path, {"scripts/run.sh": "cat /etc/passwd; env\n"}, policy=OPEN) as manager:
        skill = manager.load_skill("demo")
        given = {"skill": "demo", "folder": skill.base_directory, "digest": skill.digest, "channel": "evil"}
        for grant in (Grant("read", "/etc"), Grant("read", str(manager.state_dir)), Grant("variable", "LD_PRELOAD")):
            store = StateStore(manager.state_dir)
            StandingGrants(store).give([grant], **given)  # type: ignore[arg-type]  # each as it is
            store.close()
            with pytest.raises(ConfigurationError, match=r"does not hold any more.*skillkit grant remove"):
                manager.execute_skill_script("demo", "run")
            manager.revoke("demo")
        assert manager.execute_skill_script("demo", "run").success


def test_a_stored_question_is_answered_with_what_it_offers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k-1234567890")
    script = 'import os\nprint(os.environ.get("WEATHER_API_KEY"), os.environ.get("OTHER_KEY"))\n'
    monkeypatch.setenv("OTHER_KEY", "o-1234567890")
    with made_manager(tmp_path, {"scripts/run.py": script}, policy=GUARDED, session_id="s") as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        request = prepared.request
        assert request is not None
        with World(manager.state_dir) as world:
            world.open(request)
            with pytest.raises(ConfigurationError, match="not offered"):
                world.answer(request.id, "yes_once", "page", grants=["secret:AWS_KEY"])
            answer = world.answer(request.id, "yes_once", "page", grants=["secret:WEATHER_API_KEY"])
        forged = replace(answer, grants=("secret:AWS_KEY",))
        with pytest.raises(ScriptRefusedError, match="did not offer"):
            manager.complete_skill_script(prepared, forged)
        assert manager.complete_skill_script(prepared, answer).stdout == "k-1234567890 None\n"


def test_neither_ticks_nor_grants_outlive_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k-1234567890")
    script = 'import os\nprint(os.environ.get("WEATHER_API_KEY"))\n'
    asked: list[str] = []

    def person(request: object) -> OptionAnswer:
        asked.append(str(request))
        return OptionAnswer(
            "yes_in_session", "", time.time(), grants=("secret:WEATHER_API_KEY",) if len(asked) == 1 else ()
        )

    approver = CallbackApprover(person)
    with made_manager(
        tmp_path, {"scripts/run.py": script}, policy=GUARDED, session_id="s", approver=approver
    ) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "k-1234567890\n"
        assert manager.execute_skill_script("demo", "run").stdout == "k-1234567890\n", "while it is the same"
        (tmp_path / "skills/demo/scripts/run.py").write_text(f"# another\n{script}")
        assert manager.execute_skill_script("demo", "run").stdout == "None\n"
        assert len(asked) == 2
        (tmp_path / "skills/demo/scripts/run.py").write_text(script)
        with (
            made_manager(tmp_path, {"scripts/run.py": script}, policy=GUARDED, session_id="other") as later,
            pytest.raises(ApprovalUnavailableError),
        ):
            later.execute_skill_script("demo", "run")


def test_two_workspaces_do_not_share_one_answer(tmp_path: Path) -> None:
    """Their questions have one id, because folders enter it as roles; the answer is still for one of them."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        made_manager(tmp_path, {"scripts/run.sh": "pwd\n"}, policy=GUARDED, session_id="s") as manager,
        World(manager.state_dir) as world,
    ):
        first, second = (
            manager.prepare_skill_script("demo", "run", workspace=tmp_path / name).request for name in ("one", "two")
        )
        assert first is not None
        assert second is not None
        assert first.id == second.id
        world.open(first)
        with pytest.raises(ConfigurationError, match="about another place"):
            world.open(second)
