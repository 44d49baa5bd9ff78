"""A node script -> a node that is up and waits before it opens it, with the built-in modules that it needs.

Node loads a module (`--require`) when it is ready but for the script; `node_hook.js` waits there. Threads of a script
load it again: so it stands in the place of /dev/null, only until a run is handed over, and an empty file is nothing to
them. What tells how long ago a process began is wrong then, and so is some of what node says of itself: where a skill
asks for that (`UNUSUAL`), only the walls wait.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm.spare import Told

__all__ = ["SUFFIXES", "UNUSUAL", "can_wait", "framed", "hook", "modules_ahead", "request"]

PLACE = "/dev/null"
# Out of the way of what node opens itself, so that the script gets the same numbers as always.
ORDERS, ANSWERS = 220, 221
WAIT = (
    'echo w >&"$3"; read -r go <&"$2" && [ "$go" = go ] || exit 125; '
    f'exec {ORDERS}<&"$4" {ANSWERS}>&"$3"; '
    'for number in "$2" "$3" "$4"; do exec {number}>&-; done; shift 4; '
    f'export NODE_OPTIONS=--require={PLACE}; exec "$@"'
)
BASH = "/bin/bash"
WORDS = 2
HARMLESS = {"NODE_ENV", "NODE_PATH", "NODE_NO_WARNINGS", "NODE_DISABLE_COLORS", "NODE_PENDING_DEPRECATION"}
LENGTH_BYTES = 8
SUFFIXES = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".jsx", ".tsx", ".node", ".wasm")
UNUSUAL = re.compile(
    rb"uptime|performance|perf_hooks|timeOrigin|moduleLoadList|[rR]eport|async_hooks|binding|inspector"
)
# Each loads without a word and does nothing until it is called.
BUILT_IN = frozenset(
    "assert buffer child_process crypto dns events fs fs/promises http https net os path querystring readline "
    "readline/promises stream stream/promises string_decoder timers/promises tls url util worker_threads zlib".split()
)
_NAME = r"""['"](?:node:)?([a-z_/]+)['"]"""
LOADED = re.compile(rf"(?:const|let|var)\s+(?:\w+|\{{[\w\s,:]*\}})\s*=\s*require\({_NAME}\)(?:\.\w+)*\s*;?\s*(?://.*)?")
IMPORTED = re.compile(rf"import\s+(?:[\w*$\s{{}},]+?\s+from\s+)?{_NAME}\s*;?\s*(?://.*)?")
NOTHING = re.compile(r"""(?:#!.*|//.*|/\*.*?\*/|['"]use strict['"];?|)\s*""", re.DOTALL)
LONGEST_SCRIPT = 1_000_000


def can_wait(words: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    """Whether this node starts as any other does, and all that it would be told is text."""
    steering = [name for name in environment if name.startswith("NODE_") and name not in HARMLESS]
    return len(words) == WORDS and not steering and os.access(BASH, os.X_OK)


@cache
def hook() -> Hook:
    text = Path(__file__).with_name("node_hook.js").read_bytes()
    numbers = b"const ORDERS = %d, ANSWERS = %d;\n" % (ORDERS, ANSWERS)
    return Hook(numbers + text, WAIT, (BASH, "--norc", "--noprofile"), place=PLACE, is_renamed=True)


def framed(order: object) -> bytes:
    """As the hook reads it; whoever cannot be said in UTF-8 raises ValueError."""
    content = json.dumps(order, ensure_ascii=False).encode()
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def request(told: Told, _: Mapping[str, str]) -> bytes | None:
    """What one run brings along."""
    try:
        return framed({"words": told.arguments, "environment": [*told.environment.items()], "folder": told.folder})
    except ValueError:
        return None


def modules_ahead(script: Path) -> tuple[str, ...]:
    """Node's own modules that it loads before it does anything else, in their order."""
    try:
        if script.stat().st_size > LONGEST_SCRIPT:
            return ()
        text = script.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ()
    return tuple(dict.fromkeys(_leading(text)))


def _leading(text: str) -> Iterator[str]:
    for statement in _statements(text):
        found = LOADED.fullmatch(statement) or IMPORTED.fullmatch(statement)
        if found is None:
            if NOTHING.fullmatch(statement):
                continue
            return
        if found[1] in BUILT_IN:
            yield found[1]


def _statements(text: str) -> Iterator[str]:
    """Line by line, but for names in braces over several lines and comments."""
    held = ""
    for line in text.splitlines():
        held = f"{held}\n{line.strip()}".strip() if held else line.strip()
        is_open = held.count("{") > held.count("}") if not held.startswith("/*") else "*/" not in held
        if not is_open:
            yield held
            held = ""
