"""What a question says beside the run itself -> which of it is not so: needs, signer, what the skill had, what changed.

Needs are read again from the skill's bytes; who signed it, what it was given and whether it was approved are asked of
the shared world. What it was before is compared again where its bytes are still there; else nothing of the comparison
is shown (`without_comparison`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path

from skillkit.core.ask.changes import changes_between
from skillkit.core.ask.prompt import new_and_not_shown
from skillkit.core.exceptions import SkillKitError
from skillkit.core.find.needs import Surroundings, met, needs_of
from skillkit.core.models import Skill
from skillkit.core.models.detect.languages import LANGUAGE_INTERPRETERS
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.base import Store
from skillkit.core.store.skills import InstalledSkills, StandingGrants
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.grants import grant_label
from skillkit.core.values.needs import Need
from skillkit.core.values.policy import GUARDED
from skillkit.core.values.questions import Prompt
from skillkit.core.values.text import shown_path
from skillkit.fleet.orders import Order
from skillkit.fleet.reasons import wrong_reasons
from skillkit.fleet.work.fetching import Materials

__all__ = ["is_compared", "without_comparison", "wrong_claims"]

INSTALLERS = ("", "apt-get", "brew", "dnf", "apk")
SAID = {
    "host": ("--network (the {tier} walls open the whole network or none)",),
    "read": (
        "nothing: {name} is never opened to scripts",
        "bubblewrap's walls (the {tier} walls run a copy that lies elsewhere)",
    ),
    "write": ("nothing: {name} is never opened to scripts",),
    "interpreter": ("skillkit grant {skill} --interpreter {name}",),
}
"""What is advised beside what `met` does, by kind."""
_WHOLE = re.compile(r"/|[A-Za-z]:[/\\]")
OTHER_INTERPRETERS = tuple(dict.fromkeys(each for names in LANGUAGE_INTERPRETERS.values() for each in names))


def wrong_claims(store: Store, order: Order, shown: Prompt, materials: Materials) -> Iterator[str]:
    skill = materials.skill(order)
    if shown.signer != InstalledSkills(store).signing_of("", order.digest, order.skill).said:
        yield "it names another signer"
    if not _is_place(shown.origin, order.folder):
        yield "it comes from no folder of this name"
    yield from wrong_reasons(store, order, shown)
    yield from _wrong_past(store, order, shown)
    yield from _wrong_changes(store, order, shown, materials, skill.base_directory)
    yield from _wrong_needs(order, shown, skill)


def _is_place(origin: str, folder: str) -> bool:
    """Whether it is a whole path of a folder of this name; which one is the front's word."""
    name = shown_path(folder)
    return bool(_WHOLE.match(origin)) and origin.endswith((f"/{name}", f"\\{name}"))


def _wrong_past(store: Store, order: Order, shown: Prompt) -> Iterator[str]:
    if shown.had:
        last = StandingApprovals(store).last_approved(order.skill, "")
        given = [kept.grant for kept in StandingGrants(store).of(order.skill, "")]
        if not {*shown.had} <= {*map(grant_label, (*given, *(last.ticks if last else ())))}:
            yield "the skill never had what it says"


def _wrong_changes(store: Store, order: Order, shown: Prompt, materials: Materials, new: Path) -> Iterator[str]:
    """Where the bytes of what was approved are still here, or in the shared world."""
    if (shown.changes is None) != (not shown.approved):
        yield "it compares with nothing"
    elif shown.approved:
        if shown.approved not in StandingApprovals(store).digests(order.skill):
            yield "it compares with what nobody approved"
            return
        old = _approved_bytes(shown, materials)
        if old is not None and changes_between(old, new, first=[order.script]) != shown.changes:
            yield "its changes are others"


def _approved_bytes(shown: Prompt, materials: Materials) -> Path | None:
    try:
        return materials.by_digest(shown.approved)
    except SkillKitError:
        return None


def is_compared(shown: Prompt, materials: Materials) -> bool:
    """Whether what it says of changes was compared again; a question that says nothing of them needs no look."""
    return not shown.approved or _approved_bytes(shown, materials) is not None


def without_comparison(shown: Prompt) -> Prompt:
    """The same, for who cannot compare: that it was approved, and that nobody knows what is new."""
    told = len([*new_and_not_shown(shown.changes or (), shown.skill)])
    return replace(shown, changes=None, approved="", risks=shown.risks[told:], last_yes="lasting")


def _wrong_needs(order: Order, shown: Prompt, skill: Skill) -> Iterator[str]:
    """Where things are differs from machine to machine; what code needs does not, and what we advise neither."""
    true = _needs_of(skill.base_directory, order.digest, order.script, skill)
    own = Need("interpreter", order.interpreter, "inferred", f"{order.script}:1")
    known = {_named(need) for need in (*true, own)}
    said = {_named(need) for need in shown.needs}
    if not {name for name in said if name[0] != "read"} <= known:
        yield "it does not need what it says"
    if not {_named(need) for need in true if not _may_be_left_out(need)} <= said:
        yield "it leaves out needs"
    for need in shown.needs:
        plain = replace(need, is_met=False, remedy="")
        if need.remedy not in (("",) if need.is_met else _remedies(plain, order.skill, order.bounds.tier)):
            yield "it advises something else than skillkit does"


def _named(need: Need) -> tuple[str, str, str, str]:
    return need.kind, need.name, need.source, need.where


def _may_be_left_out(need: Need) -> bool:
    """What lies beside a skill, and what may be a module of that, counts where there is such a folder."""
    return need.kind in ("read", "interpreter") or (need.kind == "package" and need.source == "inferred")


_kept_needs: dict[tuple[str, str], tuple[Need, ...]] = {}
MOST_KEPT = 1_000


def _needs_of(folder: Path, digest: str, script: str, skill: Skill) -> tuple[Need, ...]:
    """By content: reading code takes its time."""
    key = (digest, script)
    known = _kept_needs.get(key)
    if known is not None:
        return known
    found = needs_of(skill, script)
    if len(_kept_needs) >= MOST_KEPT:
        _kept_needs.clear()
    if manifest_of(folder).digest == digest:  # else that is not what was read
        _kept_needs[key] = found
    return found


@lru_cache(maxsize=4_096)
def _remedies(need: Need, skill: str, tier: str) -> frozenset[str]:
    """All that skillkit advises for it, whatever there is on the machine that asks."""
    policy = replace(GUARDED, home="fresh", allowed_interpreters=())
    found = {text.format(name=need.name, tier=tier, skill=shlex.quote(skill)) for text in SAID.get(need.kind, ())}
    programs = [frozenset(filter(None, (each,))) for each in (*INSTALLERS, *OTHER_INTERPRETERS)]
    environments = (frozenset[str](), frozenset((need.name,)))
    for here, set_ones, start in product(programs, environments, ("skill", "workspace")):
        around = Surroundings(
            skill, replace(policy, working_directory=start), environment=set_ones, programs=here, tier=tier
        )
        found.update(each.remedy for each in met((need,), around))
    return frozenset(found)
