"""The home of a skill on workers: kept in a volume that all of them map, or new each time, and never half of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fleets import Fleet, ordered_again
from support.skill_folders import skill_folder

from skillkit import GUARDED, STANDARD, ConfigurationError, ScriptPolicy, ScriptRefusedError, SkillManager, World
from skillkit.cli.elsewhere import runner_here
from skillkit.core.values.questions import Prompt
from skillkit.fleet import CeleryRunner, FleetRun
from skillkit.fleet.work.volumes import Volumes

pytestmark = pytest.mark.slow
ADD = 'echo "$1" >> ~/.notes; sort ~/.notes | tr "\\n" " "\n'
KEEP = 'mkdir -p ~/.kept; touch ~/.kept/"$1"\n'
FILL = "head -c ${1}000000 /dev/zero > ~/.filled\n"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    place = tmp_path / "volume"
    place.mkdir()
    return place


def notes(fleet: Fleet) -> Path:
    scripts = {"scripts/add.sh": ADD, "scripts/keep.sh": KEEP, "scripts/fill.sh": FILL}
    return skill_folder(fleet.skills, "notes", files=scripts)


def asked_of(fleet: Fleet, policy: ScriptPolicy = STANDARD, **sending: Any) -> SkillManager:
    return fleet.manager(policy, sending={"homes": "homes", **sending})


def order(manager: SkillManager, script: str, *argv: str, skill: str = "notes") -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, skill, script, argv=argv)
    return run


def keeping(volume: Path) -> dict[str, Any]:
    return {"volumes": {"homes": volume}, "homes": "homes"}


def test_two_workers_that_map_the_same_volume_have_the_same_home(fleet: Fleet, volume: Path) -> None:
    notes(fleet)
    managers = []
    for label in ("one", "two"):
        words = ("--policy", "standard", "--volume", f"homes={volume}", "--homes", "homes", "--label", label)
        fleet.start_worker(*words, "--queues", fleet.queue("bash", label))
        managers.append(asked_of(fleet, label=label))
    said = [each.execute_skill_script("notes", "add", argv=[word]) for each, word in zip(managers, "ab", strict=True)]
    assert [each.stdout.strip() for each in said] == ["a", "a b"]
    workers = fleet.rows("select distinct worker from runs where state = 'finished'")
    assert len(workers) == 2, "each ran on a worker of its own"
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(managers[n % 2].execute_skill_script, "notes", "keep", argv=[str(n)]) for n in range(12)]
        assert all(each.result().success for each in runs)
    (kept,) = volume.glob("*/homes/notes-*/1/.kept")
    assert {each.name for each in kept.iterdir()} == {str(n) for n in range(12)}
    fleet.verify()


def test_a_script_that_keeps_something_is_refused_before_anything_is_ordered(quiet: Fleet) -> None:
    notes(quiet)
    manager = quiet.manager()
    with pytest.raises(ScriptRefusedError, match="homes of workers are gone after each run") as refused:
        order(manager, "add", "a")
    assert "~/.notes" in str(refused.value)
    assert "skillkit worker --volume NAME=FOLDER --homes NAME" in str(refused.value)
    assert quiet.rows("select count(*) from runs") == [(0,)]
    assert order(manager, "nap", "0", skill="demo").state == "queued", "one that keeps nothing is ordered"
    fresh = quiet.manager(replace(STANDARD, home="fresh"))
    run = order(fresh, "add", "a")
    assert quiet.worker_here().run(run.id) == "finished", "who wants new homes gets them"
    assert run.result().stdout == "a "


def test_a_worker_without_the_volume_refuses_and_says_what_to_do(quiet: Fleet, volume: Path) -> None:
    notes(quiet)
    manager = asked_of(quiet)
    others: dict[str, Any] = {"volumes": {"others": volume}, "homes": "others"}
    for options in ({}, others):
        run = order(manager, "add", "a")
        assert quiet.worker_here(**options).run(run.id) == "refused"
        with pytest.raises(ScriptRefusedError, match="--volume homes=FOLDER --homes homes"):
            run.result()
    run = order(manager, "add", "a")
    assert quiet.worker_here(**keeping(volume)).run(run.id) == "finished"
    assert list(volume.glob("*/homes/notes-*/1/.notes"))
    assert "started" in quiet.kinds()


def test_a_worker_whose_own_policy_keeps_no_home_keeps_none(quiet: Fleet, volume: Path) -> None:
    notes(quiet)
    run = order(asked_of(quiet), "add", "a")
    assert quiet.worker_here(replace(STANDARD, home="fresh"), **keeping(volume)).run(run.id) == "refused"
    with pytest.raises(ScriptRefusedError, match=r"policy\.home is 'kept', looser than the worker's own"):
        run.result()
    assert list(volume.iterdir()) == []


def test_an_order_cannot_have_a_home_that_it_does_not_say(quiet: Fleet, volume: Path) -> None:
    """What a person is shown of the home is the policy's word, and the volume is part of the order."""
    notes(quiet)
    data = volume.with_name("data")
    data.mkdir()
    worker = quiet.worker_here(volumes={"homes": volume, "data": data}, homes="homes")
    run = order(asked_of(quiet), "add", "secret")
    assert worker.run(run.id) == "finished"
    assert worker.run(ordered_again(quiet, run.id, homes="")) == "refused"
    assert worker.run(ordered_again(quiet, run.id, workspace=f"homes/{quiet.world}")) == "refused", "no workspace"
    assert worker.run(ordered_again(quiet, run.id, workspace="homes")) == "refused"
    assert "holds homes" in str(quiet.rows("select fields from audit where kind = 'refused' order by seq desc limit 1"))
    assert worker.run(ordered_again(quiet, run.id)) == "finished", "the very same order is run"


