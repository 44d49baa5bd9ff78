"""Packages prepared from the page: a button, the question, how far it is, and the run that waited for them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from support.package_index import PackageIndex
from support.page_visits import Visit, form_shown_ago, text_of, visiting

from skillkit import OptionRequest, SkillManager
from skillkit.approvers.store import StoreApprover
from skillkit.core.store.environments import Environments
from skillkit.core.values.policy import GUARDED
from skillkit.core.values.runs import ScriptExecutionResult
from skillkit.testing import skill_folder

CODE = "import zebra, lion; print(zebra.VERSION, lion.VERSION)"
SCRIPT = f'# /// script\n# dependencies = ["zebra"]\n# ///\n{CODE}'


@pytest.fixture
def visit(index: PackageIndex, tmp_path: Path) -> Iterator[Visit]:
    """A page whose skill declares one package and imports another, and an index that has both."""
    for name in ("zebra", "lion"):
        index.add(name, "1.0")
    skill_folder(tmp_path / "skills", "animals", {"scripts/run.py": SCRIPT})
    with (
        SkillManager("", "", [], [tmp_path / "skills"], policy=GUARDED, state_dir=tmp_path / "state") as manager,
        visiting(tmp_path / "state", manager=manager) as visit,
    ):
        yield visit


def token_in(page: str) -> str:
    (found,) = re.findall(r'action="/packages/animals"[^>]*><input type="hidden" name="token" value="([^"]+)"', page)
    return unescape(found)


def start(visit: Visit, token: str, act: str = "start") -> httpx.Response:
    return visit.client.post("/packages/animals", data={"token": token, "act": act}, headers=visit.origin)


def question(visit: Visit) -> OptionRequest:
    """The one that is about packages, once it is asked."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for each in visit.world.pending():
            if "packages" in each.context:
                return each
        time.sleep(0.05)
    pytest.fail("nothing was asked: " + text_of(visit.client.get("/packages/animals").text))


def answer(visit: Visit, asked: OptionRequest, option: str, *ticks: str) -> httpx.Response:
    form = {"token": visit.token(asked.id), "option": option, "grant": list(ticks)}
    return visit.client.post(f"/requests/{asked.id}/answer", data=form, headers=visit.origin)


def end(visit: Visit) -> str:
    """What the page says when it is over."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        page = visit.client.get("/packages/animals").text
        if "data-busy" not in page:
            return text_of(page)
        time.sleep(0.1)
    pytest.fail("it never ended")


def test_a_run_that_waits_gets_the_packages_that_were_prepared_beside_its_question(visit: Visit) -> None:
    manager = visit.server._manager
    assert manager is not None
    results: list[ScriptExecutionResult] = []
    manager.approver = StoreApprover(visit.world)
    run = threading.Thread(target=lambda: results.append(manager.execute_skill_script("animals", "run")))
    run.start()
    while not visit.world.pending():
        time.sleep(0.02)
    (waiting,) = visit.world.pending()
    page = visit.client.get(f"/requests/{waiting.id}").text
    assert "Prepare its packages" in page
    begun = start(visit, token_in(page))
    assert begun.status_code == 303
    asked = question(visit)
    shown = visit.client.get(f"/requests/{asked.id}")
    words = text_of(shown.text)
    assert "This is code that nobody here has read." in words
    assert re.search(r"zebra ?1\.0 ?1 kB ?100 days ago ?declared scripts/run\.py:2", words), words
    assert re.search(r"lion ?1\.0 ?1 kB ?100 days ago ?guessed scripts/run\.py:4", words), words
    assert re.findall(r'<input type="checkbox" name="grant" value="([^"]+)"', shown.text) == ["guessed:python:lion@1.0"]
    answered = answer(visit, asked, "yes_once", "guessed:python:lion@1.0")
    assert (answered.status_code, answered.headers["location"]) == (303, "/packages/animals")
    assert "Packages are prepared" in end(visit)
    assert "(packages)" in text_of(visit.client.get("/audit").text)
    for number in (1, 2):
        shown = visit.client.get(f"/audit/{number}")
        assert (shown.status_code, "animals" in shown.text) == (200, True), shown.text
    assert answer(visit, waiting, "yes_once").status_code == 303
    run.join(60)
    assert [result.stdout for result in results] == ["1.0 1.0\n"], results


def test_what_was_not_ticked_is_said_and_nothing_is_installed(visit: Visit) -> None:
    page = visit.client.get("/packages/animals").text
    assert "Nothing is installed before you say yes." in text_of(page)
    start(visit, token_in(page))
    answer(visit, question(visit), "yes_once")
    assert "these were not ticked. lion 1.0 (Python): guessed" in end(visit)
    assert Environments(visit.world.folder).all_built() == []
    assert visit.world.history(1)[0].answer is not None


def test_it_can_be_stopped_and_begun_again(visit: Visit, index: PackageIndex) -> None:
    index.hangs = True
    start(visit, token_in(visit.client.get("/packages/animals").text))
    page = visit.client.get("/packages/animals").text
    assert "looking up packages" in page
    assert "<progress" in page
    index.hangs = False
    index.stopping.set()
    asked = question(visit)
    start(visit, re.findall(r'name="token" value="([^"]+)"', visit.client.get("/packages/animals").text)[0], "stop")
    assert "No packages were prepared" in end(visit)
    assert asked.id not in [each.id for each in visit.world.pending()]
    assert start(visit, token_in(visit.client.get("/packages/animals").text)).status_code == 303
    answer(visit, question(visit), "no")
    assert "Declined by a person (web)" in end(visit)


def test_only_a_form_of_ours_begins_anything(visit: Visit) -> None:
    session = visit.client.cookies[visit.server.access.cookie_name]
    for token in ("", "1_2", form_shown_ago(visit.server.access, session, "packages of other", 1)):
        assert start(visit, token).status_code == 403
    page = visit.client.get("/packages/animals").text
    form = {"token": token_in(page), "act": "start"}
    assert visit.client.post("/packages/animals", data=form).status_code == 403, "no origin"
    other = {"origin": "http://evil.example"}
    assert visit.client.post("/packages/animals", data=form, headers=other).status_code == 403
    with visit.stranger() as stranger:
        assert stranger.post("/packages/animals", data=form, headers=visit.origin).status_code in (401, 403)
    assert visit.server._manager is not None
    assert "Prepare packages" in text_of(visit.client.get("/packages/animals").text), "nothing began"


def test_a_skill_that_the_page_does_not_know_has_no_button(visit: Visit, tmp_path: Path) -> None:
    assert visit.client.get("/packages/nobody").status_code == 404
    token = form_shown_ago(
        visit.server.access, visit.client.cookies[visit.server.access.cookie_name], "packages of nobody", 1
    )
    form = {"token": token, "act": "start"}
    assert visit.client.post("/packages/nobody", data=form, headers=visit.origin).status_code == 404
    skill_folder(tmp_path / "elsewhere", "animals", {"scripts/run.py": SCRIPT})
    with SkillManager("", "", [], [tmp_path / "elsewhere"], policy=GUARDED, state_dir=tmp_path / "state") as other:
        prepared = other.prepare_skill_script("animals", "run")
        assert prepared.request is not None
        visit.world.open(prepared.request, expires_in=60)
        page = visit.client.get(f"/requests/{prepared.request.id}").text
    assert "skillkit prepare animals" in page
    assert "Prepare its packages" not in page
