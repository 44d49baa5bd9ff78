"""A run on a worker is the same as one here: input, output, files, failures, time, stopping."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.fleets import Fleet, nobody_left
from support.running import wait_for

from skillkit import GUARDED, STANDARD, ConfigurationError, ScriptNotFoundError, ScriptRefusedError, SkillManager
from skillkit.cli.options import current_workspace
from skillkit.fleet import CeleryRunner

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def manager(fleet: Fleet) -> SkillManager:
    return fleet.manager()


def test_a_script_gets_its_words_and_its_input_there_too(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "say", {"a": "ä"}, argv=["x", "--y=ü z"])
    assert result.success
    assert json.loads(result.stdout) == {"argv": ["x", "--y=ü z"], "stdin": '{"a": "ä"}', "key": ""}
    assert result.isolation.tier != "none"
    assert result.script_path == Path(manager.load_skill("demo").base_directory, "scripts/say.py"), "as callers know it"


def test_bytes_as_input_arrive_as_they_are(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "say", stdin="a\0b\r\n")
    assert json.loads(result.stdout)["stdin"] in ("a\0b\r\n", "a\0b\n")


def test_files_that_it_leaves_come_back(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "make")
    (artifact,) = result.artifacts
    assert (artifact.relative_path, artifact.size) == (Path("in/out.txt"), 4)
    assert artifact.path.read_text() == "made"


def test_a_failure_is_a_result_with_its_hint(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "fail")
    assert (result.exit_code, result.stderr, result.success) == (3, "wrong\n", False)


def test_output_up_to_the_limit_comes_back(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "much")
    assert len(result.stdout) == 9_900_000
    assert not result.stdout_truncated


def test_a_timeout_is_the_workers(manager: SkillManager) -> None:
    result = manager.execute_skill_script("demo", "long", timeout=1)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert result.stdout == "began\n"


def test_output_comes_while_it_runs(manager: SkillManager) -> None:
    heard: list[tuple[float, bytes]] = []
    result = manager.execute_skill_script(
        "demo", "count", on_output=lambda _, data: heard.append((time.monotonic(), data))
    )
    assert b"".join(data for _, data in heard) == result.stdout.encode()
    assert len(heard) > 2
    assert heard[-1][0] - heard[0][0] > 0.5, "piece by piece, not all at the end"


def test_who_does_not_listen_is_sent_nothing_meanwhile(fleet: Fleet, manager: SkillManager) -> None:
    before = fleet.rows("select count(*) from output")
    manager.execute_skill_script("demo", "count")
    assert fleet.rows("select count(*) from output") == before


def test_cancel_reaches_it(manager: SkillManager) -> None:
    cancel, began = threading.Event(), threading.Event()

    def stop(_: str, __: bytes) -> None:
        began.set()
        cancel.set()

    result = manager.execute_skill_script("demo", "long", cancel=cancel, on_output=stop)
    assert result.cancelled
    assert result.execution_time_ms < 30_000
    assert nobody_left()


def test_cancel_is_told_within_a_second(fleet: Fleet, manager: SkillManager) -> None:
    """From the row to the worker: what the two machines need for it, apart from how loaded they are."""
    runner: Any = manager.runner
    run = runner.order(manager, "demo", "long")
    assert wait_for(
        lambda: fleet.rows("select 1 from runs where id = %s and started_seq is not null", uuid.UUID(run.id)), 30
    )
    asked = time.monotonic()
    run.cancel()
    assert run.result().cancelled
    assert time.monotonic() - asked < 5  # one second, and what a loaded machine adds
    assert run.state == "cancelled"


def test_an_async_call_waits_without_a_loop_and_cancels(manager: SkillManager) -> None:
    async def both() -> None:
        said = await manager.aexecute_skill_script("demo", "say", argv=["a"])
        assert json.loads(said.stdout)["argv"] == ["a"]
        task = asyncio.create_task(manager.aexecute_skill_script("demo", "long"))
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(both())
    assert nobody_left()


def test_many_at_once_each_get_their_own(manager: SkillManager) -> None:
    said: dict[str, str] = {}

    def run(word: str) -> None:
        said[word] = manager.execute_skill_script("demo", "say", argv=[word]).stdout

    threads = [threading.Thread(target=run, args=(f"w{n}",)) for n in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(90)
    assert {word: json.loads(text)["argv"] for word, text in said.items()} == {f"w{n}": [f"w{n}"] for n in range(12)}


def test_a_caller_that_is_gone_finds_its_run_by_id(fleet: Fleet, manager: SkillManager) -> None:
    runner: Any = manager.runner
    run = runner.order(manager, "demo", "say", argv=["again"])
    found = CeleryRunner(fleet.broker, state=fleet.address(fleet.front)).find(run.id)
    assert json.loads(found.result().stdout)["argv"] == ["again"]
    assert found.state == "finished"
    assert run.result().stdout == found.result().stdout, "as often as somebody asks"
    with pytest.raises(Exception, match="There is no run"):
        CeleryRunner(fleet.broker, state=fleet.address(fleet.front)).find(str(uuid.uuid4())).result()


def test_what_does_not_exist_is_told_here_and_on_record(fleet: Fleet, manager: SkillManager) -> None:
    before = fleet.kinds().get("refused", 0)
    with pytest.raises(ScriptNotFoundError):
        manager.execute_skill_script("demo", "nothing")
    assert fleet.kinds()["refused"] == before + 1


def test_a_path_of_this_machine_cannot_travel(fleet: Fleet, manager: SkillManager, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("data")
    with pytest.raises(ScriptRefusedError, match="a local path cannot travel"):
        manager.execute_skill_script("demo", "cat", argv=[str(tmp_path / "data.txt")])
    opening = fleet.manager(policy=STANDARD.__class__(allow_scripts=True, readable_paths=(tmp_path,)))
    with pytest.raises(ConfigurationError, match="a local path cannot travel"):
        opening.execute_skill_script("demo", "say")


def test_files_go_along_where_they_are_asked_for(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("what is in it")
    sending = fleet.manager(sending={"workspace": "inputs"}, workspace=tmp_path)
    assert sending.execute_skill_script("demo", "cat", argv=["data.txt"]).stdout == "what is in it\n"
    whole = sending.execute_skill_script("demo", "cat", argv=[str(tmp_path / "data.txt")])
    assert whole.stdout == "what is in it\n", whole
    with pytest.raises(ScriptRefusedError, match="a local path cannot travel"):
        sending.execute_skill_script("demo", "cat", argv=[str(tmp_path)])


def test_a_workspace_that_somebody_named_cannot_be_left_behind(
    fleet: Fleet, manager: SkillManager, tmp_path: Path
) -> None:
    before = fleet.kinds().get("refused", 0)
    with pytest.raises(ScriptRefusedError, match=rf"The workspace {tmp_path} lies on this machine.*volume"):
        manager.execute_skill_script("demo", "say", workspace=tmp_path)
    with pytest.raises(ScriptRefusedError, match=rf"The workspace {tmp_path} lies on this machine.*volume"):
        fleet.manager(workspace=tmp_path).execute_skill_script("demo", "say")
    assert fleet.kinds()["refused"] == before + 2, "on record"


def test_the_current_folder_that_nobody_named_is_left_out_and_the_question_says_so(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = current_workspace(tmp_path / "state")
    assert here is not None
    assert not here.is_named
    left_out = fleet.manager(GUARDED, workspace=here).prepare_skill_script("demo", "say")
    assert left_out.request is not None
    prompt = left_out.request.context["prompt"]
    assert not any("workspace" in sentence or str(tmp_path) in sentence for sentence in prompt["walls"])
    assert "It starts in the skill's folder." in prompt["walls"]
    data = fleet.manager(GUARDED, sending={"volumes": {"data": tmp_path}}, workspace=tmp_path)
    known = data.prepare_skill_script("demo", "say").request
    assert known is not None
    assert any("workspace volume:data" in sentence for sentence in known.context["prompt"]["walls"]), "the control"


def test_a_folder_of_the_workspace_cannot_be_sent(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/one.txt").write_text("one")
    sending = fleet.manager(sending={"workspace": "inputs"}, workspace=tmp_path)
    for word in ("reports", "./reports", "--from=reports"):
        with pytest.raises(ScriptRefusedError, match=r"names the folder .*reports.*only files are sent along"):
            sending.execute_skill_script("demo", "cat", argv=[word])
    assert sending.execute_skill_script("demo", "cat", argv=["reports/one.txt"]).stdout == "one\n"
    assert sending.execute_skill_script("demo", "say", argv=["nowhere"]).success, "any other word is a word"


def test_a_program_of_this_machine_cannot_travel(manager: SkillManager) -> None:
    with pytest.raises(ScriptRefusedError, match="a program of this machine"):
        manager.flow.execute(None, manager.call_for("true"))


def test_records_name_run_and_worker_and_the_chain_holds(fleet: Fleet, manager: SkillManager) -> None:
    manager.execute_skill_script("demo", "say")
    (fields,) = fleet.rows("select fields from audit where kind = 'finished' order by seq desc limit 1")[0]
    told = json.loads(fields)
    assert told["run"] in {row[0] for row in fleet.rows("select id::text from runs")}
    assert told["worker"]
    assert told["login"] == fleet.worker
    fleet.settle()
    fleet.verify()


def test_a_manager_with_a_runner_needs_a_shared_world(fleet: Fleet, tmp_path: Path) -> None:
    manager = SkillManager(fleet.skills, "", [], [], state_dir=tmp_path, runner=CeleryRunner(fleet.broker))
    with pytest.raises(ConfigurationError, match="need a shared world"):
        manager.execute_skill_script("demo", "say")
