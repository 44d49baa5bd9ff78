"""The API: the same requests and answers as JSON, for whoever holds the token."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.page_visits import Visit, asked, visiting

from skillkit import OptionRequest


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with visiting(tmp_path_factory.mktemp("world")) as made:
        yield made


def test_requests_are_listed_without_and_shown_with_what_they_carry(visit: Visit) -> None:
    asked(visit.world, "listed")
    listed = visit.client.get("/api/v1/requests", headers=visit.bearer).json()
    assert listed["schema_version"] == 1
    (summary,) = [each for each in listed["requests"] if each["id"] == "listed"]
    assert (summary["state"], [option["id"] for option in summary["options"]]) == (
        "pending",
        ["yes_once", "yes_in_session", "no"],
    )
    assert "context" not in summary
    shown = visit.client.get("/api/v1/requests/listed", headers=visit.bearer).json()["request"]
    assert shown["context"]["prompt"]["skill"] == "demo"


def test_an_answer_counts_once_and_a_later_one_hears_of_it(visit: Visit) -> None:
    request = asked(visit.world, "answered")
    place = "/api/v1/requests/answered/answer"
    choice = {"option_id": "yes_once", "created_at": request.created_at}
    first = visit.client.post(place, json=choice, headers=visit.bearer)
    assert first.status_code == 200
    assert (first.json()["answer"]["option_id"], first.json()["answer"]["channel"]) == ("yes_once", "web")
    second = visit.client.post(place, json={"option_id": "no"}, headers=visit.bearer)
    assert second.status_code == 409
    assert second.json()["error"]["code"] == "already_answered"
    assert second.json()["answer"]["option_id"] == "yes_once"
    assert visit.client.get("/api/v1/requests/answered", headers=visit.bearer).json()["request"]["state"] == "answered"


def test_an_answer_for_an_earlier_question_of_the_same_id_is_refused(visit: Visit) -> None:
    request = asked(visit.world, "anew")
    choice = {"option_id": "no", "created_at": request.created_at - 5}
    refused = visit.client.post("/api/v1/requests/anew/answer", json=choice, headers=visit.bearer)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "asked_anew")
    assert isinstance(visit.world.find("anew"), OptionRequest)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"option_id": "maybe"}', "no_such_option"),
        (b'{"option_id": 1}', "bad_answer"),
        (b'{"option_id": "no", "created_at": "then"}', "bad_answer"),
        (b"[]", "bad_answer"),
        (b"[" * 50_000, "bad_answer"),
        (b"\xff", "bad_answer"),
        (b"", "bad_answer"),
    ],
)
def test_what_is_no_answer_is_told_so(visit: Visit, body: bytes, code: str) -> None:
    asked(visit.world, "bodies")
    refused = visit.client.post("/api/v1/requests/bodies/answer", content=body, headers=visit.bearer)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)


def test_the_token_is_needed_and_the_cookie_is_not_enough(visit: Visit) -> None:
    asked(visit.world, "guarded")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {visit.server.access.api_token}"}):
        refused = visit.client.post(
            "/api/v1/requests/guarded/answer", json={"option_id": "no"}, headers={**headers, **visit.origin}
        )
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json()["error"]["code"] == "no_token"
    foreign = {**visit.bearer, "origin": "http://127.0.0.1:1"}
    assert visit.client.get("/api/v1/requests", headers=foreign).status_code == 403
    assert visit.client.get("/", headers={**visit.bearer, "cookie": ""}).status_code == 401, "the token is for the API"
    done = visit.client.post("/api/v1/requests/guarded/answer", json={"option_id": "no"}, headers=visit.bearer)
    assert done.status_code == 200


def test_what_is_missing_or_over_is_told_so(visit: Visit) -> None:
    request = asked(visit.world, "over", expires_in=0.01)
    for place, method, status, code in (
        ("requests/unknown", "GET", 404, "not_found"),
        ("requests/unknown/answer", "POST", 404, "not_found"),
        ("nowhere", "GET", 404, "not_found"),
        ("requests", "DELETE", 405, "method_not_allowed"),
        (f"requests/{request.id}/answer", "POST", 410, "expired"),
    ):
        answer = visit.client.request(method, f"/api/v1/{place}", headers=visit.bearer, content='{"option_id": "no"}')
        assert (place, answer.status_code, answer.json()["error"]["code"]) == (place, status, code)


def test_events_come_with_the_token(visit: Visit) -> None:
    asked(visit.world, "streamed")
    with visit.stranger(headers=visit.bearer) as program, program.stream("GET", "/api/v1/events") as response:
        line = next(line for line in response.iter_lines() if line.startswith("data: "))
    assert "streamed" in json.loads(line[6:])["pending"]


def test_the_description_names_every_call_and_what_it_can_answer(visit: Visit) -> None:
    with visit.stranger() as program:
        description = program.get("/api/v1/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    assert set(description["paths"]) == {
        "/requests",
        "/requests/{request_id}",
        "/requests/{request_id}/answer",
        "/events",
        "/login-links",
        "/openapi.json",
    }
    described = description["components"]["schemas"]["RequestSummary"]["properties"]
    asked(visit.world, "described")
    listed = visit.client.get("/api/v1/requests", headers=visit.bearer).json()["requests"][0]
    assert set(listed) == set(described)
    text = json.dumps(description)
    references = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references <= set(description["components"]["schemas"])
