"""What a run writes that was approved on the page: shown there while it goes on, to who is signed in, and bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.asking import in_threads, only_pending
from support.page_visits import Visit, text_of, visiting
from support.running import made_manager, wait_for

from skillkit import TRUSTED, SkillManager, World
from skillkit.approvers.store import StoreApprover
from skillkit.core.store.running import SHOWN_CHARACTERS

ASKING = replace(TRUSTED, approval="always")
TICKS = """
import sys, time
print("<script>alert(1)</script> \\x1b[2J\\u202eabc", flush=True)
print("to be warned", file=sys.stderr, flush=True)
for number in range(600):
    print("tick", number, flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    with visiting(tmp_path / "state") as made:
        yield made


@contextmanager
def asking(folder: Path, visit: Visit, source: str, **files: str) -> Iterator[SkillManager]:
    files = {"scripts/talk.py": source, **files}
    with made_manager(folder, files, policy=ASKING, approver=StoreApprover(visit.world)) as manager:
        yield manager


@contextmanager
def running(folder: Path, visit: Visit, channel: str = "web") -> Iterator[SkillManager]:
    """A script that writes until it is cancelled, approved through this channel."""
    cancel = threading.Event()
    with (
        asking(folder, visit, TICKS) as manager,
        in_threads(1, lambda: manager.execute_skill_script("demo", "talk.py", cancel=cancel)),
    ):
        try:
            request = only_pending(visit.world)
            if channel == "web":
                assert visit.answer(request.id, "yes_once").status_code == 303
            else:
                visit.world.answer(request.id, "yes_once", channel)
            yield manager
        finally:
            cancel.set()


def shown(visit: Visit, path: str) -> str:
    answer = visit.client.get(path)
    assert answer.status_code == 200
    return text_of(answer.text)


def test_it_is_shown_as_it_comes_and_for_a_while_after_and_goes_with_who_started_it(
    tmp_path: Path, visit: Visit
) -> None:
    with running(tmp_path, visit):
        assert wait_for(lambda: "tick 1" in shown(visit, "/"), seconds=60)
        number = visit.world.running()[0].run
        for path in ("/", "/running", "/audit", f"/audit/{number}"):
            page = shown(visit, path)
            assert "Running" in page
            assert "tick 1" in page
        later = visit.world.running()[0].written
        assert wait_for(lambda: visit.world.running()[0].written > later, seconds=60)
        page = visit.client.get(f"/audit/{number}").text
        assert "<script>alert" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert '<span class="unsaid">stderr: </span>to be warned' in page
        assert "Look again" in text_of(page), "for who has no JavaScript"
    assert visit.world.running() == []
    assert visit.world.output_of(number).pieces == (), "it went with the manager"
    assert "tick 1" not in shown(visit, f"/audit/{number}")


def test_a_run_that_is_over_at_once_can_still_be_read(tmp_path: Path, visit: Visit) -> None:
    with asking(tmp_path, visit, "print('all done')") as manager:
        with in_threads(1, lambda: manager.execute_skill_script("demo", "talk.py")) as (ran,):
            visit.answer(only_pending(visit.world).id, "yes_once")
            assert ran.result(60).stdout == "all done\n"
        assert "Ended scripts/talk.py of demo after" in shown(visit, "/")
        assert "Ended scripts/talk.py" not in shown(visit, "/audit"), "there it is one of the rows"
        (ended,) = visit.world.running(with_ended=True)
        page = shown(visit, f"/audit/{ended.run}")
        assert "all done" in page
        assert "Succeeded" in page
        assert "the record keeps none of it" in page
    assert "Ended scripts" not in shown(visit, "/")


def test_of_a_run_that_was_approved_elsewhere_nothing_is_kept(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, visit, channel="terminal"):
        assert wait_for(lambda: "No end on record yet" in shown(visit, "/audit"), seconds=60)
        assert visit.world.running(with_ended=True) == []
        assert "tick" not in shown(visit, "/running")


def test_who_is_not_signed_in_sees_nothing_of_it(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, visit), visit.stranger() as stranger:
        assert wait_for(lambda: "tick" in shown(visit, "/running"), seconds=60)
        number = visit.world.running()[0].run
        for path in ("/running", f"/audit/{number}", "/"):
            refused = stranger.get(path)
            assert refused.status_code == 401
            assert "tick" not in refused.text


def test_secrets_are_masked_and_the_rest_is_bounded(
    tmp_path: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that the skill was given, split over two writes, and one that only looks like a key."""
    monkeypatch.setenv("API_TOKEN", "hunter22hunter22")
    shaped = "ghp_" + "a1B2" * 9
    source = f"""
import os, sys, time
key = os.environ["API_TOKEN"]
for _ in range(20_000):
    print("a line that is long enough to be too much in the end")
for piece in (key[:8], key[8:], "\\n", {shaped!r}, "\\n"):
    sys.stdout.write(piece)
    sys.stdout.flush()
    time.sleep(0.05)
"""
    policy = replace(ASKING, pass_environment=(), grantable=("secret",))
    with made_manager(
        tmp_path, {"scripts/talk.py": source}, policy=policy, approver=StoreApprover(visit.world)
    ) as manager:
        manager.grant("demo", secrets=["API_TOKEN"])
        with in_threads(1, lambda: manager.execute_skill_script("demo", "talk.py")) as (ran,):
            visit.answer(only_pending(visit.world).id, "yes_once")
            assert "hunter22hunter22" in ran.result(60).stdout, "a person's own program sees what the script printed"
        (ended,) = visit.world.running(with_ended=True)
        kept = visit.world.output_of(ended.run)
        text = "".join(piece for _, piece in kept.pieces)
        assert text.count("[masked]") >= 1
        assert "hunter22" not in text
        assert shaped not in text
        assert len(text) <= SHOWN_CHARACTERS
        assert kept.left_out > 900_000
        page = shown(visit, f"/audit/{ended.run}")
        assert "hunter22" not in page
        assert f"{kept.left_out:,} characters before them" in page
    with World(tmp_path / "state") as world:
        assert world.running(with_ended=True) == []
    assert b"long enough to be too much" not in (tmp_path / "state" / "state.sqlite3").read_bytes()
