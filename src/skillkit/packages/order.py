"""What is to be prepared for which skill and what came of it; how the interpreter was found that it is for."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.paths import real_path
from skillkit.core.store.environments import Approved, Environment, Environments, Share
from skillkit.core.values.questions import Approver
from skillkit.packages.values import Plan

__all__ = ["WHOLE", "OnStep", "Order", "Owner", "Preparation", "found_by"]

WHOLE = ""
PROGRAMS = {"python": ("python3", "python"), "node": ("node",)}
# What version managers go by; to ask one takes longer than all else here.
CHOICES = ("~/.pyenv/version", "~/.nodenv/version", "~/.tool-versions", "~/.config/mise/config.toml")
CHOOSING = ("PYENV_VERSION", "PYENV_ROOT", "NODENV_VERSION", "ASDF_PYTHON_VERSION", "MISE_PYTHON_VERSION")

OnStep = Callable[[str, int, int], None]
"""Gets what is done now, how many bytes of it are there, and how many there will be; 0 where nobody knows."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was, or with `dry_run` would be, prepared."""

    skill: str
    plans: tuple[Plan, ...]
    environments: tuple[Environment, ...] = ()
    was_ready: bool = False
    """Whether all of it was there already."""
    alone: str = ""
    """Why other machines of a shared world do not get them; empty where they do, or where there are none."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The skill, as it was when it was looked at."""

    skill: Skill
    name: str
    folder: Path
    digest: str

    @classmethod
    def of(cls, manager: SkillManager, skill_name: str) -> Owner:
        skill = manager.load_skill(skill_name)
        folder = Path(real_path(skill.base_directory))
        return cls(skill, skill.metadata.name, folder, manifest_of(folder).digest)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be prepared, and how: as `prepare_packages` has it."""

    manager: SkillManager
    owner: Owner
    script_name: str | None
    environments: Environments
    before: Approved | None
    """What was approved for this content; None where nothing was, or only for another."""
    approver: Approver | None
    dry_run: bool
    young: bool
    inferred: bool
    min_age_days: int
    on_step: OnStep
    patience: float
    cancel: threading.Event | None

    @property
    def known(self) -> Mapping[str, Share]:
        return self.before.shares if self.before is not None else {}

    @property
    def scopes(self) -> tuple[str, ...]:
        """With what it was prepared for before."""
        earlier = self.before.scopes if self.before is not None else ()
        return tuple(dict.fromkeys((*earlier, self.script_name or WHOLE)))


def found_by(kind: str, interpreter: str) -> str:
    """How the interpreter looks, what stands before it on PATH, and what a version manager would go by."""
    first = next(filter(None, (shutil.which(name) for name in PROGRAMS[kind])), "")
    places = (interpreter, first, *(os.path.expanduser(place) for place in CHOICES))
    set_here = [os.environ.get(name, "") for name in CHOOSING]
    return sha256(json.dumps([*((place, _looks(place)) for place in places), set_here]).encode()).hexdigest()


def _looks(place: str) -> list[int]:
    try:
        status = os.stat(place)
    except OSError:
        return []
    return [status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size]
