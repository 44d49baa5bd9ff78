"""A skill -> its packages, prepared. What was made before for the same content is found here, in a moment.

All else is made in `making`, which takes longer to import than this takes to answer.
"""

from __future__ import annotations

import threading

from skillkit._version import __version__
from skillkit.config.settings import MIN_AGE_DAYS
from skillkit.core.manager import SkillManager
from skillkit.core.store.environments import Approved, Environments
from skillkit.core.values.questions import Approver
from skillkit.packages.order import WHOLE, OnStep, Order, Owner, Preparation, found_by
from skillkit.packages.values import Plan, Wanted, locked_in

__all__ = ["PATIENCE_SECONDS", "OnStep", "Preparation", "prepare_packages"]

PATIENCE_SECONDS = 60.0


def prepare_packages(
    manager: SkillManager,
    skill_name: str,
    script_name: str | None = None,
    *,
    approver: Approver | None = None,
    dry_run: bool = False,
    young: bool = False,
    inferred: bool = False,
    min_age_days: int = MIN_AGE_DAYS,
    on_step: OnStep = lambda *_: None,
    patience: float = PATIENCE_SECONDS,
    cancel: threading.Event | None = None,
) -> Preparation:
    """Installs what a skill, or one script of it, needs, after a person said yes to each package by name.

    `young` and `inferred` are that person's word for releases younger than `min_age_days`, and for packages that were
    only guessed from imports. `patience` is how many seconds an index may take for an answer.
    """
    owner = Owner.of(manager, skill_name)
    environments = Environments(manager.state_dir)
    kept = environments.approved(owner.name, owner.folder)
    before = kept if kept is not None and kept.digest == owner.digest else None
    ready = _ready(owner, before, script_name, environments)
    if ready is not None:
        return ready
    from skillkit.packages.making import make

    words = (approver, dry_run, young, inferred, min_age_days, on_step, patience, cancel)
    return make(Order(manager, owner, script_name, environments, before, *words))


def _ready(
    owner: Owner, before: Approved | None, script_name: str | None, environments: Environments
) -> Preparation | None:
    """What was made before, where nothing that it depends on is another now; without reading the skill's needs."""
    if before is None or before.read_by != __version__ or not {WHOLE, script_name}.intersection(before.scopes):
        return None
    plans, built = [], []
    for kind, share in before.shares.items():
        found = environments.find(share.key)
        if found is None or share.found_by != found_by(kind, found.mark.interpreter):
            return None
        wanted = tuple(Wanted(kind, *row) for row in share.wanted)
        packages = locked_in(share.lock, kind)
        plans.append(Plan(kind, share.key, share.lock, found.mark.interpreter, wanted, packages, (), is_approved=True))
        built.append(found)
    return Preparation(owner.name, tuple(plans), tuple(built), was_ready=True)