def test_a_link_in_a_volume_is_no_workspace(quiet: Fleet, tmp_path: Path) -> None:
    """A script of one workspace could make one that leads to another, and what is shown is the name of the link."""
    data = tmp_path / "data"
    for name in ("a", "b"):
        (data / name).mkdir(parents=True)
    (data / "b/secret").write_text("of b")
    (data / "a/link").symlink_to("../b")
    (data / "a/real").mkdir()
    skill_folder(quiet.skills, "look", files={"scripts/look.sh": 'ls "$SKILL_WORKSPACE"\n'})
    worker = quiet.worker_here(volumes={"data": data})
    run = order(quiet.manager(sending={"volumes": {"data": data}}, workspace=data / "b"), "look", skill="look")
    assert worker.run(run.id) == "finished"
    walls = json.loads(quiet.rows("select content from runs where id = %s", uuid.UUID(run.id))[0][0])["walls"]

    def ordered(workspace: str) -> str:
        named = walls.replace("volume:data/b", f"volume:{workspace}")
        return worker.run(ordered_again(quiet, run.id, workspace=workspace, walls=named))

    assert ordered("data/a/real") == "finished", "the control"
    for other in ("data/a/link", "data/a/../b", "data/a/link/../b", "data/./b"):
        assert ordered(other) == "refused", other


def test_a_changed_skill_begins_with_an_empty_home_where_a_person_is_asked(quiet: Fleet, volume: Path) -> None:
    folder = notes(quiet)
    worker = quiet.worker_here(GUARDED, **keeping(volume))

    def run_it(word: str) -> Any:
        run = order(asked_of(quiet, GUARDED), "add", word)
        with World(quiet.folder / "person", state=quiet.address(quiet.approver)) as person:
            (asked,) = person.pending()
            shown = Prompt.from_context(asked.context)
            assert shown is not None
            assert any("which is kept for its next runs" in wall for wall in shown.walls)
            person.answer(asked.id, "yes_once", "test")
        assert worker.run(run.id) == "finished"
        return run.result()

    assert [run_it(word).stdout for word in "ab"] == ["a ", "a b "]
    (folder / "scripts/add.sh").write_text(f"# another\n{ADD}")
    changed = run_it("c")
    assert changed.stdout == "c "
    assert f"skillkit home notes --homes {volume}" in changed.hint
    (folder / "scripts/add.sh").write_text(ADD)
    assert run_it("d").stdout == "a b d ", "what it was before has its own"


def test_a_home_that_holds_too_much_is_refused_everywhere_until_it_is_cleared(quiet: Fleet, volume: Path) -> None:
    notes(quiet)
    small = replace(STANDARD, limits=replace(STANDARD.limits, home_megabytes=1))
    manager = asked_of(quiet, small)
    workers = [quiet.worker_here(**keeping(volume)) for _ in range(2)]
    first = order(manager, "fill", "2")
    assert workers[0].run(first.id) == "finished"
    remedy = f"skillkit home notes --homes {volume} --clear"
    assert remedy in first.result().hint
    second = order(manager, "add", "a")
    assert workers[1].run(second.id) == "refused"
    with pytest.raises(ScriptRefusedError, match="more than the 1 MB"):
        second.result()
    words = [sys.executable, "-m", *remedy.split(), "--state", quiet.address(quiet.front)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(volume)})
    assert done.returncode == 0, done.stderr
    assert "Cleared the home of notes: 1 file, 2.0 MB gone." in done.stdout
    third = order(manager, "add", "a")
    assert workers[1].run(third.id) == "finished"
    assert third.result().stdout == "a "


def test_two_worlds_share_no_home(databases: Any, quiet: Fleet, volume: Path, tmp_path: Path) -> None:
    from support.fleets import MEMORY, fleet_at

    notes(quiet)
    with fleet_at(databases, MEMORY, tmp_path / "other") as other:
        notes(other)
        for fleet, word in ((quiet, "a"), (other, "b")):
            run = order(asked_of(fleet), "add", word)
            assert fleet.worker_here(**keeping(volume)).run(run.id) == "finished"
            assert run.result().stdout == f"{word} "
    assert len(list(volume.glob("*/homes/notes-*"))) == 2


def test_on_the_command_line_a_variable_names_the_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_BROKER", "memory://")
    assert runner_here().homes == ""
    monkeypatch.setenv("SKILLKIT_HOMES", "homes")
    assert runner_here().homes == "homes"


def test_a_volume_holds_homes_or_workspaces(volume: Path) -> None:
    below = volume / "below"
    below.mkdir()
    for given in ({"homes": below, "data": volume}, {"homes": volume, "data": below}, {"homes": below, "data": below}):
        with pytest.raises(ConfigurationError, match="could read other skills' homes"):
            Volumes(given, "homes")
    with pytest.raises(ConfigurationError, match="--volume homes=FOLDER"):
        Volumes({"data": volume}, "homes")
    with pytest.raises(ConfigurationError, match="Name two volumes"):
        CeleryRunner("memory://", volumes={"homes": volume}, homes="homes")
