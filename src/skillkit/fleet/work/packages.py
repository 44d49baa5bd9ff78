"""An order that names locks of packages -> their environments on this machine, built once for each content.

A lock counts only as a person approved it: its text comes from the shared world, where approvers alone can put one, and
its digest is the order's. What is built, and from where, is this machine's own matter: its interpreter, its index, its
way to it. A run gets what its order names, or it does not run.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ScriptRefusedError, SkillKitError
from skillkit.core.models import Skill
from skillkit.core.record import AuditLog, error_text
from skillkit.core.store.environments import Environments
from skillkit.core.store.locks import ApprovedLocks
from skillkit.core.store.shared.postgres import SharedStore
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import ScriptCommand
from skillkit.fleet.orders import Lock, Order
from skillkit.fleet.work.holding import Hold
from skillkit.packages import require_packages
from skillkit.packages.from_locks import Built, build_from_locks, built_from
from skillkit.packages.values import locked_in

__all__ = ["Packages"]

PURPOSE = "prepare"
CHANNEL = "fleet"


class Packages:
    """What one worker has prepared for skills that were sent to it."""

    def __init__(self, store: SharedStore, state_folder: Path, worker: str) -> None:
        self._approved = ApprovedLocks(store)
        self._audit = AuditLog(store)
        self._environments = Environments(state_folder)
        self._worker = worker

    def is_ready(self, skill: Skill, order: Order) -> bool:
        """Whether all is there that the order names; what it does not name is not used any more."""
        name, folder = order.skill, skill.base_directory
        if not order.locks:
            if self._environments.approved(name, folder) is not None:
                self._environments.forget(name, folder)
            return True
        if self._approved.digests(name, order.digest) != _named(order):
            raise _unapproved(order)
        return built_from(self._environments, name, folder, order.digest, _named(order)) is not None

    def make(self, skill: Skill, order: Order, policy: ScriptPolicy, held: Hold) -> None:
        """Builds it, on record as `skillkit prepare` is; ScriptRefusedError where that cannot be."""
        locks = self._approved.of(order.skill, order.digest)
        if {kind: sha256(lock.encode()).hexdigest() for kind, lock in locks.items()} != _named(order):
            raise _unapproved(order)
        about = {"session": order.session_id, "skill": order.skill, "digest": order.digest, "script": order.script}
        about |= {"purpose": PURPOSE, "worker": self._worker}
        told: dict[str, Any] = {
            "locks": {each.kind: _lock_fields(each, locks[each.kind]) for each in order.locks},
            "decision": "allow",
        }
        reasons = ["A person approved this very lock for the shared world."]
        started = self._audit.append("started", {**about, **told, "reasons": reasons, "channel": CHANNEL}).seq
        end: dict[str, Any] = {"error": "ended"}
        try:
            end = self._built(skill, order, locks, policy, held).fields
        except SkillKitError as error:
            end = {"error": error_text(error)}
            raise
        finally:
            self._audit.append("finished", {**about, "started": started, **end})

    def _built(self, skill: Skill, order: Order, locks: dict[str, str], policy: ScriptPolicy, held: Hold) -> Built:
        try:
            require_packages()
            return build_from_locks(
                self._environments, skill, order.digest, locks, policy, channel=CHANNEL, cancel=held
            )
        except (SkillKitError, OSError) as error:
            raise ScriptRefusedError.because(
                f"This worker cannot prepare the packages of {order.skill!r}: {error}",
                "Let it reach an index that has them, with UV_DEFAULT_INDEX or npm's registry set there.",
            ) from error

    def require_used(self, command: ScriptCommand, order: Order) -> None:
        """What is about to run has the packages of its order, and no others."""
        named = _named(order)
        there = (
            built_from(self._environments, order.skill, command.base_directory, order.digest, named) if named else ()
        )
        if there is None or {*command.prepared} != {each.prepared for each in there}:
            raise ScriptRefusedError.because("Its packages changed while it was looked at", "Run it again.")


def _named(order: Order) -> dict[str, str]:
    return {each.kind: each.digest for each in order.locks}


def _lock_fields(lock: Lock, text: str) -> dict[str, Any]:
    packages = [f"{each.name} {each.version}" for each in locked_in(text, lock.kind)]
    return {"digest": lock.digest, "packages": packages}


def _unapproved(order: Order) -> ScriptRefusedError:
    return ScriptRefusedError.because(
        f"The order names packages of {order.skill!r} that no person's approval in the shared world is about",
        f"Approve them with a login that has the role approver: skillkit prepare {order.skill}",
    )
