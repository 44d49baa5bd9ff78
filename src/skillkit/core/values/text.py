"""Text from anywhere -> the same made harmless: nothing hides, reorders, starts a line or cannot be stored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = [
    "grouped",
    "is_plain",
    "map_texts",
    "near_names",
    "on_one_line",
    "plural",
    "shown_path",
    "spell_out",
    "storable",
    "toml_of",
    "visible",
]

DOTS_IN_A_LINE = 100
LONGEST_NAME = 200
_QUOTED = re.compile(r"""\"(?:[^"\\]|\\.){0,200}+\"|'[^']{0,200}+'""")
# Characters that change how the text around them is shown: they can make it lie. Those that nobody has
# assigned yet are drawn as each terminal likes.
HIDING_CATEGORIES = frozenset(("Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp"))
# Letters, marks and symbols that are drawn as nothing at all: fillers, blanks, selectors of variants.
UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)]))
)
# No script needs more marks on one character; a pile of them paints over the lines around it.
MARKS_ON_ONE_CHARACTER = 4


def visible(text: str) -> str:
    """Control, bidirectional and unseen characters written out as `\\x1b` or `\\u202e`; few marks on a letter."""
    if text.isascii() and text.isprintable():
        return text
    shown = []
    room = 0
    for char in text:
        if unicodedata.category(char)[0] == "M":
            room -= 1
            plain = room >= 0 and char not in UNSEEN
        else:
            plain = is_plain(char)
            room = MARKS_ON_ONE_CHARACTER if plain and not char.isspace() else 0
        shown.append(char if plain else spell_out(char))
    return "".join(shown)


def is_plain(char: str) -> bool:
    return char in "\n\t" or (unicodedata.category(char) not in HIDING_CATEGORIES and char not in UNSEEN)


def spell_out(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 - the range that has a short form
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def on_one_line(text: str) -> str:
    """Visible, and line breaks and tabs written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def grouped(count: int) -> str:
    """`2,428`: every number that a person counts with is written so."""
    return f"{count:,}"


def plural(count: int, word: str) -> str:
    """`1 skill`, `2 skills`."""
    return f"{grouped(count)} {word}{'' if count == 1 else 's'}"


def storable(text: str) -> str:
    """What stands for bytes that are no UTF-8 written out as `\\udcff`: it could be neither stored nor sent."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shown_path(path: str) -> str:
    """A name that is not text is written so that it can be kept and shown: its bytes as `\\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def map_texts(change: Callable[[str], str], value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """The same structure with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {map_texts(change, key): map_texts(change, each) for key, each in value.items()}
    return [map_texts(change, each) for each in value] if isinstance(value, list | tuple) else value


def toml_of(text: str) -> dict[str, Any]:
    """Somebody else's TOML; ValueError for what is none, and before the library takes a minute for one long key."""
    import tomllib

    for line in text.split("\n"):
        # A key stands on one line, and the library takes the square of its length for one.
        if line.count(".") > DOTS_IN_A_LINE and _QUOTED.sub("", line).count(".") > DOTS_IN_A_LINE:
            raise ValueError(f"a line has more than {DOTS_IN_A_LINE} dots")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("its lists are nested too deeply") from error


def near_names(name: str, known: Iterable[str], *, most: int = 1, alike: float = 0.6) -> list[str]:
    """What it may have been meant to be; none for a text that is longer than names are: comparing takes that long."""
    import difflib

    if len(name) > LONGEST_NAME:
        return []
    return difflib.get_close_matches(name, list(known), most, alike)  # noqa: TID251 - the one place
