"""A word -> a small drawing; decoration only, the word beside it says the same."""

from __future__ import annotations

from skillkit.web.markup import Markup, tag

__all__ = ["icon"]

SHAPES = {
    "shield": "M12 3l7 3v5c0 5-3 8.5-7 10-4-1.500-7-5-7-10V6z M9 12l2 2 4-4",
    "network": "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18z M3 12h18 M12 3c3 3 3 15 0 18 M12 3c-3 3-3 15 0 18",
    "file": "M6 3h8l4 4v14H6z M14 3v4h4",
    "folder": "M3 6h6l2 2h10v11H3z",
    "clock": "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18z M12 7v5l3 3",
    "program": "M4 5h16v14H4z M7 9l3 3-3 3 M12 15h5",
    "key": "M8 11a4 4 0 1 0 0 8a4 4 0 1 0 0-8z M11 12l8-8 M16 7l3 3",
    "eye": "M2 12c4-7 16-7 20 0c-4 7-16 7-20 0z M12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6z",
    "open": "M7 11V8a5 5 0 0 1 9-3 M5 11h14v10H5z",
    "flag": "M6 21V4 M6 4h11l-2 4 2 4H6",
    "check": "M5 12l5 5 9-10",
    "none": "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18z M6 6l12 12",
}


def icon(name: str) -> Markup:
    lines = tag("path", d=SHAPES[name])
    return tag("svg", lines, class_=f"icon icon-{name}", viewBox="0 0 24 24", aria_hidden="true", focusable="false")
