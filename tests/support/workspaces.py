"""Workspaces with repositories, agent files, links and environments, and what is left of them after a script."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillkit import STANDARD, TRUSTED, ScriptExecutionResult, SkillManager
from support.skill_folders import skill_folder

__all__ = ["WALLS", "content_below", "git", "project", "run_in"]

WALLS = replace(STANDARD, sandbox="required")
IDENTITY = (
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "commit.gpgsign=false",
)


def git(folder: Path, *words: str) -> str:
    """What git answers, whatever this user has configured."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout


def project(folder: Path) -> Path:
    """A repository with a submodule, a worktree, files of agents and editors at several depths, and links."""
    library, workspace = folder / "library", folder / "workspace"
    for place in (library, workspace):
        place.mkdir(parents=True)
        git(place, "init", "-q")
        (place / "own-hooks").mkdir()
        for name in ("readme.txt", "own-hooks/pre-commit"):
            (place / name).write_text("plain\n")
        git(place, "add", ".")
        git(place, "commit", "-qm", "first")
    git(workspace, "submodule", "--quiet", "add", str(library), "parts/library")
    git(workspace, "worktree", "add", "-q", "trees/other")
    files = {
        "AGENTS.md": "be good\n",
        "packages/web/CLAUDE.md": "be good here\n",
        "packages/web/.vscode/settings.json": "{}\n",
        ".github/copilot-instructions.md": "be good\n",
        ".github/notes.txt": "plain\n",
        "real/settings.json": "{}\n",
        "tools/hooks/pre-commit": "exit 0\n",
        "tools/check.sh": "exit 0\n",
        "tools/plain.sh": "exit 0\n",
        ".envrc": "true\n",
        "free/plain.txt": "plain\n",
        "skillkit.toml": "",
    }
    for name, content in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(content)
    git(workspace, "config", "core.hooksPath", "tools/hooks")
    git(workspace / "parts/library", "config", "core.hooksPath", "own-hooks")
    (workspace / "middle").symlink_to("real")
    (workspace / ".claude").symlink_to("middle")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    (workspace / ".git/hooks/post-merge").symlink_to("../../tools/check.sh")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "second")
    return workspace


def content_below(folder: Path) -> dict[str, str]:
    """Every file and link by its path, with what is in it; a folder with nothing in it by its path alone."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes().decode("utf-8", "replace")
        elif path.is_dir() and not any(path.iterdir()):
            found[name] = "(folder)"
    return found


def run_in(workspace: Path, script: str, *, walls: bool = True, **settings: Any) -> ScriptExecutionResult:
    """A bash script that starts in the workspace, inside walls or with the caller's own rights."""
    place = workspace.parent
    skill_folder(place / "skills", "demo", files={"scripts/run.sh": f'cd "$SKILL_WORKSPACE" || exit 9\n{script}\n'})
    settings = {"policy": WALLS if walls else TRUSTED, "state_dir": place / "state", **settings}
    with SkillManager(place / "skills", "", [], [], workspace=workspace, **settings) as manager:
        return manager.execute_skill_script("demo", "run")
