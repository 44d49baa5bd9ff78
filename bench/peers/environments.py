"""Ranges of versions -> an environment for each runtime with the newest in its range, made on request and kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.driver import PROJECT, Candidate

__all__ = ["FOLDER", "installed_peers", "plain_python"]

FOLDER = PROJECT / ".tools" / "peers"
MODULES = {
    "skillkit": "skillkit_0_4",
    "pydantic-ai-skills": "pydantic_ai_skills",
    "agno": "agno",
    "google-adk": "google_adk",
    "agent-framework-core": "agent_framework",
    "deepagents": "deepagents",
    "openai-agents": "openai_agents",
    "strands-agents": "strands_agents",
}


def installed_peers(environments: Path = FOLDER) -> list[Candidate]:
    """Every runtime; one that cannot be installed says why instead."""
    return [peer(package, module, environments / package) for package, module in MODULES.items()]


def plain_python(folder: Path = FOLDER / "python") -> Path:
    """Where a python3 is that has nothing but pip: what a machine's own one loads at its start would slow some only."""
    if not (folder / "bin" / "pip").exists():
        make_environment(folder, "--seed")
    return folder / "bin"


def peer(package: str, module: str, folder: Path) -> Candidate:
    requirements = Path(__file__).with_name(f"requirements-{package}.txt")
    wanted = requirements.read_text()
    done = folder / "installed.txt"
    if not done.exists() or not done.read_text().startswith(wanted):
        print(f"Installing {package} ...", file=sys.stderr)
        try:
            version = install(folder, requirements, package)
        except (OSError, subprocess.CalledProcessError) as error:
            return Candidate(package, module, missing=f"the installer failed: {reason(error)}")
        done.write_text(wanted + version)
    version = done.read_text().removeprefix(wanted)
    return Candidate(f"{package} {version}", module, folder / "bin" / "python")


def install(folder: Path, requirements: Path, package: str) -> str:
    """Which version it is. By uv: pip looks for a fitting set of versions for many minutes."""
    make_environment(folder)
    python = folder / "bin" / "python"
    subprocess.run([uv_program(), "pip", "install", "--quiet", "--python", python, "-r", requirements], check=True)
    ask: list[str | Path] = [python, "-c", f"import importlib.metadata as found; print(found.version({package!r}))"]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()


def make_environment(folder: Path, *options: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    base = Path(sys.base_prefix) / "bin" / "python3"
    subprocess.run([uv_program(), "venv", "--quiet", *options, "--python", base, folder], check=True)


def uv_program() -> Path:
    if found := shutil.which("uv"):
        return Path(found)
    own = PROJECT / ".tools" / "bin" / "uv"
    if not own.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", own.parents[1], "uv"], check=True)
    return own


def reason(error: OSError | subprocess.CalledProcessError) -> str:
    """Without paths and addresses, which the terminal has shown already."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit code {error.returncode}"
    return error.strerror or "it could not be started"
