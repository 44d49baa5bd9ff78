"""An order -> the widest walls that it may name: those of its own policy, and what a person gave its skill for good.

A person is shown sentences about the policy, and a yes for the session is kept within the walls that the order names.
So those may be no wider than the policy's: a later run, under another policy, would be covered by what nobody saw.
"""

from __future__ import annotations

from dataclasses import replace

from skillkit.core.ask.reach import bounds_of
from skillkit.core.store.base import Store
from skillkit.core.store.skills import StandingGrants
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.grants import widened
from skillkit.core.values.policy import GUARDED
from skillkit.fleet.front import TRAVELLING_GRANTS
from skillkit.fleet.orders import Order, policy_from, portable

__all__ = ["is_within", "most_of"]


def most_of(store: Store, order: Order) -> Bounds:
    """For the kind of walls that the order names; a worker has these or stronger ones, or does not run it."""
    kept = StandingGrants(store).of(order.skill, "")
    ordered = policy_from(order.policy, GUARDED)
    usable = TRAVELLING_GRANTS.intersection(ordered.grantable)
    given = [each.grant for each in kept if each.digest == order.digest and each.grant.kind in usable]
    named = order.bounds
    found = bounds_of(widened(ordered, given), None, tier=named.tier, is_root=named.as_root)
    found = replace(found, interpreter=order.interpreter, seconds=float(order.timeout))
    found = found.with_grants(each for each in given if each.kind == "secret")
    return portable(found, order.workspace)


def is_within(named: Bounds, most: Bounds) -> bool:
    """Interpreters that a run may have count too: a later one may use any of them."""
    return most.hold(named) and {*named.interpreters} <= {*most.interpreters} and named.workspace == most.workspace
