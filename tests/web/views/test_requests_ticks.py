"""What a person ticks on the page, without any JavaScript."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.page_visits import Visit, prompt_of, visiting

from skillkit import OptionRequest
from skillkit.core.values.needs import Need
from skillkit.core.values.questions import OPTIONS, Tick

KEY, GIT = Tick("secret:API_KEY", "the key API_KEY"), Tick("write:/w/.git", 'write <b>"/w/.git"</b>', "Git obeys it.")
NEEDS = (Need("secret", "API_KEY", "declared", "SKILL.md:3", remedy="skillkit grant demo --secret API_KEY"),)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with visiting(tmp_path_factory.mktemp("world")) as made:
        yield made


def opened(visit: Visit, name: str) -> OptionRequest:
    context = prompt_of(needs=NEEDS, had=("the key OLD",)).to_context()
    request = OptionRequest(name, f"Run {name}?", "", OPTIONS, context, grants=(KEY, GIT))
    return visit.world.open(request, expires_in=60)


def answer(visit: Visit, request_id: str, option: str, **more: Any) -> httpx.Response:
    form = {"token": visit.token(request_id), "option": option, **more}
    return visit.client.post(f"/requests/{request_id}/answer", data=form, headers=visit.origin)


def test_each_tick_is_a_box_that_is_not_checked(visit: Visit) -> None:
    page = visit.client.get(f"/requests/{opened(visit, 'boxes').id}").text
    boxes = re.findall(r'<input type="checkbox"[^>]*>', page)
    assert len(boxes) == 2
    assert not any("checked" in box for box in boxes)
    assert "Git obeys it." in page
    assert "<b>" not in page.partition("<main")[2]
    assert "skillkit grant demo --secret API_KEY" in page
    assert "Before it changed it had: the key OLD." in page


@pytest.mark.parametrize(
    ("option", "grants"), [("yes_once", [KEY.id]), ("yes_in_session", [KEY.id, GIT.id]), ("yes_once", [])]
)
def test_a_yes_carries_what_is_checked(visit: Visit, option: str, grants: list[str]) -> None:
    name = f"yes-{option}-{len(grants)}"
    opened(visit, name)
    assert answer(visit, name, option, grant=grants).status_code == 303
    given = visit.world.collect(name)
    assert given is not None
    assert (given.option_id, list(given.grants), given.channel) == (option, grants, "web")


def test_what_was_not_offered_is_refused_and_the_question_stays(visit: Visit) -> None:
    opened(visit, "other")
    for grants in (["secret:OTHER"], [KEY.id, "again"]):
        assert answer(visit, "other", "yes_once", grant=grants).status_code == 400
    assert visit.world.collect("other") is None
    assert answer(visit, "other", "no").status_code == 303


def test_a_no_opens_nothing_and_may_say_why(visit: Visit) -> None:
    opened(visit, "no")
    assert answer(visit, "no", "no", grant=[KEY.id], reason="Not today.").status_code == 303
    given = visit.world.collect("no")
    assert given is not None
    assert (given.option_id, given.grants, given.reason) == ("no", (), "Not today.")


def test_the_api_offers_and_takes_the_same(visit: Visit) -> None:
    opened(visit, "api")
    place = "/api/v1/requests/api"
    told = visit.client.get(place, headers=visit.bearer).json()["request"]
    assert [tick["id"] for tick in told["grants"]] == [KEY.id, GIT.id]
    for bad, error in (
        ({"grants": ["x"]}, "no_such_grant"),
        ({"grants": "x"}, "bad_answer"),
        ({"reason": 1}, "bad_answer"),
    ):
        refused = visit.client.post(f"{place}/answer", json={"option_id": "yes_once", **bad}, headers=visit.bearer)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, error)
    choice = {"option_id": "yes_once", "grants": [KEY.id], "reason": ""}
    answered = visit.client.post(f"{place}/answer", json=choice, headers=visit.bearer).json()["answer"]
    assert (answered["grants"], answered["reason"]) == ([KEY.id], "")


@pytest.mark.parametrize("signer", ["author@example.com", "nobody known here; until now <author> had signed it", ""])
def test_the_page_says_who_signed_it_or_had_until_now(visit: Visit, signer: str) -> None:
    context = prompt_of(signer=signer).to_context()
    request = visit.world.open(OptionRequest(f"signed-{len(signer)}", "Run it?", "", OPTIONS, context), expires_in=60)
    page = visit.client.get(f"/requests/{request.id}").text
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert ("Signed by" in text) == bool(signer)
    assert signer in text
