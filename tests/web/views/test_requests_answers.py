"""An answer in the page: whose it is, what it is for, and that the first one wins."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support.page_visits import Visit, asked, expire, form_shown_ago, prompt_of, text_of, visiting

from skillkit import Option, OptionRequest
from skillkit.web.access import FORM_SECONDS
from skillkit.web.views.answers import CAREFUL_SECONDS
from skillkit.web.views.prompt import fingerprint


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with visiting(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.parametrize("option", ["yes_once", "yes_in_session", "no"])
def test_each_button_gives_its_answer(visit: Visit, option: str) -> None:
    request = asked(visit.world, f"each-{option}")
    answered = visit.answer(request.id, option)
    assert answered.status_code == 303
    assert f"?answered={request.id}" in answered.headers["location"]
    answer = visit.world.collect(request.id)
    assert answer is not None
    assert (answer.option_id, answer.channel) == (option, "web")
    assert f"Run {request.id}?" in text_of(visit.client.get(answered.headers["location"]).text)


def test_a_form_without_its_token_is_shown_again_and_answers_nothing(visit: Visit) -> None:
    request, other = asked(visit.world, "tokens"), asked(visit.world, "tokens-of-another")
    with visit.stranger() as guest:
        guest.get(visit.server.login_url().removeprefix(visit.server.address))
        page = guest.get(f"/requests/{request.id}").text
        foreign = page.partition('name="token" value="')[2].partition('"')[0]
    for token in ("", "x", "1.0_" + "0" * 64, visit.token(other.id), foreign):
        refused = visit.answer(request.id, "no", token)
        assert (refused.status_code, token) == (403, token)
        assert "Look at it again" in refused.text
    assert visit.answer(request.id, "no").status_code == 303


def test_a_page_that_was_open_for_too_long_must_be_looked_at_again(visit: Visit) -> None:
    request = asked(visit.world, "old-page")
    found = visit.world.find(request.id)
    assert isinstance(found, OptionRequest)
    access = visit.server.access
    session = visit.client.cookies[access.cookie_name]
    old = form_shown_ago(access, session, fingerprint(found), FORM_SECONDS + 1)
    assert visit.answer(request.id, "yes_once", old).status_code == 403
    younger = form_shown_ago(access, session, fingerprint(found), FORM_SECONDS - 60)
    assert visit.answer(request.id, "yes_once", younger).status_code == 303


def quickly_answered(visit: Visit, name: str) -> tuple[str, str, httpx.Response]:
    """A yes as soon as the page is there: the request, the form's token, and what came back."""
    request = asked(visit.world, name)
    token = visit.token(request.id, is_old_enough=False)
    return request.id, token, visit.answer(request.id, "yes_once", token)


def test_a_yes_that_comes_too_quickly_is_not_taken(visit: Visit) -> None:
    # On a machine so slow that a click takes longer than that, nothing is too quick.
    tries = (quickly_answered(visit, f"quick-{number}") for number in range(20))
    request_id, token, quick = next(each for each in tries if each[2].status_code != 303)
    assert quick.status_code == 425
    assert "too quick" in quick.text
    time.sleep(CAREFUL_SECONDS)
    assert visit.answer(request_id, "yes_once", token).status_code == 303


def test_a_no_may_come_at_once(visit: Visit) -> None:
    request = asked(visit.world, "quick-no")
    assert visit.answer(request.id, "no", visit.token(request.id, is_old_enough=False)).status_code == 303


@pytest.mark.parametrize("option", ["maybe", "", "YES_ONCE", "yes_once "])
def test_only_the_requests_own_options_count(visit: Visit, option: str) -> None:
    request = asked(visit.world, "own-options")
    assert visit.answer(request.id, option).status_code == 400
    assert isinstance(visit.world.find(request.id), OptionRequest)


def test_two_options_in_one_form_are_none(visit: Visit) -> None:
    request = asked(visit.world, "two-options")
    body = f"token={visit.token(request.id)}&option=no&option=yes_once"
    headers = {**visit.origin, "content-type": "application/x-www-form-urlencoded"}
    assert visit.client.post(f"/requests/{request.id}/answer", content=body, headers=headers).status_code == 400


def test_a_replayed_answer_is_told_who_was_first(visit: Visit) -> None:
    request = asked(visit.world, "replayed")
    token = visit.token(request.id)
    assert visit.answer(request.id, "no", token).status_code == 303
    again = visit.answer(request.id, "yes_once", token)
    assert again.status_code == 409
    assert "“No” was the answer, given through web." in text_of(again.text)


def test_an_answer_from_elsewhere_is_named_with_its_channel(visit: Visit) -> None:
    request = asked(visit.world, "elsewhere")
    token = visit.token(request.id)
    visit.world.answer(request.id, "yes_in_session", "cli")
    late = visit.answer(request.id, "no", token)
    assert late.status_code == 409
    assert "“Yes in this session” was the answer, given through cli." in text_of(late.text)
    assert visit.client.get(f"/requests/{request.id}").status_code == 200, "looking back is no mistake"


def test_an_answer_is_not_for_a_later_question_of_the_same_id(visit: Visit) -> None:
    """The second click of a double click must not approve the next run."""
    request = asked(visit.world, "asked-twice")
    token = visit.token(request.id)
    assert visit.answer(request.id, "yes_once", token).status_code == 303
    visit.world.collect(request.id)
    asked(visit.world, "asked-twice")
    assert visit.answer(request.id, "yes_once", token).status_code == 403
    assert visit.answer(request.id, "yes_once").status_code == 303


