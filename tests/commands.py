"""A command made by hand, for tests of what is decided about it."""

from __future__ import annotations

from pathlib import Path

from skillkit.core.runs import ScriptCommand

__all__ = ["COMMAND"]

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
