"""A skill -> its packages, prepared. What was made before for the same content is found here, in a moment.

All else is made in `making`, which takes longer to import than this takes to answer.
"""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

from skillkit._version import __version__
from skillkit.config.settings import MIN_AGE_DAYS
from skillkit.core.manager import SkillManager
from skillkit.core.store.environments import Approved, Environments
from skillkit.core.store.locks import ApprovedLocks
from skillkit.core.store.opening import open_store
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
    done = _ready(owner, before, script_name, environments)
    if done is None:
        from skillkit.packages.making import make

        words = (approver, dry_run, young, inferred, min_age_days, on_step, patience, cancel)
        done = make(Order(manager, owner, script_name, environments, before, *words))
    return done if dry_run else _for_all_machines(manager, owner, environments, done)


def _for_all_machines(
    manager: SkillManager, owner: Owner, environments: Environments, done: Preparation
) -> Preparation:
    """In a shared world the locks that were approved are kept there too; where this login may not, that is said."""
    store = open_store(manager.state_dir, manager.state)
    kept = environments.approved(owner.name, owner.folder)
    if not store.is_shared or kept is None or kept.digest != owner.digest:
        return done
    with closing(store):
        locks, approved = ApprovedLocks(store), {kind: share.lock for kind, share in kept.shares.items()}
        if locks.of(owner.name, owner.digest) == approved:
            return done
        if locks.may_keep():
            locks.keep(owner.name, owner.digest, approved, kept.channel)
            return done
    reason = f"this login may not approve packages for the shared world {store.place}"
    return replace(done, alone=f"Other machines do not get them: {reason}. Use one with the role approver.")


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