def test_an_expired_request_cannot_be_answered(visit: Visit) -> None:
    request = asked(visit.world, "expiring")
    token = visit.token(request.id)
    expire(visit.world, request.id)
    late = visit.answer(request.id, "yes_once", token)
    assert late.status_code == 410
    assert "expired" in late.text
    assert visit.client.get(f"/requests/{request.id}").status_code == 410


def test_of_many_answers_at_once_one_counts(visit: Visit) -> None:
    request = asked(visit.world, "raced")
    token = visit.token(request.id)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: visit.answer(request.id, "yes_once", token).status_code, range(8)))
    assert sorted(statuses) == [303] + [409] * 7


def test_a_flood_is_not_read_to_its_end(visit: Visit) -> None:
    request = asked(visit.world, "flooded")
    headers = {**visit.origin, "content-type": "application/x-www-form-urlencoded"}
    answer = visit.client.post(f"/requests/{request.id}/answer", content=b"option=" + b"x" * 1_000_000, headers=headers)
    assert answer.status_code == 413
    many = visit.client.post(f"/requests/{request.id}/answer", content=b"option=no&" * 30, headers=headers)
    assert many.status_code == 403, "as any other form that is not ours"


@pytest.mark.parametrize("wrong", [{"walls": [1]}, {"commands": []}, {"risks": [{}]}, {"skill": None}])
def test_what_cannot_be_shown_can_only_be_declined(visit: Visit, wrong: dict[str, object]) -> None:
    broken = {**prompt_of().to_context()["prompt"], **wrong}
    options = (Option("yes_once", "Yes once"), Option("no", "No"))
    request = visit.world.open(OptionRequest(f"broken-{next(iter(wrong))}", "Run?", "", options, {"prompt": broken}))
    page = visit.client.get(f"/requests/{request.id}")
    assert page.status_code == 200
    assert 'value="no"' in page.text
    assert 'value="yes_once"' not in page.text
    assert visit.answer(request.id, "yes_once").status_code == 400
    assert visit.client.get("/").status_code == 200
    assert visit.answer(request.id, "no").status_code == 303


def test_an_unknown_request_is_not_found(visit: Visit) -> None:
    assert visit.client.get("/requests/unknown").status_code == 404
    form = {"token": "x", "option": "no"}
    assert visit.client.post("/requests/unknown/answer", data=form, headers=visit.origin).status_code == 404
    assert visit.client.post("/requests/unknown", headers=visit.origin).status_code == 405


def test_after_an_answer_comes_the_next_request_and_then_the_list(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit:
        for name in ("one", "two"):
            asked(visit.world, name)
        first, second = (visit.answer(name, "no").headers["location"] for name in ("one", "two"))
        assert (first, second) == ("/requests/two?answered=one", "/?answered=two")


def test_a_yes_for_the_session_counts_the_others_that_it_may_cover(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit:
        for name in ("one", "two", "three"):
            asked(visit.world, name)
        asked(visit.world, "other", prompt_of(skill="another"))
        location = visit.answer("one", "yes_in_session").headers["location"]
        assert location == "/?answered=one&covered=2"
        assert "2 other requests of the same skill and session" in text_of(visit.client.get(location).text)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[tuple[Visit, dict[str, str]]]:
    """Three alike and one that is not, with the fields of the form on the list."""
    with visiting(tmp_path) as visit:
        for number in range(3):
            asked(visit.world, f"r{number}", prompt_of(argv=(f"--page={number}",)))
        asked(visit.world, "other", prompt_of(skill="another"))
        page = visit.client.get("/").text
        fields = {name: re.findall(rf'name="{name}" value="([^"]+)"', page) for name in ("token", "group")}
        yield visit, {name: found for name, (found,) in fields.items()}


def decline(visit: Visit, fields: dict[str, str], **headers: str) -> httpx.Response:
    return visit.client.post("/groups/answer", data=fields, headers={**visit.origin, **headers})


def test_a_no_to_a_group_answers_exactly_its_requests_with_one_reason(group: tuple[Visit, dict[str, str]]) -> None:
    visit, fields = group
    answered = decline(visit, {**fields, "reason": "too many"})
    assert (answered.status_code, answered.headers["location"]) == (303, "/?declined=3")
    assert [request.id for request in visit.world.pending()] == ["other"]
    answers = [past.answer for past in visit.world.history() if past.answer]
    assert {(each.option_id, each.channel, each.reason) for each in answers} == {("no", "web", "too many")}


def test_a_group_that_is_not_as_it_was_shown_is_not_answered(group: tuple[Visit, dict[str, str]]) -> None:
    visit, fields = group
    assert decline(visit, {**fields, "token": "x"}).status_code == 403
    assert decline(visit, {**fields, "group": "0" * 16}).status_code == 403
    assert decline(visit, fields, origin="http://evil.example").status_code == 403
    asked(visit.world, "r3", prompt_of(argv=("--page=3",)))
    late = decline(visit, fields)
    assert (late.status_code, "The group changed" in late.text) == (403, True)
    assert len(visit.world.pending()) == 5
