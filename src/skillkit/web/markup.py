"""Tags and text -> HTML in which text can never become markup; the only file that writes a `<`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias, final

from skillkit.present.terminal import visible

__all__ = ["Child", "Markup", "document", "tag"]

ELEMENTS = frozenset(
    "a body br button circle code dd details div dl dt footer form h1 h2 h3 head header html input label li line link "
    "main mark meta nav noscript ol option p path polyline pre rect script section select small span strong summary "
    "svg table tbody td text th thead time title tr ul".split()
)
VOID = frozenset("br input link meta".split())
EMPTY = frozenset(("script",))
NAME = re.compile(r"[a-zA-Z]+[0-9]?(-[a-z]+)*")
FORBIDDEN = re.compile(r"on.*|style|srcdoc|http-equiv")
ADDRESSES = frozenset(("action", "formaction", "href", "src"))
# A browser drops tabs and line breaks from an address and takes a backslash for a slash.
LOCAL = re.compile(r"(?:/(?!/)|[#?])[!-\[\]-~]*|/?")


@final
class Markup:
    """Finished HTML; only `tag` makes it."""

    __slots__ = ("html",)

    def __init__(self, html: str, *, key: object) -> None:
        if key is not _KEY:
            raise TypeError("Markup is made by tag(); text is handed to it as a plain str.")
        self.html = html


_KEY = object()

Child: TypeAlias = "Markup | str | int | Iterable[Child] | None"


def tag(element: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element; `class_` and `aria_label` are written as HTML writes them, None and False leave one out."""
    if element not in ELEMENTS:
        raise ValueError(f"{element!r} is no element that the page uses; add it to ELEMENTS if it is harmless.")
    opening = f"<{element}{''.join(map(attribute, attributes, attributes.values()))}>"
    if element in VOID:
        return Markup(opening, key=_KEY)
    inside = "".join(map(written, children))
    if inside and element in EMPTY:
        raise ValueError(f"<{element}> holds nothing: what it runs comes from a file of ours.")
    return Markup(f"{opening}{inside}</{element}>", key=_KEY)


def written(child: Child) -> str:
    """Characters that hide or reorder are written out before anything else."""
    match child:
        case None:
            return ""
        case Markup():
            return child.html
        case str():
            return escape(visible(child))
        case int():
            return str(child)
        case _:
            return "".join(map(written, child))


def attribute(given: str, value: str | int | bool | None) -> str:
    name = given.removesuffix("_").replace("_", "-")
    if not NAME.fullmatch(name) or FORBIDDEN.fullmatch(name.lower()):
        raise ValueError(f"{name!r} is no attribute that the page uses.")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = str(value)
    if name in ADDRESSES and not LOCAL.fullmatch(text):
        raise ValueError(f"{text!r} is no address on this page.")
    # What a form sends back must be what it was given; everything else is for eyes.
    return f' {name}="{escape(text if name == "value" else visible(text))}"'


def document(root: Markup) -> bytes:
    return b"<!doctype html>\n" + root.html.encode("utf-8", "replace")
