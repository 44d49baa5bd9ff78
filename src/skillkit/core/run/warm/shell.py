"""A script of any other language -> a shell that waits in its place, in finished walls, and becomes its interpreter.

Nothing of the interpreter is started ahead, so nothing about it can differ: the shell changes into the folder, limits
the processor time, closes what it was told by, and is replaced by the interpreter with exactly the environment of a
cold run. What it is told comes as words that end with NUL; it never reads them as commands. It has to be bash, because
a plain shell cannot close descriptors of more than one digit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from skillkit.core.run.process.survivors import MARKER_NAME
from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm.spare import Told

__all__ = ["can_wait", "hook", "request"]

INTERPRETERS = frozenset(("bash", "node", "ruby", "perl"))
BASH, ENV = "/bin/bash", "/usr/bin/env"
# It says that the walls stand, and once it may go on that it is ready and has imported nothing. An order is a folder,
# seconds, how many variables and how many words follow, and those.
WAIT = (
    'echo w >&"$3"; read -r go <&"$2" && [ "$go" = go ] || exit 125; printf "ur\\0\\0\\0\\0\\0\\0\\0\\0" >&"$3"; '
    'told=("$1" "$2" "$3" "$4"); shift 4; mapfile -d "" -t order <&"${told[3]}"; '
    'variables="${order[2]}"; [ "${#order[@]}" = "$((4 + variables + order[3]))" ] || exit 125; '
    'cd "${order[0]}" && ulimit -t "${order[1]}" && printf k >&"${told[2]}" || exit 125; '
    'for number in "${told[@]}"; do exec {number}>&-; done; '
    f'exec {ENV} -i "${{order[@]:4:variables}}" "{MARKER_NAME}=${MARKER_NAME}" "PWD=${{order[0]}}" "$@" '
    '"${order[@]:4 + variables}"'
)


def can_wait(interpreter: str, words: tuple[str, ...]) -> bool:
    """Whether it is one of these languages, and there is what waits for it; `env` takes a `=` for a variable."""
    is_there = os.access(BASH, os.X_OK) and os.access(ENV, os.X_OK)
    return interpreter in INTERPRETERS and "=" not in words[0] and is_there


def hook() -> Hook:
    return Hook(b"", WAIT, (BASH, "--norc", "--noprofile"))


def request(told: Told, _: Mapping[str, str]) -> bytes:
    """What one run brings along."""
    variables = [f"{name}={value}" for name, value in told.environment.items()]
    counts = (str(len(variables)), str(len(told.arguments)))
    order = (told.folder, str(told.cpu_seconds), *counts, *variables, *told.arguments)
    return b"".join(os.fsencode(each) + b"\0" for each in order)
