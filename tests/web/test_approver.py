"""Asking by the page: found or started, shown or only named, answered like everywhere."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from support.asking import answered_by_thread, in_threads, only_pending, request_named
from support.desktops import Desktop
from support.running import made_manager, only_record

from skillkit import GUARDED, ApprovalUnavailableError, World
from skillkit.core.exceptions import ApprovalDeclinedError
from skillkit.web.approver import LocalPage, WebApprover
from skillkit.web.presence import running_page

SCRIPTS = {"scripts/hello.sh": "echo hello\n"}


def answer_by_page(folder: Path, option_id: str) -> None:
    """As a program with the owner's rights does it: by the page's own API."""
    with World(folder) as world:
        request = only_pending(world)
    page = running_page(folder)
    assert page is not None
    response = httpx.post(
        f"{page.address}/api/v1/requests/{request.id}/answer",
        json={"option_id": option_id},
        headers={"Authorization": f"Bearer {page.token}"},
    )
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(("option_id", "runs"), [("yes_once", True), ("no", False)])
def test_a_script_runs_only_after_a_yes_on_the_page(tmp_path: Path, option_id: str, runs: bool) -> None:
    state = tmp_path / "state"
    with (
        WebApprover(state) as approver,
        made_manager(tmp_path, SCRIPTS, policy=GUARDED, approver=approver) as manager,
        in_threads(1, lambda: manager.execute_skill_script("demo", "hello")) as (running,),
    ):
        answer_by_page(state, option_id)
        if runs:
            assert running.result(30).stdout == "hello\n"
        else:
            with pytest.raises(ApprovalDeclinedError):
                running.result(30)
    kept = only_record(tmp_path, "started" if runs else "refused")
    assert (kept["answer"], kept["channel"]) == (option_id, "web")


def test_one_page_serves_all_questions_and_goes_with_the_approver(tmp_path: Path) -> None:
    with WebApprover(tmp_path) as approver:
        assert running_page(tmp_path) is None, "nothing is served before the first question"
        for name in ("first", "second"):
            asked = request_named(name)
            answer = answered_by_thread(approver.page.world, lambda asked=asked: approver.ask(asked), "no")  # type: ignore[misc]
            assert answer.channel == "test"
            assert approver.page.is_ours
        address = approver.page.address()
        assert httpx.get(address).status_code == 401
    assert running_page(tmp_path) is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_a_page_that_serves_the_world_already_is_used(tmp_path: Path) -> None:
    with LocalPage(tmp_path) as first, LocalPage(tmp_path) as second:
        address = first.address()
        assert second.address() == address
        assert not second.is_ours
        link = second.link()
        assert link.startswith(f"{address}/login?token=")
        assert httpx.get(link).status_code == 303
        assert httpx.get(link).status_code == 401


def test_who_has_no_token_gets_no_link(tmp_path: Path) -> None:
    with LocalPage(tmp_path) as page:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            refused = httpx.post(f"{page.address()}/api/v1/login-links", headers=headers)
            assert refused.status_code == 401
            assert "token=" not in refused.text


def test_asked_to_it_opens_the_browser_once_and_notifies_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    for name in ("xdg-open", "notify-send"):
        desktop.install(name)
    with WebApprover(tmp_path / "state", open_browser=True) as approver:
        answered_by_thread(approver.page.world, lambda: approver.ask(request_named("first")), "no")
        (link,) = desktop.wait_for("xdg-open")
        assert httpx.get(link).status_code == 303
        answered_by_thread(approver.page.world, lambda: approver.ask(request_named("second")), "no")
        desktop.wait_for("notify-send")
        assert len(desktop.started("xdg-open")) == 1


def test_unasked_it_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    for name in ("xdg-open", "notify-send"):
        desktop.install(name)
    with WebApprover(tmp_path / "state") as approver:
        answered_by_thread(approver.page.world, lambda: approver.ask(request_named("first")), "no")
    assert desktop.started("xdg-open") == desktop.started("notify-send") == []


def test_silence_is_not_approved(tmp_path: Path) -> None:
    with WebApprover(tmp_path, expires_in=0.2) as approver, pytest.raises(ApprovalUnavailableError, match="in time"):
        approver.ask(request_named("first"))


def test_a_cancelled_question_ends(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with WebApprover(tmp_path) as approver, pytest.raises(ApprovalUnavailableError, match="cancelled"):
        approver.ask(request_named("first"), cancel)


def test_where_no_page_can_be_served_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with WebApprover(tmp_path / "file") as approver, pytest.raises(ApprovalUnavailableError, match="cannot be served"):
        approver.ask(request_named("first"))
