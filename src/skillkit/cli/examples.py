"""The skills that ship with skillkit: where they are, and a copy of them to try things on."""

from __future__ import annotations

import shutil
from pathlib import Path

import skillkit
from skillkit.core.exceptions import ConfigurationError

__all__ = ["copy_examples", "example_skills"]


def example_skills() -> Path:
    """Inside the package when installed, beside it in a checkout."""
    package = Path(skillkit.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples" / "skills"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"The example skills are missing from {package}. Install skillkit-runtime again.")


def copy_examples(target: Path) -> tuple[list[str], list[str]]:
    """The names of those that were copied, and of those that were there and are left as they are."""
    copied, left = list[str](), list[str]()
    try:
        for skill in sorted(example_skills().iterdir()):
            if (target / skill.name).exists():
                left.append(skill.name)
            elif skill.is_dir():
                shutil.copytree(skill, target / skill.name, ignore=shutil.ignore_patterns("__pycache__"))
                copied.append(skill.name)
    except OSError as error:
        raise ConfigurationError(
            f"The example skills cannot be copied to {target}: {error.strerror or error}. Name another folder."
        ) from error
    return copied, left
