"""What there is to know about one agent host: how to start it, what it asks by itself, how its form is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.doc_pages import ROOT
from support.hosts.model import ScriptedModel
from support.hosts.screen import HostScreen
from support.hosts.world import HostWorld

__all__ = ["INSTALLED", "VERSIONS", "Host", "installed", "nothing"]

VERSIONS: dict[str, dict[str, str]] = json.loads((ROOT / "tools/hosts.json").read_text(encoding="utf-8"))
INSTALLED = ROOT / ".tools/hosts"


def nothing(_: HostWorld, __: ScriptedModel) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Host:
    name: str
    argv: tuple[str, ...]
    environment: Callable[[HostWorld, ScriptedModel], Mapping[str, str]] = nothing
    """Its model is ours, and it tells nobody what it does."""
    settle: Callable[[HostWorld, ScriptedModel], object] = nothing
    """Writes what its first start would ask for: its looks, its login, whether this folder is trusted."""
    ready: str = ""
    """What stands on the screen when it takes words."""
    gates: Mapping[str, str] = field(default_factory=dict)
    """Its own questions, as they stand on the screen -> the keys that say yes."""
    form: str = ""
    """What stands on the screen while our form is up; empty where it has none."""
    say_yes_once: Callable[[HostScreen], None] | None = None
    cancel: tuple[str, ...] = ("\x1b",)
    cancels_by_quitting: bool = False
    """Where its own key tells the server nothing."""
    form_begins: str = ""
    """The row before our words in the form; where there is none, they begin with the row that names the script."""
    form_rows: int = 8
    """In how many rows what runs, its risks and its reach must stand; hosts that wrap long lines need more."""


def installed(name: str) -> Path | None:
    """The folder of its programs; None where this version is not installed."""
    folder = INSTALLED / name
    noted = folder / "installed"
    if not noted.is_file() or noted.read_text(encoding="utf-8").strip() != VERSIONS[name]["version"]:
        return None
    return folder / "node_modules/.bin"
