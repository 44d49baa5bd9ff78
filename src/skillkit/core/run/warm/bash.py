"""A bash script -> a bash that is up and waits before it opens it.

Bash reads a file of commands (`BASH_ENV`) when it is ready but for the script. This one waits there; when a run comes
it takes folder, variables and words, leaves no variable of its own, and bash goes on as always: it opens the script and
reads it. What bash keeps of how it was started is asked for by nearly nobody (`UNUSUAL`); then only the walls wait.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm.spare import Told

__all__ = ["SUFFIXES", "UNUSUAL", "can_wait", "hook", "request"]

GO, ANSWERS, ORDERS = (f"WARM_{name}" for name in ("GO", "ANSWERS", "ORDERS"))
TEXT = "WARM_TEXT"
WORDS = 2
SUFFIXES = (".sh", ".bash")
UNUSUAL = re.compile(rb"BASH_ARG[VC]|extdebug|BASH_ENV")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# An order that never came whole leaves the names: then there is no script to go on to.
WAIT = f"""\
echo w >&"${ANSWERS}"; read -r REPLY <&"${GO}" && [ "$REPLY" = go ] || exit 125
cd -- /; unset OLDPWD REPLY; export OLDPWD; SECONDS=0; eval 'exec 9<&-'; set -- 'a b'; set --
printf 'ur\\0\\0\\0\\0\\0\\0\\0\\0' >&"${ANSWERS}"
. "/proc/self/fd/${ORDERS}"
[[ ! -v {GO} ]] || exit 125
"""
NAMES = ((TEXT, 0), (GO, 1), (ANSWERS, 2), (ORDERS, 3), ("BASH_ENV", f"/proc/self/fd/${TEXT}"))


def hook(words: tuple[str, ...]) -> Hook:
    """What bash begins with as the last word of the last command is its own name."""
    return Hook(f"{WAIT}: {shlex.quote(words[0])}\n".encode(), "", variables=NAMES, is_renamed=True)


def can_wait(words: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    """Whether this bash starts as any other does."""
    steering = ("BASH", "SHELLOPTS", "POSIXLY_CORRECT", "WARM_")
    return len(words) == WORDS and not any(name.startswith(steering) for name in environment)


def request(told: Told, started: Mapping[str, str]) -> bytes | None:
    """Commands of our own making; whatever comes from elsewhere is quoted."""
    fresh = {name: value for name, value in told.environment.items() if started.get(name) != value}
    if not all(NAME.fullmatch(name) for name in fresh):
        return None
    quoted = " ".join(shlex.quote(each) for each in told.arguments)
    lines = (
        f"cd -- {shlex.quote(told.folder)} || exit 125",
        *(f"export {name}={shlex.quote(value)}" for name, value in fresh.items()),
        "unset OLDPWD REPLY; export OLDPWD; SECONDS=0",
        f'printf k >&"${ANSWERS}" || exit 125',
        f'eval "exec ${TEXT}<&- ${GO}<&- ${ANSWERS}>&- ${ORDERS}<&-"',
        f"unset BASH_ENV {TEXT} {GO} {ANSWERS} {ORDERS}",
        f"set -- {quoted}",
    )
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
