"""What holds without a question is on the page, and can be ended there; what was approved leads to how its run ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.approving import asking_manager, run, trust_demo
from support.page_visits import Visit, text_of, visiting

from skillkit import SkillManager
from skillkit.core.store.skills import StandingGrants
from skillkit.core.store.state import StateStore
from skillkit.core.values.needs import Grant
from skillkit.testing import ScriptedApprover


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    """Of a world with one of each: trust, an approval for a session, a grant."""
    with asking_manager(tmp_path, ScriptedApprover("yes_in_session")) as manager:
        run(manager, "one")
        digest = manager.load_skill("demo").digest
    trust_demo(tmp_path)
    store = StateStore(tmp_path / "state")
    folder = tmp_path / "skills/demo"
    StandingGrants(store).give([Grant("host", "a.example")], skill="demo", folder=folder, digest=digest, channel="cli")
    store.close()
    with visiting(tmp_path / "state") as made:
        yield made


def forms(visit: Visit) -> list[dict[str, str]]:
    page = visit.client.get("/standing").text
    tokens, names = (re.findall(rf'name="{field}" value="([^"]+)"', page) for field in ("token", "name"))
    return [{"token": token, "name": name} for token, name in zip(tokens, names, strict=True)]


def test_each_can_be_ended_and_the_others_stay(visit: Visit) -> None:
    said = text_of(visit.client.get("/standing").text)
    for words in ("runs for good", "runs in one session", "the host a.example"):
        assert words in said
    for left in (2, 1, 0):
        ended = visit.client.post("/standing/end", data=forms(visit)[0], headers=visit.origin)
        assert (ended.status_code, ended.headers["location"]) == (303, "/standing?ended=1")
        assert len(forms(visit)) == left
    assert "Nothing holds" in text_of(visit.client.get("/standing").text)
    assert visit.world.session_approvals() == []


def test_nothing_ends_without_our_own_form(visit: Visit) -> None:
    first, second, _ = forms(visit)
    assert (
        visit.client.post("/standing/end", data={**first, "token": second["token"]}, headers=visit.origin).status_code
        == 403
    )
    assert visit.client.post("/standing/end", data={"name": first["name"]}, headers=visit.origin).status_code == 403
    assert visit.client.post("/standing/end", data=first, headers={"origin": "http://evil.example"}).status_code == 403
    assert visit.client.post("/standing/end", data=first).status_code == 403
    with visit.stranger() as guest:
        assert guest.post("/standing/end", data=first, headers=visit.origin).status_code == 401
    assert len(forms(visit)) == 3


def run_as_asked(manager: SkillManager, visit: Visit, option: str, *argv: str) -> str:
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import suppress

    from support.asking import only_pending

    from skillkit import ApprovalDeclinedError

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, manager, *argv)
        name = only_pending(visit.world).id
        assert visit.answer(name, option).status_code == 303
        with suppress(ApprovalDeclinedError):
            running.result(30)
    return name


def test_history_shows_what_was_approved_and_how_its_run_ended(tmp_path: Path) -> None:
    from skillkit.approvers.store import StoreApprover

    with visiting(tmp_path / "state") as visit, asking_manager(tmp_path, StoreApprover(visit.world)) as manager:
        yes = run_as_asked(manager, visit, "yes_once", "--pages", "1-3")
        no = run_as_asked(manager, visit, "no", "--other")
        history = visit.client.get("/history").text
        assert "--pages" in text_of(history)
        assert ("Succeeded" in history, "Refused" in history) == (True, True)
        closed = visit.client.get(f"/requests/{yes}").text
        assert "Succeeded" in closed
        number = re.findall(r'href="/audit/(\d+)"', closed)[0]
        detail = text_of(visit.client.get(f"/audit/{number}").text)
        for words in ("Given", "1-3", "yes_once", "On record at its end", "exit_code"):
            assert words in detail, words
        assert "Refused" in visit.client.get(f"/requests/{no}").text


def test_the_same_asked_twice_is_told_apart_by_how_each_ended(tmp_path: Path) -> None:
    """Both have one id; the yes was shown with the refusal of the other."""
    from skillkit.approvers.store import StoreApprover

    with visiting(tmp_path / "state") as visit, asking_manager(tmp_path, StoreApprover(visit.world)) as manager:
        yes, no = (run_as_asked(manager, visit, option, "--same") for option in ("yes_once", "no"))
        assert yes == no
        rows = visit.client.get("/history").text.partition("<tbody>")[2].split("<tr>")[1:]
    told = [("Yes once" in row, "Succeeded" in row, "Refused" in row) for row in rows]
    assert told == [(False, False, True), (True, True, False)]


def test_history_and_audit_tell_time_in_one_way(tmp_path: Path) -> None:
    from skillkit.approvers.store import StoreApprover

    with visiting(tmp_path / "state") as visit, asking_manager(tmp_path, StoreApprover(visit.world)) as manager:
        run_as_asked(manager, visit, "yes_once")
        for path in ("/history", "/audit"):
            page = visit.client.get(path).text
            assert len(re.findall(r'<time datetime="[^"]+\+00:00" data-local>[^<]+ UTC</time>', page)) == 1, path
            assert "Time (UTC)" not in page
