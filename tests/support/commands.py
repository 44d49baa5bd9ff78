"""A command made by hand, and what it gets, for tests of what is decided about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillkit.core.ask.reach import bounds_of
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.policy import GUARDED, ScriptPolicy
from skillkit.core.values.runs import ScriptCommand

__all__ = ["BOUNDS", "COMMAND", "WIDER", "bounds_under"]

COMMAND = ScriptCommand(
    skill_name="demo",
    digest="0" * 64,
    base_directory=Path("/skills/demo"),
    script_path=Path("/skills/demo/scripts/run.sh"),
    script_name="scripts/run.sh",
    interpreter="bash",
    allowed_tools=(),
    argv=("/bin/bash", "/skills/demo/scripts/run.sh"),
    cwd="/skills/demo",
    environment={},
    stdin=b"",
    timeout=30,
    output_limit=100,
    arguments=None,
    script_arguments=(),
    session_id=None,
    workspace=None,
)


def bounds_under(policy: ScriptPolicy, command: ScriptCommand | None = None, *, tier: str = "bubblewrap") -> Bounds:
    """Without a command, what trust is given for."""
    return bounds_of(policy, command, tier=tier, is_root=True)


BOUNDS = bounds_under(replace(GUARDED, home="fresh"), COMMAND)

WIDER: tuple[dict[str, object], ...] = (
    {"tier": "landlock"},
    {"tier": "none"},
    {"network": True},
    {"filesystem": True},
    {"workspace": "/workspace"},
    {"readable": ("/data",)},
    {"writable": ("/data",)},
    {"variables": ("TOKEN",)},
    {"all_variables": True},
    {"working_directory": "workspace"},
    {"home": "kept"},
    {"interpreter": "zsh"},
    {"program": ("/opt/bash", "/opt/bash")},
    {"limits": tuple((name, value + 1) for name, value in BOUNDS.limits)},
    {"seconds": BOUNDS.seconds + 1},
)
"""Each gives a run something that BOUNDS do not."""
