"""Locks that a person approved elsewhere -> the environments that they make on this machine, for one skill.

Nothing is looked up and nobody is asked: who calls this knows that the very lock was approved for this content. It is
built as any other, by the tools and from the index of this machine, inside the same walls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from skillkit._version import __version__
from skillkit.core.models import Skill
from skillkit.core.record import host_fields
from skillkit.core.store.environments import Approved, Environment, Environments
from skillkit.core.values.policy import ScriptPolicy
from skillkit.packages.order import WHOLE, found_by

__all__ = ["Built", "build_from_locks", "built_from"]

PATIENCE_SECONDS = 60.0


class Built(NamedTuple):
    """What was built, and what a record says of it."""

    environments: tuple[Environment, ...]
    fields: dict[str, Any]


def built_from(
    environments: Environments, skill: str, folder: Path, digest: str, locks: Mapping[str, str]
) -> tuple[Environment, ...] | None:
    """What is there of exactly these; `locks` are digests by kind. None where something is missing or another."""
    note = environments.approved(skill, folder)
    if note is None or note.digest != digest or {k: _digest(share.lock) for k, share in note.shares.items()} != locks:
        return None
    found = [(kind, share, environments.find(share.key)) for kind, share in note.shares.items()]
    there = [each for kind, share, each in found if each and share.found_by == found_by(kind, each.mark.interpreter)]
    return tuple(there) if len(there) == len(locks) else None


def build_from_locks(
    environments: Environments,
    skill: Skill,
    digest: str,
    locks: Mapping[str, str],
    policy: ScriptPolicy,
    *,
    channel: str,
    cancel: threading.Event | None = None,
) -> Built:
    """Built, and noted for the skill; `locks` are texts by kind."""
    from skillkit.packages.makers import Maker, built, share_of
    from skillkit.packages.workshop import Workshop

    name, folder = skill.metadata.name, skill.base_directory
    makers = {kind: Maker(kind, folder, policy, PATIENCE_SECONDS) for kind in locks}
    plans = {kind: makers[kind].locked_plan(lock) for kind, lock in locks.items()}
    with Workshop.opened(environments, cancel) as shop:
        made = tuple(built(shop, plan, makers[kind], lambda *_: None) for kind, plan in plans.items())
        shares = {kind: share_of(plan) for kind, plan in plans.items()}
        environments.keep(Approved(name, str(folder), digest, channel, time.time(), shares, (WHOLE,), __version__))
        hosts = {"hosts": [host_fields(each) for each in shop.reached]} if shop.reached else {}
    told = {each.mark.kind: {"digest": each.mark.key, "bytes": each.mark.size} for each in made}
    return Built(made, {"environments": told, **hosts, "exit_code": 0})


def _digest(lock: str) -> str:
    return sha256(lock.encode()).hexdigest()
