"""Another package named skillkit; it has the import name of ours, so it lives in an environment of its own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers.workers.serving import Run, serve


def make(skills: Path, timeout: int | None) -> Run:
    manager = import_module("skillkit").SkillManager(project_skill_dir=skills, anthropic_config_dir="", plugin_dirs=[])
    manager.discover()
    return lambda skill, script: manager.execute_skill_script(skill, Path(script).stem, {}, timeout=timeout)


def told(result: Any) -> str:  # noqa: ANN401 - of a package that is not installed here
    return f"{result.stdout}\n{result.stderr}\nexit code {result.exit_code}"


if __name__ == "__main__":
    serve(make, told)
