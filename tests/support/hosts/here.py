"""Which hosts a run sits down with."""

from __future__ import annotations

import os

from support.hosts.known import HOSTS

__all__ = ["HOSTS_HERE"]

IN_A_HURRY = ("claude-code", "codex", "copilot", "gemini", "goose", "opencode")
"""Those that most people use; HOSTS=all adds the others."""
HOSTS_HERE = [name for name in HOSTS if name in IN_A_HURRY or os.environ.get("HOSTS") == "all"]
