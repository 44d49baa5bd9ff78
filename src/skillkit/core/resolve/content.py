"""A script's bytes, as they were hashed -> what follows from them alone: where it starts, which languages it calls."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

from skillkit.core.exceptions import ContentChangedError
from skillkit.core.resolve.locate import Located
from skillkit.core.resolve.working_directory import starts_in_skill
from skillkit.core.values.runs import Manifest

__all__ = ["ScriptContent", "content_of_script"]

REMEMBERED = 1024
# What tells that a script, or what it starts of its skill, may call an interpreter.
MENTIONS = {
    "python3": (re.compile(rb"\b(?:python|pip|uv)[0-9.]*\b"), (".py",)),
    "node": (re.compile(rb"\b(?:node|npm|npx|tsx|yarn|pnpm)\b"), (".js", ".mjs", ".cjs", ".ts")),
    "ruby": (re.compile(rb"\b(?:ruby|gem|bundle)\b"), (".rb",)),
    "perl": (re.compile(rb"\bperl\b"), (".pl",)),
}

_known: dict[tuple[str, str, str], ScriptContent] = {}


class ScriptContent(NamedTuple):
    """What a script's text says."""

    uses_own_files: bool
    """Whether it opens, sources or starts something of its skill by a relative name."""
    called: frozenset[str]
    """Interpreters that it may call."""


def content_of_script(located: Located, manifest: Manifest) -> ScriptContent:
    """Read once for each content of the skill; other bytes than were hashed are not what will run."""
    key = (manifest.digest, located.name, located.interpreter.name)
    known = _known.get(key)
    if known is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        known = _known[key] = _read(located, manifest)
    return known


def _read(located: Located, manifest: Manifest) -> ScriptContent:
    names = tuple(name for name, _ in manifest.entries)
    try:
        with open(located.path, "rb") as file:
            text = file.read()
    except OSError:
        text = b""
    if dict(manifest.entries).get(located.name) != f"sha256 {sha256(text).hexdigest()}":
        raise ContentChangedError.because(f"{located.name!r} changed while it was looked at", "Run it again.")
    called = [
        name
        for name, (mention, endings) in MENTIONS.items()
        if mention.search(text) or any(each.endswith(endings) for each in names)
    ]
    return ScriptContent(starts_in_skill(text, located.interpreter.name, names), frozenset(called))
