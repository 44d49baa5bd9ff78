"""A skill -> its packages, prepared: wanted, locked, asked about, built. The sequence, written once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.config.settings import MIN_AGE_DAYS
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.needs import needs_of
from skillkit.core.paths import real_path
from skillkit.core.resolve.locate import find_script
from skillkit.core.store.environments import KINDS, Approved, Environment, Environments, Share
from skillkit.core.values.questions import Approver
from skillkit.packages.node import Node, build_node, locked_node, node_here, plan_node
from skillkit.packages.python import Python, build_python, locked_python, plan_python, python_here
from skillkit.packages.question import ask_about
from skillkit.packages.skill_lock import npm_lock_of, python_pins_of
from skillkit.packages.values import PackagesError, Plan, Wanted
from skillkit.packages.wanted import wanted_of
from skillkit.packages.workshop import Workshop, key_of

__all__ = ["PATIENCE_SECONDS", "OnStep", "Preparation", "prepare_packages"]

PATIENCE_SECONDS = 60.0
NPM = "npm:"

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
) -> Preparation:
    """Installs what a skill, or one script of it, needs, after a person said yes to each package by name.

    `young` and `inferred` are that person's word for releases younger than `min_age_days`, and for packages that were
    only guessed from imports. `patience` is how many seconds an index may take for an answer.
    """
    owner = _Owner.of(manager, skill_name)
    environments = Environments(manager.state_dir)
    before = environments.approved(owner.name, owner.folder)
    known = before.shares if before is not None and before.digest == owner.digest else {}
    wanted = _with_earlier(_wanted(owner.skill, script_name), known)
    if not wanted:
        return Preparation(owner.name, (), was_ready=True)
    makers = {kind: _Maker(kind, owner, manager) for kind in KINDS if any(each.kind == kind for each in wanted)}
    ready = {kind: maker.known_plan(known.get(kind), _of(kind, wanted)) for kind, maker in makers.items()}
    found = {kind: environments.find(plan.key) for kind, plan in ready.items() if plan is not None}
    if len(found) == len(makers) and all(found.values()):
        return Preparation(owner.name, tuple(p for p in ready.values() if p), _there(found.values()), was_ready=True)
    with Workshop.opened(environments) as shop:
        on_step("looking up packages", 0, 0)
        plans = {kind: ready[kind] or maker.plan(shop, _of(kind, wanted), patience) for kind, maker in makers.items()}
        if dry_run:
            return Preparation(owner.name, tuple(plans.values()))
        asked = [plan for plan in plans.values() if not plan.is_approved]
        channel = before.channel if before else ""
        if asked:
            words = {"has_young_word": young, "has_inferred_word": inferred}
            channel = ask_about(owner.name, asked, approver, days=min_age_days, **words)
        built = [_built(shop, plan, makers[kind], patience, on_step) for kind, plan in plans.items()]
        _require_unchanged(owner)
        shares = {**known, **{kind: _share(plan) for kind, plan in plans.items()}}
        environments.keep(Approved(owner.name, str(owner.folder), owner.digest, channel, time.time(), shares))
    return Preparation(owner.name, tuple(plans.values()), tuple(built))


@dataclass(frozen=True, slots=True)
class _Owner:
    """The skill, as it was when it was looked at."""

    skill: Skill
    name: str
    folder: Path
    digest: str

    @classmethod
    def of(cls, manager: SkillManager, skill_name: str) -> _Owner:
        skill = manager.load_skill(skill_name)
        folder = Path(real_path(skill.base_directory))
        return cls(skill, skill.metadata.name, folder, manifest_of(folder).digest)


class _Maker:
    """What one language needs for a plan and for a build."""

    def __init__(self, kind: str, owner: _Owner, manager: SkillManager) -> None:
        self.kind = kind
        self._owner = owner
        self._host: Python | Node = python_here(owner.folder, manager.policy) if kind == "python" else node_here()

    def known_plan(self, share: Share | None, wanted: tuple[Wanted, ...]) -> Plan | None:
        """What was approved for exactly this, on this interpreter; None where it has to be looked up."""
        host = self._host
        if share is None or share.wanted != _rows(wanted):
            return None
        if key_of(share.lock, host.path, host.version, host.platform) != share.key:
            return None
        packages = (locked_python if self.kind == "python" else locked_node)(share.lock)
        return Plan(self.kind, share.key, share.lock, host.path, wanted, packages, (), is_approved=True)

    def plan(self, shop: Workshop, wanted: tuple[Wanted, ...], patience: float) -> Plan:
        folder = self._owner.folder
        if isinstance(self._host, Python):
            return plan_python(shop, wanted, python_pins_of(folder), self._host, patience)
        return plan_node(shop, wanted, npm_lock_of(folder), self._host, patience)

    def build(self, shop: Workshop, plan: Plan, patience: float, on_bytes: Callable[[int], None]) -> None:
        if isinstance(self._host, Python):
            build_python(shop, plan, self._host, patience, on_bytes)
        else:
            build_node(shop, plan, self._host, patience, on_bytes)


def _built(shop: Workshop, plan: Plan, maker: _Maker, patience: float, on_step: OnStep) -> Environment:
    with shop.alone(plan.key) as there:
        if there is not None:
            return there
        what = f"installing {len(plan.packages)} packages"
        on_step(what, 0, plan.size)
        maker.build(shop, plan, patience, lambda received: on_step(what, received, plan.size))
        on_step("checking what was installed", plan.size, plan.size)
        packages = tuple(f"{each.name} {each.version}" for each in plan.packages)
        environment = shop.finish(plan.key, plan.kind, plan.interpreter, packages)
        shop.made.mkdir(mode=0o700)
        return environment


def _wanted(skill: Skill, script_name: str | None) -> tuple[Wanted, ...]:
    script = None
    if script_name is not None:
        script = find_script(script_name, skill.metadata.name, skill.base_directory, skill.scripts)
    return wanted_of(skill, needs_of(skill, script))


def _with_earlier(wanted: Sequence[Wanted], known: dict[str, Share]) -> tuple[Wanted, ...]:
    """What another script of the same content was prepared with stays."""
    names = {(each.kind, each.name) for each in wanted}
    earlier = [Wanted(kind, *row) for kind, share in known.items() for row in share.wanted]
    return tuple(sorted((*wanted, *(each for each in earlier if (each.kind, each.name) not in names))))


def _of(kind: str, wanted: Sequence[Wanted]) -> tuple[Wanted, ...]:
    return tuple(each for each in wanted if each.kind == kind)


def _rows(wanted: Sequence[Wanted]) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((each.name, each.requirement, each.source, each.where) for each in wanted)


def _share(plan: Plan) -> Share:
    prefix = NPM if plan.kind == "node" else ""
    return Share(plan.key, plan.lock, _rows(plan.wanted), tuple(f"{prefix}{each.name}" for each in plan.packages))


def _there(found: Iterable[Environment | None]) -> tuple[Environment, ...]:
    return tuple(each for each in found if each is not None)


def _require_unchanged(owner: _Owner) -> None:
    if manifest_of(owner.folder).digest != owner.digest:
        raise PackagesError(f"{owner.name} changed while its packages were prepared. Prepare it again.")
