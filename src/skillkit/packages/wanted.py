"""Needs of kind package -> what is asked of the index, with the versions that the declaring file names.

Needs carry names. What versions are wanted is read again where the need was found. Addresses, options, git, paths and
editable entries are refused by name: an index answers for a name, nobody answers for an address.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from skillkit.core.find.needs.files import SkillFiles, code_at, files_of
from skillkit.core.find.needs.manifests import script_block
from skillkit.core.models import Skill
from skillkit.core.values.needs import Need
from skillkit.core.values.text import toml_of
from skillkit.packages.values import PackagesError, Wanted

__all__ = ["require_plain", "wanted_of"]

NPM = "npm:"
RANGE = re.compile(r"[\w.^~<>=*| +-]{0,100}")
ADDRESS = re.compile(r"^(?:[\w+.-]+://|git\+|git@|file:|\.{0,2}/)|\s@\s|\.(?:whl|zip|tar\.gz|tgz)\b")
LINE_CHARACTERS = 2_000


def wanted_of(skill: Skill, needs: Iterable[Need]) -> tuple[Wanted, ...]:
    """In the order of the needs."""
    files = files_of(str(skill.base_directory))
    packages = [need for need in needs if need.kind == "package"]
    for path, text in files.manifests.items():
        _refuse_entries(path, text, is_needed=any(_file_of(need) == path for need in packages))
    return tuple(_wanted(skill, need, files) for need in packages)


def require_plain(written: str, place: str) -> None:
    """Raises for what names an address, an option, a repository or a path instead of a package."""
    text = written.strip()
    what = ""
    if text.startswith(("-e", "--editable")):
        what = "an editable installation"
    elif text.startswith("-"):
        what = "an option"
    elif text.startswith(("git+", "git@", "github:")) or "git+" in text:
        what = "a git repository"
    elif ADDRESS.search(text):
        what = "a path" if text.startswith((".", "/", "file:")) else "an address"
    if what:
        raise PackagesError(
            f"{place}: {text[:100]!r} is {what}. Only names with versions are prepared, from the index that you use. "
            "Write the package's name instead, or take the line out."
        )


def _refuse_entries(path: str, text: str, *, is_needed: bool) -> None:
    """In a file that packages are taken from; also where a line of it brings none."""
    name = path.rpartition("/")[2]
    if name == "package.json":
        for package, version in _npm_dependencies(text):
            _require_range(f"{path}: {package}", version)
    elif name == "pyproject.toml":
        for written in _pyproject(text) if is_needed else ():
            require_plain(written, path)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            written = line.partition(" #")[0].strip()
            if written and not written.startswith("#"):
                require_plain(written, f"{path}:{number}")


def _require_range(place: str, version: str) -> None:
    if RANGE.fullmatch(version) is None or "/" in version:
        what = (
            "a git repository" if "git" in version or ("/" in version and ":" not in version) else "an address or path"
        )
        raise PackagesError(
            f"{place}: {version[:100]!r} is {what}. Only names with versions are prepared, from the registry that you "
            "use. Write a version instead."
        )


def _wanted(skill: Skill, need: Need, files: SkillFiles) -> Wanted:
    path = _file_of(need)
    text = files.manifests.get(path) or _text_at(skill, path)
    if need.name.startswith(NPM):
        name = need.name.removeprefix(NPM)
        version = next((found for package, found in _npm_dependencies(text) if package == name), "")
        if not version and need.source == "instructed":
            version = _npm_version_in(text, need, name)
        return Wanted("node", name, version or "*", need.source, need.where)
    line = int(need.where.rpartition(":")[2] or 1)
    for written in _requirements(path, text, line) if need.source != "inferred" else ():
        if (found := _requirement(written)) is not None and canonicalize_name(found.name) == need.name:
            if found.url:
                require_plain(written, need.where)
            return Wanted("python", need.name, str(found), need.source, need.where)
    return Wanted("python", need.name, need.name, need.source, need.where)


def _file_of(need: Need) -> str:
    return need.where.rpartition(":")[0]


def _text_at(skill: Skill, path: str) -> str:
    if path == skill.metadata.skill_path.name:
        try:
            return skill.metadata.skill_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    file = code_at(str(skill.base_directory), path)
    return file.text if file else ""


def _requirements(path: str, text: str, line: int) -> Iterator[str]:
    """Everything in a file that may be a requirement; whoever asks knows the name."""
    name = path.rpartition("/")[2]
    if name == "pyproject.toml":
        yield from _pyproject(text)
    elif name.endswith(".py"):
        toml, _ = script_block(text)
        yield from _texts(_toml(toml).get("dependencies"))
    elif name.endswith((".txt", ".in")):
        yield from (each.partition(" #")[0].strip() for each in text.splitlines())
    else:
        lines = text.splitlines()
        yield from _words(lines[line - 1][:LINE_CHARACTERS] if 0 < line <= len(lines) else "")


def _words(line: str) -> list[str]:
    """Of a command or a list in the instructions."""
    plain = line.replace("`", " ")
    try:
        words = shlex.split(plain)
    except ValueError:
        words = plain.split()
    return [word.strip(",;[]'\"- ") for word in words] + [plain.strip(" -'\"")]


def _requirement(written: str) -> Requirement | None:
    try:
        return Requirement(written)
    except InvalidRequirement:
        return None


def _npm_version_in(text: str, need: Need, name: str) -> str:
    line = int(need.where.rpartition(":")[2] or 1)
    lines = text.splitlines()
    for word in _words(lines[line - 1][:LINE_CHARACTERS] if 0 < line <= len(lines) else ""):
        if word.startswith(f"{name}@"):
            version = word.removeprefix(f"{name}@")
            _require_range(f"{need.where}: {name}", version)
            return version
    return ""


def _npm_dependencies(text: str) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return
    listed = content.get("dependencies") if isinstance(content, dict) else None
    yield from ((str(name), str(version)) for name, version in (listed if isinstance(listed, dict) else {}).items())


def _pyproject(text: str) -> list[str]:
    project = _toml(text).get("project")
    return _texts(project.get("dependencies")) if isinstance(project, dict) else []


def _toml(text: str) -> dict[str, object]:
    try:
        return toml_of(text)
    except ValueError:
        return {}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
