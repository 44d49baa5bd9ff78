"""A language -> what makes plans of its packages and builds them, for the interpreter of this machine."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillkit.core.store.environments import Environment, Share
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.text import plural
from skillkit.packages.node import Node, build_node, node_here, plan_node
from skillkit.packages.order import OnStep, found_by
from skillkit.packages.python import Python, build_python, plan_python, python_here
from skillkit.packages.skill_lock import npm_lock_of, python_pins_of
from skillkit.packages.values import Plan, Wanted, locked_in, names_in
from skillkit.packages.workshop import Workshop, key_of

__all__ = ["Maker", "built", "lock_fields", "rows_of", "share_of"]


class Maker:
    """What one language needs for a plan and for a build."""

    def __init__(self, kind: str, folder: Path, policy: ScriptPolicy, patience: float) -> None:
        self.kind = kind
        self._folder = folder
        self._patience = patience
        self._host: Python | Node = python_here(folder, policy) if kind == "python" else node_here()

    def known_plan(self, wanted: tuple[Wanted, ...], share: Share | None) -> Plan | None:
        """What was approved for exactly this, on this interpreter; None where it has to be looked up."""
        if share is None or share.wanted != rows_of(wanted):
            return None
        plan = self.locked_plan(share.lock, wanted)
        return plan if plan.key == share.key else None

    def locked_plan(self, lock: str, wanted: tuple[Wanted, ...] = ()) -> Plan:
        """Of a lock that a person approved, for the interpreter here."""
        host, packages = self._host, locked_in(lock, self.kind)
        key = key_of(lock, host.path, host.version, host.platform)
        return Plan(self.kind, key, lock, host.path, wanted, packages, (), is_approved=True)

    def plan(self, shop: Workshop, wanted: tuple[Wanted, ...]) -> Plan:
        if isinstance(self._host, Python):
            return plan_python(shop, wanted, python_pins_of(self._folder), self._host, self._patience)
        return plan_node(shop, wanted, npm_lock_of(self._folder), self._host, self._patience)

    def build(self, shop: Workshop, plan: Plan, on_bytes: Callable[[int], None]) -> None:
        if isinstance(self._host, Python):
            build_python(shop, plan, self._host, self._patience, on_bytes)
        else:
            build_node(shop, plan, self._host, self._patience, on_bytes)


def built(shop: Workshop, plan: Plan, maker: Maker, on_step: OnStep) -> Environment:
    """The environment of a plan, there already or made now."""
    there = shop.alone(plan.key)
    if there is not None:
        return there
    what = f"installing {plural(len(plan.packages), 'package')}"
    on_step(what, 0, plan.size)
    maker.build(shop, plan, lambda received: on_step(what, received, plan.size))
    on_step("checking what was installed", plan.size, plan.size)
    packages = tuple(f"{each.name} {each.version}" for each in plan.packages)
    environment = shop.finish(plan.key, plan.kind, plan.interpreter, packages)
    shop.made.mkdir(mode=0o700)
    return environment


def share_of(plan: Plan) -> Share:
    """What is noted of a plan that a person approved."""
    names, how = names_in(plan.lock, plan.kind), found_by(plan.kind, plan.interpreter)
    return Share(plan.key, plan.lock, rows_of(plan.wanted), names, how)


def lock_fields(plan: Plan) -> dict[str, Any]:
    """What a record says of a lock."""
    packages = [f"{each.name} {each.version}" for each in plan.packages]
    lock = sha256(plan.lock.encode()).hexdigest()
    return {"digest": lock, "from": list(plan.indexes), "interpreter": plan.interpreter, "packages": packages}


def rows_of(wanted: tuple[Wanted, ...]) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((each.name, each.requirement, each.source, each.where) for each in wanted)
