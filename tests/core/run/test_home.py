"""A home that stays between runs of one skill, in each kind of walls."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager, only_record

from skillkit import GUARDED, LOCKED, STANDARD, ScriptPolicy, SkillManager
from skillkit.core.exceptions import ScriptRefusedError
from skillkit.core.store.homes import Homes
from skillkit.core.values.policy import Limits
from skillkit.testing import ScriptedApprover

KEPT = replace(STANDARD, sandbox="required")
GROCERIES = """
import json, pathlib, sys
file = pathlib.Path.home() / ".groceries.json"
items = json.loads(file.read_text()) if file.exists() else []
if sys.argv[1:]:
    items.append(sys.argv[1])
    file.write_text(json.dumps(items))
    print("Added")
print(items)
"""
WAITER = """
import pathlib, time
file = pathlib.Path.home() / "there"
until = time.monotonic() + 20
while not file.exists() and time.monotonic() < until:
    time.sleep(0.01)
print(file.exists())
"""
FILLER = """
import os, pathlib
(pathlib.Path.home() / "big").write_bytes(os.urandom({bytes}))
"""


def run(manager: SkillManager, *words: str, script: str = "run") -> str:
    result = manager.execute_skill_script("demo", script, argv=words)
    assert result.success, result.stderr
    return result.stdout.strip()


def grocery_list(folder: Path, policy: ScriptPolicy = KEPT, **settings: Any) -> SkillManager:
    return made_manager(folder, {"scripts/run.py": GROCERIES}, policy=policy, **settings)


def homes_of(folder: Path) -> Homes:
    return Homes(folder / "state")


@pytest.mark.usefixtures("tier")
def test_what_a_script_says_it_added_is_there_at_its_next_run(tmp_path: Path) -> None:
    with grocery_list(tmp_path) as manager:
        assert run(manager, "Milk") == "Added\n['Milk']"
        assert run(manager) == "['Milk']"
    with grocery_list(tmp_path) as manager:
        assert run(manager) == "['Milk']"


@pytest.mark.usefixtures("tier")
def test_a_fresh_home_forgets(tmp_path: Path) -> None:
    with grocery_list(tmp_path, replace(KEPT, home="fresh")) as manager:
        assert run(manager, "Milk") == "Added\n['Milk']"
        assert run(manager) == "[]"
    assert not (tmp_path / "state/homes").exists()


def test_profiles_say_whether_the_home_stays() -> None:
    assert [each.home for each in (GUARDED, STANDARD, LOCKED, ScriptPolicy())] == ["kept", "kept", "fresh", "fresh"]


@pytest.mark.usefixtures("tier")
def test_runs_at_the_same_time_share_the_home(tmp_path: Path) -> None:
    files = {
        "scripts/wait.py": WAITER,
        "scripts/run.py": "import pathlib\n(pathlib.Path.home() / 'there').write_text('')",
    }
    said: list[str] = []
    with made_manager(tmp_path, files, policy=KEPT) as manager:
        other = threading.Thread(target=lambda: said.append(run(manager, script="wait")))
        other.start()
        run(manager)
        other.join()
    assert said == ["True"]


@pytest.mark.usefixtures("tier")
def test_a_home_stays_through_a_change_where_nobody_is_asked(tmp_path: Path) -> None:
    with grocery_list(tmp_path) as manager:
        run(manager, "Milk")
        (tmp_path / "skills/demo/scripts/run.py").write_text(GROCERIES + "# changed\n")
        assert run(manager) == "['Milk']"


@pytest.mark.usefixtures("tier")
def test_a_changed_skill_gets_an_empty_home_where_a_person_is_asked(tmp_path: Path) -> None:
    script = tmp_path / "skills/demo/scripts/run.py"
    asking = replace(KEPT, approval="first_run")
    with grocery_list(tmp_path, asking, approver=ScriptedApprover(*["yes_once"] * 9)) as manager:
        run(manager, "Milk")
        assert run(manager) == "['Milk']"
        script.write_text(GROCERIES + "# changed\n")
        changed = manager.execute_skill_script("demo", "run", argv=["Bread"])
        assert changed.stdout == "Added\n['Bread']\n"
        assert "began with an empty home" in changed.hint
        assert not manager.execute_skill_script("demo", "run").hint
        assert run(manager) == "['Bread']"
        script.write_text(GROCERIES)
        assert run(manager) == "['Milk']", "content that was approved before finds its own home"


@pytest.mark.usefixtures("tier")
def test_the_home_from_before_a_change_is_kept_when_a_person_says_so(tmp_path: Path) -> None:
    asking = replace(KEPT, approval="first_run")
    skill = tmp_path / "skills/demo"
    homes = homes_of(tmp_path)
    with grocery_list(tmp_path, asking, approver=ScriptedApprover(*["yes_once"] * 9)) as manager:
        run(manager, "Milk")
        (skill / "scripts/run.py").write_text(GROCERIES + "# changed\n")
        assert run(manager) == "[]"
        digest = only_last_digest(tmp_path)
        offered = homes.from_before("demo", skill, digest)
        assert offered is not None
        assert offered.files == 1
        homes.keep("demo", skill, digest)
        assert run(manager) == "['Milk']"
        assert homes.from_before("demo", skill, digest) is None


def only_last_digest(folder: Path) -> str:
    from support.running import records_of

    return str([each.fields["digest"] for each in records_of(folder) if each.kind == "started"][-1])


def test_a_new_skill_has_nothing_from_before(tmp_path: Path) -> None:
    homes = homes_of(tmp_path)
    assert homes.from_before("demo", tmp_path, "a" * 64) is None
    homes.open("demo", tmp_path, "a" * 64, stays=False)
    assert homes.from_before("demo", tmp_path, "b" * 64) is None, "nothing was left in it"


def test_homes_of_many_contents_do_not_pile_up(tmp_path: Path) -> None:
    homes = homes_of(tmp_path)
    for number in range(20):
        home = homes.open("demo", tmp_path, f"{number}", stays=False)
        (home.path / "kept").touch()
    assert len(homes.others("demo", tmp_path)) == 8
    for number in range(20, 40):  # an empty one is used again
        homes.open("demo", tmp_path, f"{number}", stays=False)
    assert homes.find("demo", tmp_path).path.name == "21"  # type: ignore[union-attr]


@pytest.mark.usefixtures("tier")
def test_a_home_that_holds_too_much_is_told_and_the_next_run_refused(tmp_path: Path) -> None:
    small = replace(KEPT, limits=Limits(home_megabytes=1))
    files = {"scripts/fill.py": FILLER.format(bytes=2_000_000), "scripts/run.py": "print('ran')"}
    with made_manager(tmp_path, files, policy=small) as manager:
        result = manager.execute_skill_script("demo", "fill")
        assert result.success
        assert "2 MB" in result.hint
        assert "skillkit home demo --clear" in result.hint
        with pytest.raises(ScriptRefusedError, match="skillkit home demo --clear"):
            run(manager)
        assert only_record(tmp_path, "refused")["error"] == "ScriptRefusedError"
        homes_of(tmp_path).clear("demo", tmp_path / "skills/demo")
        assert run(manager) == "ran"


@pytest.mark.usefixtures("tier")
def test_a_person_who_makes_room_by_hand_is_believed(tmp_path: Path) -> None:
    small = replace(KEPT, limits=Limits(home_megabytes=1))
    files = {"scripts/fill.py": FILLER.format(bytes=2_000_000), "scripts/run.py": "print('ran')"}
    with made_manager(tmp_path, files, policy=small) as manager:
        manager.execute_skill_script("demo", "fill")
        home = homes_of(tmp_path).find("demo", tmp_path / "skills/demo")
        assert home is not None
        (home.path / "big").unlink()
        assert run(manager) == "ran"


def test_a_file_with_holes_counts_by_what_it_takes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1_000_000_000)
    (tmp_path / "link").symlink_to("/usr")
    os.link(tmp_path / "sparse", tmp_path / "again")
    size = Homes.measure(tmp_path)
    assert size.files == 3
    assert size.bytes < 1_000_000
    assert size.is_whole


def test_what_is_too_deep_to_measure_counts_as_too_much(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 70)).mkdir(parents=True)
    assert Homes.measure(tmp_path).is_above(1_000_000)


def test_the_question_says_that_the_home_is_kept(tmp_path: Path) -> None:
    with grocery_list(tmp_path, GUARDED) as manager:
        told = manager.prepare_skill_script("demo", "run").request
        assert told is not None
        assert "It has a home folder of its own, which is kept for its next runs." in str(told.context)
