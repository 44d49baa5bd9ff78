"""An order -> packages that are wanted, locked, asked about, built and kept. The sequence, written once.

A preparation is on record as a run is: `started` with a person's word and the digest of each lock before anything is
installed, `finished` after it, and `refused` where nothing was. A look with `dry_run` leaves no trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from skillkit._version import __version__
from skillkit.core.exceptions import AuditUnavailableError, SkillKitError
from skillkit.core.find.needs import needs_of
from skillkit.core.models.digest import manifest_of
from skillkit.core.record import error_text, host_fields, refusal_fields
from skillkit.core.resolve.locate import find_script
from skillkit.core.store.environments import KINDS, Approved, Environment, Share
from skillkit.core.values.text import plural
from skillkit.packages.node import Node, build_node, node_here, plan_node
from skillkit.packages.order import Order, Preparation, found_by
from skillkit.packages.python import Python, build_python, plan_python, python_here
from skillkit.packages.question import ask_about
from skillkit.packages.skill_lock import npm_lock_of, python_pins_of
from skillkit.packages.values import PackagesError, Plan, Wanted, locked_in
from skillkit.packages.wanted import wanted_of
from skillkit.packages.workshop import Workshop, key_of

__all__ = ["PURPOSE", "make"]

PURPOSE = "prepare"
NPM = "npm:"


def make(order: Order) -> Preparation:
    """Raises where it may not be or cannot be; then nothing is half done."""
    with _Book.opened(order) as book:
        wanted = _with_earlier(_wanted(order), order.known)
        makers = {kind: _Maker(kind, order) for kind in KINDS if _of(kind, wanted)}
        ready = {kind: maker.known_plan(_of(kind, wanted)) for kind, maker in makers.items()}
        done = _found(order, ready)
        if done is not None:
            return done
        with Workshop.opened(order.environments, order.cancel) as shop:
            order.on_step("looking up packages", 0, 0)
            plans = {kind: ready[kind] or maker.plan(shop, _of(kind, wanted)) for kind, maker in makers.items()}
            if order.dry_run:
                return Preparation(order.owner.name, tuple(plans.values()))
            channel = book.ask(tuple(plans.values()))
            built = [_built(shop, plan, makers[kind], order) for kind, plan in plans.items()]
            _require_unchanged(order)
            _keep(order, plans, channel)
            book.note_end(built, shop)
    return Preparation(order.owner.name, tuple(plans.values()), tuple(built))


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
        self._asked = {"locks": {plan.kind: _lock_fields(plan) for plan in plans}}
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

    def note_end(self, built: Sequence[Environment], shop: Workshop) -> None:
        environments = {each.mark.kind: {"digest": each.mark.key, "bytes": each.mark.size} for each in built}
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


def _lock_fields(plan: Plan) -> dict[str, Any]:
    packages = [f"{each.name} {each.version}" for each in plan.packages]
    lock = sha256(plan.lock.encode()).hexdigest()
    return {"digest": lock, "from": list(plan.indexes), "interpreter": plan.interpreter, "packages": packages}


class _Maker:
    """What one language needs for a plan and for a build."""

    def __init__(self, kind: str, order: Order) -> None:
        self.kind = kind
        self._order = order
        self._folder = order.owner.folder
        policy = order.manager.policy
        self._host: Python | Node = python_here(self._folder, policy) if kind == "python" else node_here()

    def known_plan(self, wanted: tuple[Wanted, ...]) -> Plan | None:
        """What was approved for exactly this, on this interpreter; None where it has to be looked up."""
        host, share = self._host, self._order.known.get(self.kind)
        if share is None or share.wanted != _rows(wanted):
            return None
        if key_of(share.lock, host.path, host.version, host.platform) != share.key:
            return None
        packages = locked_in(share.lock, self.kind)
        return Plan(self.kind, share.key, share.lock, host.path, wanted, packages, (), is_approved=True)

    def plan(self, shop: Workshop, wanted: tuple[Wanted, ...]) -> Plan:
        patience = self._order.patience
        if isinstance(self._host, Python):
            return plan_python(shop, wanted, python_pins_of(self._folder), self._host, patience)
        return plan_node(shop, wanted, npm_lock_of(self._folder), self._host, patience)

    def build(self, shop: Workshop, plan: Plan, on_bytes: Callable[[int], None]) -> None:
        if isinstance(self._host, Python):
            build_python(shop, plan, self._host, self._order.patience, on_bytes)
        else:
            build_node(shop, plan, self._host, self._order.patience, on_bytes)


def _built(shop: Workshop, plan: Plan, maker: _Maker, order: Order) -> Environment:
    there = shop.alone(plan.key)
    if there is not None:
        return there
    what = f"installing {plural(len(plan.packages), 'package')}"
    order.on_step(what, 0, plan.size)
    maker.build(shop, plan, lambda received: order.on_step(what, received, plan.size))
    order.on_step("checking what was installed", plan.size, plan.size)
    packages = tuple(f"{each.name} {each.version}" for each in plan.packages)
    environment = shop.finish(plan.key, plan.kind, plan.interpreter, packages)
    shop.made.mkdir(mode=0o700)
    return environment


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
    shares = {**order.known, **{kind: _share(plan) for kind, plan in plans.items()}}
    owner, read_by = order.owner, __version__
    note = Approved(owner.name, str(owner.folder), owner.digest, channel, time.time(), shares, order.scopes, read_by)
    order.environments.keep(note)


def _share(plan: Plan) -> Share:
    prefix = NPM if plan.kind == "node" else ""
    names = tuple(f"{prefix}{each.name}" for each in plan.packages)
    return Share(plan.key, plan.lock, _rows(plan.wanted), names, found_by(plan.kind, plan.interpreter))


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


def _rows(wanted: Sequence[Wanted]) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((each.name, each.requirement, each.source, each.where) for each in wanted)


def _require_unchanged(order: Order) -> None:
    if manifest_of(order.owner.folder).digest != order.owner.digest:
        raise PackagesError(f"{order.owner.name} changed while its packages were prepared. Prepare it again.")
