"""skillkit of this folder, under the profile that the second argument names.

GUARDED is measured where it is the default, in the tools of an agent; every skill but `unseen` is trusted as a person
would trust it. STANDARD and TRUSTED are for Python callers.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from bench.peers.workers.serving import Run, serve
from skillkit import ScriptExecutionResult, SkillManager
from skillkit.core.values.policy import PROFILES
from skillkit.integrations.functions import ScriptToolResult, SkillFunctions
from skillkit.present.tool_result import run_text

TRUST = """
import sys
from skillkit.cli.main import cli
for name in sys.argv[1].split(","):
    cli.main(["trust", "add", name, *sys.argv[2:]], standalone_mode=False)
"""
PROFILE, STATE = sys.argv[2], Path(sys.argv[3])


def make(skills: Path, timeout: int | None) -> Run:
    if PROFILE == "guarded":
        return as_an_agent(skills, timeout)
    manager = SkillManager(skills, "", [], [], timeout, policy=PROFILES[PROFILE], state_dir=STATE)
    return manager.execute_skill_script


def as_an_agent(skills: Path, timeout: int | None) -> Run:
    trust(skills)
    functions = SkillFunctions(SkillManager(skills, "", [], [], timeout, state_dir=STATE))
    return lambda skill, script: functions.call("skills_run_script", {"skill_name": skill, "script": script})


@cache
def trust(skills: Path) -> None:
    """By the command, in one process for all of them."""
    names = [folder.name for folder in skills.iterdir() if folder.name != "unseen"]
    places: list[str | Path] = ["--yes", "--skills", skills, "--state-dir", STATE]
    subprocess.run([sys.executable, "-c", TRUST, ",".join(names), *places], check=True, stdout=subprocess.DEVNULL)


def told(answer: ScriptToolResult | ScriptExecutionResult) -> str:
    return answer.content if isinstance(answer, ScriptToolResult) else run_text(answer)


if __name__ == "__main__":
    serve(make, told)
