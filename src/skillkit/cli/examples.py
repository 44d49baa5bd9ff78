"""The skills that ship with skillkit: where they are, and a copy of them to try things on."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import skillkit
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.files import Folder
from skillkit.core.trees import NewFile, write_tree

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
        with Folder.named(target, make=True) as folder:
            for skill in sorted(example_skills().iterdir()):
                if folder.status(skill.name) is not None:
                    left.append(skill.name)
                elif skill.is_dir():
                    write_tree(folder, skill.name, files_of(skill))
                    copied.append(skill.name)
    except OSError as error:
        raise ConfigurationError(
            f"The example skills cannot be copied to {target}: {error.strerror or error}. Name another folder."
        ) from error
    return copied, left


def files_of(skill: Path) -> Iterator[NewFile]:
    for path in sorted(skill.rglob("*")):
        names = path.relative_to(skill).parts
        if path.is_file() and "__pycache__" not in names:
            yield NewFile(names, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
