"""What a skill's code names outside its own folder -> the folder of its plugin, or the skill beside it, that is meant.

Reading gives names alone, as `../other/scripts/x.py`; whether there is such a thing is looked up when somebody asks.
Only a folder that is really there by that name counts: inside the walls nothing but the folder itself stands, so a
link on the way would lead nowhere, and who made it could have made it lead anywhere.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from skillkit.core.find.needs.found import Facts
from skillkit.core.paths import is_inside, real_path

__all__ = [
    "ABOVE",
    "IN_PLUGIN",
    "has_module",
    "is_of_skills",
    "note_plugin",
    "note_reach",
    "outside_names",
    "sibling_folder",
]

IN_PLUGIN = "${CLAUDE_PLUGIN_ROOT}/"
ABOVE = "../"
PARTS = 6
REACH = re.compile(r"(?<![\w.-])((?:\.\./){1,8}[\w-][\w.-]{0,80}(?:/[\w.-]{1,80}){0,6})")
OF_PLUGIN = re.compile(
    r"CLAUDE_PLUGIN_ROOT[\"'\])}]{0,4}[ ]{0,2}[/,+][ ]{0,2}[f\"'/]{0,3}"
    r"([\w-][\w.-]{0,80}(?:(?:/|[\"'],[ ]{0,2}[\"'])[\w-][\w.-]{0,80}){0,6})"
)
NEXT = re.compile(r"[\"'],[ ]*[\"']")
MODULE_FOLDERS = ("", "scripts", "lib", "src")
SKILL_FILES = ("SKILL.md", "skill.md")


def note_reach(facts: Facts, text: str, line: int) -> None:
    """A relative path in a literal that leads upwards, from wherever the script starts or its file lies."""
    if ABOVE in text and (found := REACH.search(text)):
        facts.reaches.setdefault(("anywhere", found[1]), line)


def note_plugin(facts: Facts, text: str) -> None:
    """Whatever the language, it is written with this name."""
    if "CLAUDE_PLUGIN_ROOT" not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        found = OF_PLUGIN.search(line[:1000]) if not line.lstrip().startswith(("#", "//")) else None
        if found:
            facts.reaches.setdefault(("plugin", NEXT.sub("/", found[1])), number)


def outside_names(path: str, facts: Facts) -> Iterator[tuple[str, int]]:
    """Of one file of the skill: what it reaches outside, as names from the skill's folder, each with its line."""
    for (base, written), line in facts.reaches.items():
        if base == "plugin":
            yield IN_PLUGIN + "/".join(written.split("/")[:PARTS]), line
            continue
        folders = (path,) if base == "file" else dict.fromkeys((posixpath.dirname(path), ""))
        for folder in folders:
            name = posixpath.normpath(posixpath.join(folder, written))
            if name.startswith(ABOVE) and name.strip("./"):
                yield "/".join(name.split("/")[:PARTS]), line


def sibling_folder(name: str, folder: str | Path, plugin_root: str | Path | None) -> str:
    """The real folder that holds what the name means; empty where there is none that could be given."""
    own = real_path(folder)
    root = real_path(plugin_root) if plugin_root else os.path.dirname(own)
    if not is_inside(own, root) or (name.startswith(IN_PLUGIN) and not plugin_root):
        return ""
    place = os.path.join(root, name.removeprefix(IN_PLUGIN)) if name.startswith(IN_PLUGIN) else os.path.join(own, name)
    target = os.path.normpath(place)
    if target == root or not is_inside(target, root) or is_inside(target, own) or not os.path.lexists(target):
        return ""
    found = root
    for part in os.path.relpath(target, root).split(os.sep):
        found = os.path.join(found, part)
        if part.startswith("."):
            return ""
        if not is_inside(own, found):
            break
    has_room = not is_inside(own, found) and os.path.isdir(found) and real_path(found) == found
    return found if has_room and (plugin_root or is_skill(found)) else ""


def is_of_skills(path: str, plugin_root: str | Path | None) -> bool:
    """Whether a folder is a skill's, or belongs to this plugin: what a script uses of it is code, as its own is."""
    return os.path.isdir(path) and (is_skill(path) or bool(plugin_root and is_inside(path, real_path(plugin_root))))


def is_skill(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in SKILL_FILES)


def has_module(folder: str, name: str) -> bool:
    """Whether Python could find a module of this name there, in the folders that scripts put on their path."""
    top = name.partition(".")[0]
    places = [os.path.join(folder, inner, top) for inner in MODULE_FOLDERS]
    return top.isidentifier() and any(os.path.isfile(f"{place}.py") or os.path.isdir(place) for place in places)
