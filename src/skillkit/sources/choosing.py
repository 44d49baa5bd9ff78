"""A tree and what is wanted of it -> skills, whole and held against the rules, ready to be written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError, SkillNotFoundError, SkillParsingError, SourceRefusedError
from skillkit.core.find.reading import fields_of
from skillkit.core.find.walk import HOST_FOLDERS, OWN_FOLDERS, SKILL_FILE, SKIPPED_FOLDERS
from skillkit.core.models.digest import SIGNATURE_FILE, manifest_from
from skillkit.core.models.frontmatter import read_frontmatter, text_of
from skillkit.core.paths.trees import NewFile
from skillkit.core.values.runs import Manifest
from skillkit.core.values.text import near_names
from skillkit.sources.listing import FILE_BYTES, Listed, Tree, read_within, require_content, require_listed

__all__ = ["NAME", "SkillContent", "choose_skills", "skill_at"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?<![.])")
"""What may become a folder's name and a key of the lock."""
STANDARD_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SHOWN = 20


class SkillContent(NamedTuple):
    """One skill of a source, in memory; `label` is what it calls itself."""

    name: str
    label: str
    path: str
    version: str
    files: tuple[NewFile, ...]
    manifest: Manifest

    @property
    def signature(self) -> bytes | None:
        """What stands in its SKILL.sig."""
        return next((file.content for file in self.files if file.names == (SIGNATURE_FILE,)), None)


class _Candidate(NamedTuple):
    path: str
    label: str
    name: str


def choose_skills(tree: Tree, within: str, wanted: Sequence[str], *, fallback: str) -> list[SkillContent]:
    """All skills below `within`, or those that are `wanted` by name; `fallback` names one at the very top."""
    found = _candidates(tree, within, fallback)
    if not found:
        where = f" below {within!r}" if within else ""
        raise ConfigurationError(
            f"There is no skill{where}: no folder with a readable SKILL.md. Check the path, or the source."
        )
    chosen = _wanted(found, wanted) if wanted else _outermost(found)
    _require_one_of_each(tree, chosen)
    return _contents(tree, list({each.name: each for each in reversed(chosen)}.values())[::-1])


def skill_at(tree: Tree, path: str, name: str) -> SkillContent:
    """The one that a lock names; its name stays what the lock says."""
    found = [entry for entry in tree.listed if _is_skill_file(entry.path, path) and entry.size <= FILE_BYTES]
    read = _candidate(path, tree.read(found[:1])[0], name) if found else None
    if read is None:
        raise SkillNotFoundError(
            f"{name!r} is not in its source any more: there is no readable SKILL.md in {path or 'its top folder'!r}. "
            f"'skillkit remove {name}' removes it here.",
            skill_name=name,
            available=[],
        )
    return _contents(tree, [read._replace(name=name)])[0]


def _is_skill_file(path: str, folder: str) -> bool:
    above, name = posixpath.split(path)
    return above == folder and name.upper() == SKILL_FILE.upper()


def _candidates(tree: Tree, within: str, fallback: str) -> list[_Candidate]:
    files = [entry for entry in tree.listed if _may_name_skill(entry, within)]
    by_folder: dict[str, Listed] = {}
    for entry in sorted(files, key=lambda each: each.path):  # SKILL.md comes before any other way to write it
        by_folder.setdefault(posixpath.dirname(entry.path), entry)
    folders = [folder for folder in sorted(by_folder) if not _is_own(folder, by_folder)]
    texts = read_within(tree, [by_folder[folder] for folder in folders], "its SKILL.md files have")
    read = (_candidate(folder, text, fallback) for folder, text in zip(folders, texts, strict=True))
    return [each for each in read if each is not None]


def _may_name_skill(entry: Listed, within: str) -> bool:
    above, name = posixpath.split(entry.path)
    if name.upper() != SKILL_FILE.upper() or entry.kind not in ("file", "program") or entry.size > FILE_BYTES:
        return False
    if within and not (above == within or above.startswith(f"{within}/")):
        return False
    passed = above.removeprefix(within).strip("/").split("/") if above != within else []
    return all(name in HOST_FOLDERS if name.startswith(".") else name not in SKIPPED_FOLDERS for name in passed)


def _is_own(folder: str, folders: Collection[str]) -> bool:
    """Whether it lies in what another skill keeps for itself."""
    names = folder.split("/")
    return any(name in OWN_FOLDERS and "/".join(names[:place]) in folders for place, name in enumerate(names))


