"""Pinned requirements -> an environment for each runtime, made on request and kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.driver import PROJECT, Candidate

__all__ = ["FOLDER", "installed_peers"]

FOLDER = PROJECT / ".tools" / "peers"
MODULES = {
    "skillkit": "skillkit_0_4",
    "pydantic-ai-skills": "pydantic_ai_skills",
    "agno": "agno",
    "google-adk": "google_adk",
}


def installed_peers(environments: Path = FOLDER) -> list[Candidate]:
    """Every runtime; one that cannot be installed says why instead."""
    return [peer(package, module, environments / package) for package, module in MODULES.items()]


def peer(package: str, module: str, folder: Path) -> Candidate:
    requirements = Path(__file__).with_name(f"requirements-{package}.txt")
    pinned = requirements.read_text()
    name = pinned.split()[0].replace("==", " ")
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != pinned:
        print(f"Installing {name} ...", file=sys.stderr)
        try:
            install(folder, requirements)
        except (OSError, subprocess.CalledProcessError) as error:
            return Candidate(name, module, missing=f"the installer failed: {reason(error)}")
        done.write_text(pinned)
    return Candidate(name, module, folder / "bin" / "python")


def install(folder: Path, requirements: Path) -> None:
    """By uv: pip looks for a fitting set of versions for many minutes."""
    uv = uv_program()
    shutil.rmtree(folder, ignore_errors=True)
    base = Path(sys.base_prefix) / "bin" / "python3"
    subprocess.run([uv, "venv", "--quiet", "--python", base, folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "-r", requirements], check=True)


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
