"""The browser that is opened, the notification that tells, and when neither happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asking import request_named
from support.desktops import Desktop
from support.running import wait_for

from skillkit import World
from skillkit.web.desktop import Notifier, notify, open_browser, show_window

LINK = "http://127.0.0.1:1/login?token=secret"


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    return Desktop(tmp_path, monkeypatch)


def test_the_link_goes_to_the_desktop_s_own_launcher(desktop: Desktop) -> None:
    desktop.install("xdg-open")
    assert open_browser(LINK)
    assert desktop.wait_for("xdg-open") == [LINK]


def test_without_a_screen_nothing_is_started(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    desktop.install("xdg-open")
    desktop.install("notify-send")
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not open_browser(LINK)
    assert not notify(lambda: LINK)


def test_a_notification_says_that_something_waits_and_nothing_else(desktop: Desktop) -> None:
    desktop.install("notify-send")
    desktop.install("xdg-open")
    assert notify(lambda: LINK)
    said = desktop.wait_for("notify-send")
    assert "A skill's script waits for your answer on the approval page." in said
    assert not [word for word in said if "yes" in word or "token" in word]
    assert desktop.started("xdg-open") == []


def test_its_button_opens_the_page(desktop: Desktop) -> None:
    desktop.install("notify-send", "print('open')")
    desktop.install("xdg-open")
    assert notify(lambda: LINK)
    assert desktop.wait_for("xdg-open") == [LINK]


def test_one_that_knows_no_buttons_still_tells(desktop: Desktop) -> None:
    desktop.install("notify-send", "sys.exit(any(word.startswith('--action') for word in sys.argv))")
    assert notify(lambda: LINK)
    assert not [word for word in desktop.wait_for("notify-send", times=2) if word.startswith("--action")]


def test_every_new_question_is_told_once(tmp_path: Path) -> None:
    told: list[int] = []
    with World(tmp_path / "state") as world:
        world.open(request_named("old"))
        with Notifier(world, lambda: told.append(1)):
            world.open(request_named("new"))
            assert wait_for(lambda: told)
            world.open(request_named("newer"))
            assert wait_for(lambda: len(told) == 2)
        assert len(told) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('Running as root without --no-sandbox is not supported.')", "does not run as root"),
        ("sys.exit('cannot open display')", "cannot open display"),
        ("sys.exit(3)", "it said nothing"),
    ],
)
def test_a_window_that_fails_says_why_and_the_browser_is_next(desktop: Desktop, body: str, words: str) -> None:
    desktop.install("chromium", body)
    desktop.install("xdg-open")
    said: list[str] = []
    assert show_window(LINK, said.append) == "browser"
    assert len(said) == 1
    assert "chromium failed" in said[0]
    assert words in said[0]
    assert "token" not in said[0]
