"""This machine and a world -> the ways in which a person can be asked here, and how to get those that are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.run.own_programs import own_program
from skillkit.web import require_web
from skillkit.web.desktop import LAUNCHERS, has_desktop
from skillkit.web.presence import running_page
from skillkit.web.window import BROWSERS

__all__ = ["ChannelHealth", "channels"]

TERMINAL = "/dev/tty"
NO_DESKTOP = "there is no desktop here (neither DISPLAY nor WAYLAND_DISPLAY is set)"


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """A way to ask a person: whether it works here, and what it is or lacks."""

    name: str
    works: bool
    remark: str


def channels(state: Path) -> list[ChannelHealth]:
    elsewhere = ChannelHealth("elsewhere", works=True, remark="another terminal: skillkit approvals list")
    return [terminal(), elsewhere, page(state), window(), notification()]


def terminal() -> ChannelHealth:
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return ChannelHealth("terminal", works=False, remark="this program was started without one")
    return ChannelHealth("terminal", works=True, remark="the one you sit at")


def page(state: Path) -> ChannelHealth:
    try:
        require_web()
    except ConfigurationError as error:
        return ChannelHealth("page", works=False, remark=str(error))
    running = running_page(state)
    remark = f"served at {running.address}; skillkit web gives a link" if running else "start it: skillkit web"
    return ChannelHealth("page", works=True, remark=remark)


def window() -> ChannelHealth:
    if not has_desktop():
        return ChannelHealth("window", works=False, remark=NO_DESKTOP)
    if find_spec("webview") is not None:
        return ChannelHealth("window", works=True, remark="pywebview: skillkit approvals --window")
    program = own_program(*BROWSERS, *(name for names in LAUNCHERS.values() for name in names))
    remark = f"{program}: skillkit approvals --window" if program else "install Chromium, or skillkit-runtime[desktop]"
    return ChannelHealth("window", works=bool(program), remark=remark)


def notification() -> ChannelHealth:
    if not has_desktop():
        return ChannelHealth("notification", works=False, remark=NO_DESKTOP)
    program = own_program("notify-send")
    if not program and find_spec("desktop_notifier") is None:
        remedy = "install it: sudo apt-get install libnotify-bin"
        return ChannelHealth("notification", works=False, remark=remedy)
    return ChannelHealth("notification", works=True, remark=program or "desktop-notifier")
