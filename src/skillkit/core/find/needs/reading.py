"""A skill -> its needs: what it uses beyond its own folder, who says so, and where.

Theory of operation. Each file of code is read once, by itself, into facts (`Facts`). What a script needs are the facts
of its own file and of those files of the skill that it imports, sources or starts, found by following names; what the
skill declares in its frontmatter and its lists of packages, and what its instructions say to install and to set,
counts for all of them. Of several sources for one need the surest is kept. Nothing is started, nothing is asked over
the network, and no more is read than `files.py` allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skillkit.core.exceptions import SkillKitError
from skillkit.core.find.needs.declared import declared_facts
from skillkit.core.find.needs.files import CodeFile, OwnFiles, SkillFiles, code_at, files_of
from skillkit.core.find.needs.found import Facts, Found
from skillkit.core.find.needs.installing import instructed_facts
from skillkit.core.find.needs.javascript_code import javascript_facts
from skillkit.core.find.needs.manifests import block_facts, manifest_facts
from skillkit.core.find.needs.packages import hosts_of_package, package_of
from skillkit.core.find.needs.python_code import python_facts
from skillkit.core.find.needs.shell_code import shell_facts
from skillkit.core.find.needs.siblings import note_plugin, outside_names
from skillkit.core.find.needs.texts import note_patterns
from skillkit.core.models import Skill, skill_file_bytes
from skillkit.core.models.frontmatter import decode
from skillkit.core.values.needs import ANY_HOST, NEED_KINDS, SOURCES, Need
from skillkit.core.values.skills import ScriptMetadata

__all__ = ["SkillNeeds"]

ASIDE = frozenset("assets references examples templates docs example template resources".split())
"""Folders whose code is shown or copied; what a script uses of it, or who asks for it by name, counts all the same."""
TEST = re.compile(r"test_.*|.*[._]test\.\w+|.*\.spec\.\w+")
INSTRUCTIONS_BYTES = 256_000
MOST_HOSTS = 20
"""Who needs more needs any: nobody looks at each of thirty hosts."""
MOST_OF_A_KIND = 50
INNER_TEXTS = 20
FRONTMATTER_END = re.compile(r"\n---[ \t]*(?:\n|$)")
RUNTIMES = (("bun", re.compile(r"^#!.{0,60}\bbun\b|\bBun\.")), ("deno", re.compile(r"^#!.{0,60}\bdeno\b|\bDeno\.")))
LANGUAGES_OF_PACKAGES = {"python": False, "javascript": True, "typescript": True}
"""Whether a script's packages are npm's; others may start either language."""

Claim = tuple[str, str, Found]
"""Source, file, and what was found there."""


class SkillNeeds:
    """The needs of one skill, and of each of its scripts, as its files were when this was made."""

    def __init__(self, skill: Skill) -> None:
        self._root = str(skill.base_directory)
        self._files = files_of(self._root)
        self._own = OwnFiles(self._files)
        self._facts: dict[str, Facts] = {}
        self._said = list(_said_of(skill, self._files))

    def of(self, script: str | Path | ScriptMetadata | None = None, *, is_code_only: bool = False) -> tuple[Need, ...]:
        """Of the whole skill, or of one script by its path, file name or stem; unmet, since nobody has looked yet.

        `is_code_only` leaves out what the skill says for all its scripts.
        """
        said = [] if is_code_only else self._said
        if script is None:
            main = [path for path in self._files.code if not _is_aside(path)]
            return _needs([*said, *self._seen(self._used_by(*main))])
        path = self._path_of(script.path if isinstance(script, ScriptMetadata) else Path(script))
        if path is None:
            return _needs(said)
        language = self._files.code[path].language
        said = [claim for claim in said if _is_for(language, claim[2])]
        return _needs([*said, *self._seen(self._used_by(path))])

    def _path_of(self, named: Path) -> str | None:
        """Of a script, also of one in a folder that was passed over; None where there is none."""
        path = self._own.script(named)
        if path is None and not named.is_absolute() and ".." not in named.parts:
            file = code_at(self._root, named.as_posix())
            if file is not None:
                self._files.code[file.path] = file
                path = file.path
        return path

    def _used_by(self, *paths: str) -> list[str]:
        """The files themselves and all that they lead to inside the skill."""
        reached = dict.fromkeys(paths)
        pending = list(paths)
        while pending:
            current = pending.pop()
            for each in self._own.used_by(current, self._facts_of(current)):
                if each not in reached:
                    reached[each] = None
                    pending.append(each)
        return list(reached)

    def _facts_of(self, path: str) -> Facts:
        if path not in self._facts:
            self._facts[path] = _facts_in(self._files.code[path])
        return self._facts[path]

    def _seen(self, paths: Iterable[str]) -> Iterator[Claim]:
        """In code; hosts count only where something talks, since texts name many that nobody goes to."""
        seen = _Seen()
        for path in paths:
            facts = self._facts_of(path)
            seen.claims += [("declared", path, found) for found in _block_of(self._files.code[path])]
            seen.note(path, facts)
            for name, line in outside_names(path, facts):
                seen.add(path, Found("read", name, line))
            for module, line in facts.imports.items():
                if package := package_of(module) if self._own.is_foreign(path, module) else "":
                    seen.add(path, Found("package", package, line))
        return seen.all()


@dataclass(slots=True)
class _Seen:
    """What several files use together."""

    claims: list[Claim] = field(default_factory=list)
    hosts: list[Claim] = field(default_factory=list)
    talks: tuple[str, int] | None = None

    def note(self, path: str, facts: Facts) -> None:
        for found in facts.found.values():
            self.add(path, found)
        if facts.talks and self.talks is None:
            self.talks = (path, facts.talks)

    def add(self, path: str, found: Found) -> None:
        (self.hosts if found.kind == "host" else self.claims).append(("inferred", path, found))

    def all(self) -> Iterator[Claim]:
        yield from self.claims
        if not self.hosts:
            self.hosts = [
                (source, path, Found("host", host, found.line))
                for source, path, found in self.claims
                if found.kind == "package"
                for host in hosts_of_package(found.name)
            ]
            is_local = any(found.kind == "loopback" for _, _, found in self.claims)
            if not self.hosts and self.talks is not None and not is_local:
                path, line = self.talks
                self.hosts = [("inferred", path, Found("host", ANY_HOST, line))]
        elif self.talks is None:
            return
        if len({found.name for _, _, found in self.hosts}) > MOST_HOSTS:
            source, path, found = self.hosts[0]
            self.hosts = [(source, path, Found("host", ANY_HOST, found.line))]
        yield from self.hosts


def _is_aside(path: str) -> bool:
    return path.partition("/")[0] in ASIDE or TEST.fullmatch(path.rpartition("/")[2]) is not None


def _facts_in(file: CodeFile) -> Facts:
    if file.language == "python":
        facts = python_facts(file.text) if not file.is_cut else note_patterns(file.text, "python")
    elif file.language == "shell":
        facts = shell_facts(file.text)
    elif file.language in ("javascript", "typescript"):
        facts = javascript_facts(file.text)
    else:
        facts = note_patterns(file.text, file.language)
    note_plugin(facts, file.text)
    for line, text in facts.inner[:INNER_TEXTS]:
        facts.merge(python_facts(text, line))
    if file.language == "typescript":
        facts.add("interpreter", next((name for name, sign in RUNTIMES if sign.search(file.text)), "tsx"), 1)
    elif file.language == "powershell":
        facts.add("interpreter", "pwsh", 1)
    return facts


def _block_of(file: CodeFile) -> Iterable[Found]:
    return block_facts(file.text).found.values() if file.language == "python" else ()


def _said_of(skill: Skill, files: SkillFiles) -> Iterator[Claim]:
    """By the frontmatter, the lists of packages and the instructions."""
    metadata = skill.metadata
    name = metadata.skill_path.name
    try:
        text, _ = decode(skill_file_bytes(metadata.skill_path)[:INSTRUCTIONS_BYTES])
    except SkillKitError:
        text = ""
    end = FRONTMATTER_END.search(text, 3)
    block = text[: end.start()] if end else text[:INSTRUCTIONS_BYTES]
    fields = {**metadata.extra, "metadata": metadata.metadata, "compatibility": metadata.compatibility}
    yield from (("declared", name, found) for found in declared_facts(fields, block).found.values())
    folders = {path.rpartition("/")[0] for path in files.code}
    for path, content in files.manifests.items():
        folder, _, file_name = path.rpartition("/")
        # Beside scripts or above them: others belong to templates that the skill brings along.
        if not folder or any(each == folder or each.startswith(f"{folder}/") for each in folders):
            yield from (("declared", path, found) for found in manifest_facts(file_name, content).found.values())
    yield from (("instructed", name, found) for found in instructed_facts(text).found.values())


def _is_for(language: str, found: Found) -> bool:
    is_npm = LANGUAGES_OF_PACKAGES.get(language)
    return found.kind != "package" or is_npm is None or found.name.startswith("npm:") == is_npm


def _needs(claims: Iterable[Claim]) -> tuple[Need, ...]:
    """Each once, by its surest source; by kind, then by name."""
    best: dict[tuple[str, str], Need] = {}
    for source, path, found in claims:
        known = best.get((found.kind, found.name))
        if known is None or SOURCES.index(source) < SOURCES.index(known.source):
            best[found.kind, found.name] = Need(found.kind, found.name, source, f"{path}:{found.line}")
    for (kind, name), need in list(best.items()):
        if kind == "read" and ("write", name) in best:
            del best[need.kind, need.name]
    ordered = sorted(best.values(), key=lambda need: (NEED_KINDS.index(need.kind), need.name))
    counts = dict.fromkeys(NEED_KINDS, 0)
    kept = []
    for need in ordered:
        counts[need.kind] += 1
        kept += [need] if counts[need.kind] <= MOST_OF_A_KIND else []
    return tuple(kept)
