"""An order -> what its question may give as reasons: sentences of our own rules that can be so, and no other text.

A front may say which of them it is, where only it can know; but it cannot word one. What it says about earlier answers
has to be in the shared world.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillkit.core.decide import rules
from skillkit.core.record import AuditLog
from skillkit.core.store.base import Store
from skillkit.core.store.skills import InstalledSkills
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.policy import GUARDED
from skillkit.core.values.questions import Prompt
from skillkit.fleet.orders import Order, policy_from

__all__ = ["told_reason", "wrong_reasons"]


def told_reason(reason: str) -> str:
    """As a question about an order says it: without paths, which the words show and nobody else can look at."""
    return next((f"{told}." for told in rules.ABOUT_PATHS if reason.startswith(told)), reason)


def wrong_reasons(store: Store, order: Order, shown: Prompt) -> Iterator[str]:
    if shown.last_yes not in ("", *rules.AFTER_YES):
        yield "what it says of earlier answers is nothing that skillkit says"
    elif shown.last_yes == "lasting" and not _was_approved(store, order):
        yield "nobody approved the skill before"
    elif shown.last_yes == "once" and not AuditLog(store).was_answered(order.skill, "yes_once"):
        yield "no run of the skill had a yes before"
    if not {*shown.reasons} <= {*_possible(store, order, shown)}:
        yield "its reasons are none, or others"


def _possible(store: Store, order: Order, shown: Prompt) -> Iterator[str]:
    policy = policy_from(order.policy, GUARDED)
    yield from (*(f"{told}." for told in rules.ABOUT_PATHS), rules.TOO_MANY_ARGUMENTS)
    if policy.approval == "always":
        yield rules.EVERY_RUN
    if policy.approval == "first_run":
        yield from (rules.FIRST_RUN, rules.AFTER_YES.get(shown.last_yes, rules.FIRST_RUN))
        if _was_approved(store, order):
            yield from (rules.CHANGED, rules.WIDER, rules.UNKNOWN)
    if policy.allowed_tools_mode == "grant":
        yield rules.not_listed(order.script)
    if order.from_instructions:
        yield rules.ON_LOAD
    if lost := InstalledSkills(store).signing_of("", order.digest, order.skill).lost:
        yield rules.lost_signer(lost)


def _was_approved(store: Store, order: Order) -> bool:
    return StandingApprovals(store).last_approved(order.skill, "") is not None
