"""skillkit of this folder, under the profile that the second argument names.

GUARDED is measured where it is the default, in the tools of an agent; the skill `work` is trusted as a person would
trust it, no other one is. STANDARD and TRUSTED are for Python callers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.peers.workers.serving import Run, serve
from skillkit import ScriptExecutionResult, SkillManager
from skillkit.core.values.policy import PROFILES
from skillkit.integrations.functions import ScriptToolResult, SkillFunctions
from skillkit.present.tool_result import run_text

PROFILE, STATE = sys.argv[2], Path(sys.argv[3])


def make(skills: Path, timeout: int | None) -> Run:
    if PROFILE == "guarded":
        return as_an_agent(skills, timeout)
    manager = SkillManager(skills, "", [], [], timeout, policy=PROFILES[PROFILE], state_dir=STATE)
    return manager.execute_skill_script


def as_an_agent(skills: Path, timeout: int | None) -> Run:
    trust = [sys.executable, "-m", "skillkit", "trust", "add", "work", "--yes"]
    subprocess.run([*trust, "--skills", skills, "--state-dir", STATE], check=True, stdout=subprocess.DEVNULL)
    functions = SkillFunctions(SkillManager(skills, "", [], [], timeout, state_dir=STATE))
    return lambda skill, script: functions.call("skills_run_script", {"skill_name": skill, "script": script})


def told(answer: ScriptToolResult | ScriptExecutionResult) -> str:
    return answer.content if isinstance(answer, ScriptToolResult) else run_text(answer)


if __name__ == "__main__":
    serve(make, told)
