"""Plans -> the questions that a person is asked before anything is installed: what, how large, how old, who says so."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from skillkit.core.exceptions import ApprovalDeclinedError, ApprovalUnavailableError
from skillkit.core.values.questions import Approver, Option, OptionRequest
from skillkit.core.values.text import plural, visible
from skillkit.packages.values import Locked, Plan

__all__ = ["ask_about", "package_line", "size_text"]

YES, NO = "yes_once", "no"
OPTIONS = (Option(YES, "Yes, install them"), Option(NO, "No"))
FLAG = "flag"
MEGABYTE = 1_000_000
LANGUAGES = {"python": "Python", "node": "Node"}


def ask_about(
    skill: str,
    plans: Sequence[Plan],
    approver: Approver | None,
    *,
    days: int,
    has_young_word: bool,
    has_inferred_word: bool,
) -> str:
    """By which way the person said yes; raises where they did not, or nobody could be asked."""
    if approver is None:
        raise ApprovalUnavailableError.because(
            "nobody can be asked here about installing packages", f"Run it in a terminal: skillkit prepare {skill}"
        )
    now = time.time()
    channel = _ask(approver, f"Install packages for {skill}?", _message(skill, plans, now, days))
    inferred = [each for plan in plans for each in plan.inferred]
    young = [each for plan in plans for each in plan.young(now, days)]
    for packages, is_said, option, what in (
        (inferred, has_inferred_word, "--inferred", "guessed: no file of the skill names them, its code imports them"),
        (
            young,
            has_young_word,
            "--young",
            f"younger than {plural(days, 'day')}: hardly anybody can have looked at them",
        ),
    ):
        if packages and not is_said:
            _ask_more(approver, skill, packages, option, what, now)
    return channel


def _ask_more(approver: Approver, skill: str, packages: Sequence[Locked], option: str, what: str, now: float) -> None:
    names = ", ".join(each.name for each in packages)
    if approver.channel == FLAG:
        raise ApprovalUnavailableError.because(
            f"{names}: {what}, and --yes alone does not answer for that", f"Look at them, then add {option}."
        )
    lines = "\n".join(f"  {package_line(each, now)}" for each in packages)
    _ask(approver, f"Install these for {skill}, too?", f"These are {what}.\n\n{lines}")


def _ask(approver: Approver, title: str, message: str) -> str:
    request = OptionRequest(secrets.token_hex(16), title, message, OPTIONS).asked(time.time())
    answer = approver.ask(request)
    if answer.option_id != YES or answer.request_id not in ("", request.id):
        reason = f"Declined by a person ({answer.channel})."
        raise ApprovalDeclinedError(f"Nothing was installed. {reason}", reasons=[reason])
    return answer.channel


def _message(skill: str, plans: Sequence[Plan], now: float, days: int) -> str:
    first = (
        f"This is code that nobody here has read. It runs inside the same walls as the scripts of {visible(skill)}, "
        "whenever one of them runs, and can do what they can do. Nothing of it runs while it is installed."
    )
    parts = [first]
    for plan in plans:
        count = plural(len(plan.packages), "package")
        known = f", {size_text(plan.size)}" if plan.size else ""
        parts.append(f"{LANGUAGES[plan.kind]}: {count}{known}, from {', '.join(plan.indexes)}")
        parts.append("\n".join(f"  {package_line(each, now)}" for each in plan.packages))
        if plan.unknown:
            parts.append(f"Left out, since there are no such packages: {visible(', '.join(plan.unknown))} (guessed).")
        if plan.untimed:
            parts.append(
                f"{', '.join(plan.untimed)} does not tell when each of them was released: the limit of "
                f"{plural(days, 'day')} does not apply there."
            )
    return "\n\n".join(parts)


def package_line(package: Locked, now: float) -> str:
    """One line: name, version, size, age, who says so, and what looks wrong."""
    age = package.age_days(now)
    words = [
        f"{visible(package.name)} {visible(package.version)}",
        size_text(package.size) if package.size is not None else "size not told",
        f"{plural(age, 'day')} old" if age is not None else "age not told",
        f"{package.source} in {visible(package.where)}" if package.source else "needed by another",
    ]
    if package.resembles:
        words.append(f"ONE LETTER AWAY FROM THE MUCH MORE COMMON {package.resembles!r}")
    return ", ".join(words)


def size_text(size: int) -> str:
    return f"{size / MEGABYTE:,.1f} MB" if size >= MEGABYTE / 10 else f"{max(1, size // 1000):,} kB"
