"""Colours that can be read: every pair of ink and ground that the page uses, in light and in dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("skillkit.web") / "static" / "page.css").read_text(encoding="utf-8")
READABLE = 4.5
VISIBLE = 3.0
INKS = {
    "page": ("ink", "quiet", "accent"),
    "card": ("ink", "quiet", "accent", "bad", "good", "warn"),
    "sunk": (
        "ink",
        "quiet",
        "code-comment",
        "code-keyword",
        "code-string",
        "code-number",
        "code-builtin",
        "code-function",
        "code-decorator",
    ),
    "good-soft": ("good", "ink", "quiet"),
    "warn-soft": ("warn", "ink", "quiet"),
    "bad-soft": ("bad", "ink", "quiet"),
    "accent-soft": ("ink", "accent", "quiet"),
    "accent": ("accent-ink",),
    "bad": ("card",),
}


def colours() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    read = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in (light, dark)]
    return {"light": read[0], "dark": {**read[0], **read[1]}}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(scheme: str) -> None:
    known = colours()[scheme]
    found = {(ink, ground): contrast(known[ink], known[ground]) for ground, inks in INKS.items() for ink in inks}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < READABLE} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_edges_of_buttons_can_be_seen(scheme: str) -> None:
    known = colours()[scheme]
    assert all(contrast(known[name], known["card"]) >= VISIBLE for name in ("edge-strong", "accent", "bad"))


def test_the_measure_tells_good_from_bad() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") < READABLE


def test_styles_and_scripts_name_no_other_server() -> None:
    script = (files("skillkit.web") / "static" / "page.js").read_text(encoding="utf-8")
    assert "http" not in STYLE + script
    assert "url(" not in STYLE