def _candidate(folder: str, text: bytes, fallback: str) -> _Candidate | None:
    """None for what no agent could use either."""
    try:
        frontmatter = read_frontmatter(text)
        fields_of(frontmatter, [])
    except SkillParsingError:
        return None
    label, own = text_of(frontmatter.fields.get("name")), posixpath.basename(folder) or fallback
    name = label if STANDARD_NAME.fullmatch(label) else own
    return _Candidate(folder, label or own, name)


def _outermost(found: Iterable[_Candidate]) -> list[_Candidate]:
    """A skill inside a skill comes with it."""
    chosen: dict[str, _Candidate] = {}
    for each in found:  # in the order of their paths
        names = each.path.split("/")
        if not any("/".join(names[:place]) in chosen for place in range(len(names))):
            chosen[each.path] = each
    return list(chosen.values())


def _wanted(found: Sequence[_Candidate], wanted: Sequence[str]) -> list[_Candidate]:
    chosen = [each for name in dict.fromkeys(wanted) for each in found if name in (each.name, each.label)]
    names = sorted({each.name for each in found})
    for name in wanted:
        if not any(name in (each.name, each.label) for each in found):
            near = near_names(name, names)
            more = ", ..." if len(names) > SHOWN else ""
            there = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names[:SHOWN])}{more}."
            raise SkillNotFoundError(f"The source has no skill {name!r}. {there}", skill_name=name, available=names)
    return chosen


def _require_one_of_each(tree: Tree, chosen: Sequence[_Candidate]) -> None:
    """Two with one name are one only if they have the same content; some repositories keep a copy for each host."""
    by_name: dict[str, list[_Candidate]] = {}
    for each in chosen:
        if not NAME.fullmatch(each.name):
            raise SourceRefusedError(
                f"The skill in {each.path or 'the top folder'!r} is not added: {each.name!r} cannot be a "
                "folder's name. Tell its author, or add others of the source by --skill."
            )
        by_name.setdefault(each.name.casefold(), []).append(each)
    for same in by_name.values():
        if len({_fingerprint(tree, each.path) for each in same} if len(same) > 1 else "1") > 1:
            paths = ", ".join(each.path or "." for each in same)
            raise SourceRefusedError(
                f"The source has several different skills named {same[0].name!r}: {paths}. "
                "Name the folder of the one you want: OWNER/REPO/PATH or URL#REF:PATH."
            )


def _fingerprint(tree: Tree, path: str) -> tuple[tuple[str, str, bytes], ...]:
    entries = [entry for entry in _below(tree, path) if entry.kind in ("file", "program", "link")]
    contents = read_within(tree, entries, f"{path or 'its top folder'!r} has")
    return tuple((entry.path, entry.kind, held) for entry, held in zip(entries, contents, strict=True))


def _below(tree: Tree, path: str) -> list[Listed]:
    """With the skill's own paths."""
    start = f"{path}/" if path else ""
    return [entry._replace(path=entry.path[len(start) :]) for entry in tree.listed if entry.path.startswith(start)]


def _contents(tree: Tree, chosen: Sequence[_Candidate]) -> list[SkillContent]:
    """Judged as a whole first, read by one call, then judged by content."""
    entries = _entries_of(tree, [each.path for each in chosen])
    for each in chosen:
        require_listed(each.name, entries[each.path])
    wanted = [entry for each in chosen for entry in entries[each.path]]
    read = iter(read_within(tree, wanted, f"these {len(chosen)} skills have"))
    return [
        _content(each, tree.version_of(each.path), [(entry, next(read)) for entry in entries[each.path]])
        for each in chosen
    ]


def _entries_of(tree: Tree, paths: Sequence[str]) -> dict[str, list[Listed]]:
    """One look at the listing, however many skills there are."""
    if len(paths) == 1:
        return {paths[0]: _below(tree, paths[0])}
    entries: dict[str, list[Listed]] = {path: [] for path in paths}
    for entry in tree.listed:
        above = entry.path
        while above:
            above = posixpath.dirname(above)
            if above in entries:
                start = len(above) + 1 if above else 0
                entries[above].append(entry._replace(path=entry.path[start:]))
    return entries


def _content(chosen: _Candidate, version: str, read: Sequence[tuple[Listed, bytes]]) -> SkillContent:
    files, contents, links = list[NewFile](), dict[str, bytes](), dict[str, str]()
    for entry, content in read:
        require_content(chosen.name, entry, content)
        mode = 0o777 if entry.kind == "program" else 0o666
        files.append(NewFile(tuple(entry.path.split("/")), content, mode, entry.kind == "link"))
        if entry.kind == "link":
            links[entry.path] = content.decode()
        else:
            contents[entry.path] = content
    manifest = manifest_from(contents, links)
    return SkillContent(chosen.name, chosen.label, chosen.path, version, tuple(files), manifest)
