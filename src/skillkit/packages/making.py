"""An order -> packages that are wanted, locked, asked about, built and kept. The sequence, written once.

A preparation is on record as a run is: `started` with a person's word and the digest of each lock before anything is
installed, `finished` after it, and `refused` where nothing was. A look with `dry_run` leaves no trace.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from skillkit._version import __version__
from skillkit.core.exceptions import AuditUnavailableError, SkillKitError
from skillkit.core.find.needs import needs_of
from skillkit.core.models.digest import manifest_of
from skillkit.core.record import error_text, host_fields, refusal_fields
from skillkit.core.resolve.locate import find_script
from skillkit.core.store.environments import KINDS, Approved, Environment, Share
from skillkit.packages.makers import Maker, built, lock_fields, share_of
from skillkit.packages.order import Order, Preparation
from skillkit.packages.question import ask_about
from skillkit.packages.values import PackagesError, Plan, Wanted
from skillkit.packages.wanted import wanted_of
from skillkit.packages.workshop import Workshop

__all__ = ["PURPOSE", "make"]

PURPOSE = "prepare"


def make(order: Order) -> Preparation:
    """Raises where it may not be or cannot be; then nothing is half done."""
    with _Book.opened(order) as book:
        wanted = _with_earlier(_wanted(order), order.known)
        folder, policy, patience = order.owner.folder, order.manager.policy, order.patience
        makers = {kind: Maker(kind, folder, policy, patience) for kind in KINDS if _of(kind, wanted)}
        ready = {kind: maker.known_plan(_of(kind, wanted), order.known.get(kind)) for kind, maker in makers.items()}
        done = _found(order, ready)
        if done is not None:
            return done
        with Workshop.opened(order.environments, order.cancel) as shop:
            order.on_step("looking up packages", 0, 0)
            plans = {kind: ready[kind] or maker.plan(shop, _of(kind, wanted)) for kind, maker in makers.items()}
            if order.dry_run:
                return Preparation(order.owner.name, tuple(plans.values()))
            channel = book.ask(tuple(plans.values()))
            environments = [built(shop, plan, makers[kind], order.on_step) for kind, plan in plans.items()]
            _require_unchanged(order)
            _keep(order, plans, channel)
            book.note_end(environments, shop)
    return Preparation(order.owner.name, tuple(plans.values()), tuple(environments))


class _Book:
    """What is put on record of one preparation."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._asked: dict[str, Any] = {}
        self._started: int | None = None

    @classmethod
    @contextmanager
    def opened(cls, order: Order) -> Iterator[_Book]:
        """Whatever ends the block is on record before it is raised; an interrupt stays an interrupt."""
        book = cls(order)
        try:
            yield book
        except BaseException as error:
            book._note_failure(error)
            raise

    def ask(self, plans: Sequence[Plan]) -> str:
        """By which way a person said yes, today or before, once that is on record."""
        order = self._order
        self._asked = {"locks": {plan.kind: lock_fields(plan) for plan in plans}}
        asked = [plan for plan in plans if not plan.is_approved]
        if asked:
            words = {"has_young_word": order.young, "has_inferred_word": order.inferred}
            days, cancel = order.min_age_days, order.cancel
            answer = ask_about(order.owner.name, asked, order.approver, days=days, cancel=cancel, **words)
            said: dict[str, Any] = {"decision": "ask", "answer": answer.option_id, "channel": answer.channel}
            ticks = [*answer.grants, *(name for name, is_given in words.items() if is_given)]
            said |= {"ticks": ticks} if ticks else {}
        else:
            channel = order.before.channel if order.before is not None else ""
            said = {"decision": "allow", "reasons": ["A person approved this very lock before."], "channel": channel}
        self._started = self._append("started", {**self._asked, **said})
        return str(said["channel"])

    def note_end(self, made: Sequence[Environment], shop: Workshop) -> None:
        environments = {each.mark.kind: {"digest": each.mark.key, "bytes": each.mark.size} for each in made}
        hosts = {"hosts": [host_fields(each) for each in shop.reached]} if shop.reached else {}
        started, self._started = self._started, None
        self._append("finished", {"started": started, "environments": environments, **hosts, "exit_code": 0})

    def _note_failure(self, error: BaseException) -> None:
        if isinstance(error, AuditUnavailableError) or self._order.dry_run:
            return
        if self._started is not None:
            self._append("finished", {"started": self._started, "error": error_text(error)})
        elif isinstance(error, SkillKitError):
            self._append("refused", {**self._asked, **refusal_fields(error)})

    def _append(self, kind: str, fields: Mapping[str, Any]) -> int:
        order = self._order
        who = {"session": order.manager.session_id, "skill": order.owner.name, "digest": order.owner.digest}
        about = {"purpose": PURPOSE, "script": order.script_name or ""}
        return order.manager.flow.audit.append(kind, {**who, **about, **fields}).seq


def _found(order: Order, ready: Mapping[str, Plan | None]) -> Preparation | None:
    """What was approved before and is there; noted once more, so that it is found sooner the next time."""
    plans = {kind: plan for kind, plan in ready.items() if plan is not None}
    found = [order.environments.find(plan.key) for plan in plans.values()]
    there = tuple(each for each in found if each is not None)
    if len(there) < len(ready):
        return None
    if plans and order.before is not None and not order.dry_run:
        _keep(order, plans, order.before.channel)
    return Preparation(order.owner.name, tuple(plans.values()), there, was_ready=True)


def _keep(order: Order, plans: Mapping[str, Plan], channel: str) -> None:
    shares = {**order.known, **{kind: share_of(plan) for kind, plan in plans.items()}}
    owner, read_by = order.owner, __version__
    note = Approved(owner.name, str(owner.folder), owner.digest, channel, time.time(), shares, order.scopes, read_by)
    order.environments.keep(note)


def _wanted(order: Order) -> tuple[Wanted, ...]:
    skill, script = order.owner.skill, None
    if order.script_name is not None:
        script = find_script(order.script_name, skill.metadata.name, skill.base_directory, skill.scripts)
    return wanted_of(skill, needs_of(skill, script))


def _with_earlier(wanted: Sequence[Wanted], known: Mapping[str, Share]) -> tuple[Wanted, ...]:
    """What another script of the same content was prepared with stays."""
    names = {(each.kind, each.name) for each in wanted}
    earlier = [Wanted(kind, *row) for kind, share in known.items() for row in share.wanted]
    return tuple(sorted((*wanted, *(each for each in earlier if (each.kind, each.name) not in names))))


def _of(kind: str, wanted: Sequence[Wanted]) -> tuple[Wanted, ...]:
    return tuple(each for each in wanted if each.kind == kind)


def _require_unchanged(order: Order) -> None:
    if manifest_of(order.owner.folder).digest != order.owner.digest:
        raise PackagesError(f"{order.owner.name} changed while its packages were prepared. Prepare it again.")
