"""Plans -> the questions that a person is asked before anything is installed: what, how large, how old, who says so."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence

from skillkit.core.exceptions import ApprovalDeclinedError, ApprovalUnavailableError
from skillkit.core.values.questions import Approver, Cancel, Option, OptionAnswer, OptionRequest, Tick
from skillkit.core.values.text import plural, visible
from skillkit.packages.values import Locked, Plan, size_text

__all__ = ["PACKAGES", "ask_about", "package_line", "packages_shown"]

YES, NO = "yes_once", "no"
OPTIONS = (Option(YES, "Yes, install them"), Option(NO, "No"))
FLAG = "flag"
PACKAGES = "packages"
"""Where a request says in its context that it is about packages, and which."""
INFERRED = "guessed: no file of the skill names it, its code imports it"
YOUNG = "younger than {}: hardly anybody can have looked at it"
LANGUAGES = {"python": "Python", "node": "Node"}


def ask_about(
    skill: str,
    plans: Sequence[Plan],
    approver: Approver | None,
    *,
    days: int,
    has_young_word: bool = False,
    has_inferred_word: bool = False,
    cancel: Cancel | None = None,
) -> OptionAnswer:
    """A person's yes to every package, and to each by itself that is guessed or young; raises where there is none."""
    if approver is None:
        raise ApprovalUnavailableError.because(
            "nobody can be asked here about installing packages", f"Run it in a terminal: skillkit prepare {skill}"
        )
    now = time.time()
    inferred = () if has_inferred_word else [_tick("guessed", p, each, INFERRED) for p in plans for each in p.inferred]
    too_young = YOUNG.format(plural(days, "day"))
    young = () if has_young_word else [_tick("young", p, each, too_young) for p in plans for each in p.young(now, days)]
    ticks = {**dict.fromkeys(inferred, "--inferred"), **dict.fromkeys(young, "--young")}
    notes = _notes(skill, plans, days)
    request = OptionRequest(
        secrets.token_hex(16),
        f"Install packages for {skill}?",
        _message(notes, plans, now),
        OPTIONS,
        context={PACKAGES: packages_shown(plans, now), "notes": [*notes[:1], *map(_heading, plans), *notes[1:]]},
        grants=tuple(ticks),
    )
    answer = approver.ask(request.asked(now), cancel)
    if answer.option_id != YES or answer.request_id not in ("", request.id):
        said = f" {answer.reason}" if answer.reason else ""
        reason = f"Declined by a person ({answer.channel}).{said}"
        raise ApprovalDeclinedError(f"Nothing was installed. {reason}", reasons=[reason])
    _require_ticks(answer, {tick: word for tick, word in ticks.items() if tick.id not in answer.grants})
    return answer


def _tick(kind: str, plan: Plan, each: Locked, what: str) -> Tick:
    """Of one version in one language: another that has the same name needs a tick of its own."""
    name = f"{each.name} {each.version} ({LANGUAGES[plan.kind]})"
    return Tick(f"{kind}:{plan.kind}:{each.name}@{each.version}", name, what)


def _require_ticks(answer: OptionAnswer, left: Mapping[Tick, str]) -> None:
    """A yes to all of them is none to what needs its own."""
    if not left:
        return
    names = "; ".join(f"{tick.label}: {tick.warning}" for tick in left)
    options = " and ".join(dict.fromkeys(left.values()))
    if answer.channel == FLAG:
        raise ApprovalUnavailableError.because(
            f"--yes alone does not answer for these. {names}", f"Look at them, then add {options}."
        )
    raise ApprovalDeclinedError(
        f"Nothing was installed: these were not ticked. {names}. Tick each of them, or say {options}.", reasons=[names]
    )


def packages_shown(plans: Sequence[Plan], now: float) -> list[dict[str, str]]:
    """One row for each, for who shows a table."""
    return [
        {
            "language": LANGUAGES[plan.kind],
            "name": f"{each.name}{_alias(each)}",
            "version": each.version,
            "size": size_text(each.size) if each.size is not None else "not told",
            "age": plural(age, "day") if (age := each.age_days(now)) is not None else "not told",
            "source": each.source,
            "where": each.where,
            "resembles": each.resembles,
        }
        for plan in plans
        for each in plan.packages
    ]


def _notes(skill: str, plans: Sequence[Plan], days: int) -> list[str]:
    """What to know beside the list."""
    first = (
        f"This is code that nobody here has read. It runs inside the same walls as the scripts of {visible(skill)}, "
        "whenever one of them runs, and can do what they can do. Nothing of it runs while it is installed."
    )
    notes = [first]
    for plan in plans:
        if plan.unknown:
            notes.append(f"Left out, since there are no such packages: {visible(', '.join(plan.unknown))} (guessed).")
        if plan.untimed:
            notes.append(
                f"{', '.join(plan.untimed)} does not tell when each of them was released: the limit of "
                f"{plural(days, 'day')} does not apply there."
            )
    return notes


def _heading(plan: Plan) -> str:
    count, known = plural(len(plan.packages), "package"), f", {size_text(plan.size)}" if plan.size else ""
    return f"{LANGUAGES[plan.kind]}: {count}{known}, from {', '.join(plan.indexes)}"


def _message(notes: Sequence[str], plans: Sequence[Plan], now: float) -> str:
    first, *others = notes
    lists = [
        text
        for plan in plans
        for text in (_heading(plan), "\n".join(f"  {package_line(each, now)}" for each in plan.packages))
    ]
    return "\n\n".join((first, *lists, *others))


def package_line(package: Locked, now: float) -> str:
    """One line: name, version, size, age, who says so, and what looks wrong."""
    age = package.age_days(now)
    words = [
        f"{visible(package.name)} {visible(package.version)}{visible(_alias(package))}",
        size_text(package.size) if package.size is not None else "size not told",
        f"{plural(age, 'day')} old" if age is not None else "age not told",
        f"{package.source} in {visible(package.where)}" if package.source else "needed by another",
    ]
    if package.resembles:
        words.append(f"ONE LETTER AWAY FROM THE MUCH MORE COMMON {package.resembles!r}")
    return ", ".join(words)


def _alias(package: Locked) -> str:
    """What is shown is what is installed; by which name others load it stands beside that."""
    return f" (as {', '.join(package.aliases)})" if package.aliases else ""
