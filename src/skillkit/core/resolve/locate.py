"""What a caller calls a script -> the one file of the skill that is meant, what runs it, and what its bytes tell."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from skillkit.core.exceptions import ContentChangedError, ScriptNotFoundError, ScriptPermissionError
from skillkit.core.models import Skill
from skillkit.core.models.detect import language_at
from skillkit.core.models.digest import LEFT_OUT, SIGNATURE_FILE, forget
from skillkit.core.paths import PATH_LIMIT, FilePathResolver, is_inside, is_sayable, violation
from skillkit.core.resolve.environment import Interpreter, Runner, interpreter_for
from skillkit.core.resolve.working_directory import starts_in_skill
from skillkit.core.values.runs import Manifest
from skillkit.core.values.skills import ScriptMetadata

__all__ = [
    "Located",
    "Place",
    "ScriptContent",
    "content_of_script",
    "find_script",
    "locate",
    "require_part_of_skill",
    "require_plain_file",
]

_located: dict[object, Located] = {}
_REMEMBERED = 4096


class Place(NamedTuple):
    """Where a script is looked for, and where its interpreter is."""

    base: Path
    digest: str
    workspace: Path | None
    """Without links: one that is re-pointed means another place."""
    search_path: str


@dataclass(frozen=True, slots=True)
class Located:
    """Which file a name means, and what runs it."""

    path: Path
    file: str
    """The same as a text."""
    name: str
    interpreter: Interpreter


def locate(skill: Skill, name: str, place: Place, allowed: tuple[str, ...], run: Runner) -> Located:
    """Looked up once for a digest: while no file and no link of the skill changes, a name means the same.

    What the digest does not tell, the mode of the file and whether the interpreter is there, is asked each time.
    """
    skill_name, key = skill.metadata.name, (place, name, allowed)
    known = _located.get(key)
    if known is None or not os.access(known.interpreter.path, os.X_OK):
        known = _look_up(skill, name, place, allowed, run)
        if len(_located) >= _REMEMBERED:
            _located.clear()
        _located[key] = known
    require_plain_file(known.file, skill_name)
    if not place.digest:
        # A folder that came back after it was looked at has a script, but nobody knows which.
        raise ContentChangedError.because(f"{skill_name!r} changed while it was looked at", "Run it again.")
    return known


def _look_up(skill: Skill, name: str, place: Place, allowed: tuple[str, ...], run: Runner) -> Located:
    base, _, workspace, search_path = place
    skill_name = skill.metadata.name
    script = find_script(name, skill_name, base, skill.scripts)
    path = FilePathResolver.resolve_path(base, script.path)
    require_part_of_skill(path, skill_name, base)
    require_plain_file(str(path), skill_name)
    language = language_at(path) or script.script_type
    closed = (base,) if workspace is None else (base, workspace)
    interpreter = interpreter_for(language, search_path, allowed, run, closed=closed)
    return Located(path, str(path), path.relative_to(base).as_posix(), interpreter)


def find_script(
    requested: str, skill_name: str, base_directory: Path, scripts: Sequence[ScriptMetadata]
) -> ScriptMetadata:
    """By relative path, path below `scripts/`, file name or stem; several that fit are an error that lists them."""
    wanted = _plain_name(requested)
    paths = {script.path.as_posix(): script for script in scripts}
    exact = paths.get(wanted) or paths.get(f"scripts/{wanted}")
    if exact is not None:
        return exact
    for fits in (
        [script for script in scripts if script.path.name == wanted],
        [script for script in scripts if wanted in (script.name, script.path.with_suffix("").as_posix())]
        or [script for script in scripts if f"scripts/{wanted}" == script.path.with_suffix("").as_posix()],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise _unclear(requested, skill_name, [script.path.as_posix() for script in fits])
    inside = _name_inside(requested, base_directory)
    found = paths.get(inside) or (_undetected_script(inside, skill_name, base_directory) if inside else None)
    if found is None:
        raise _missing(requested, skill_name, sorted(paths))
    return found


def _plain_name(requested: str) -> str:
    """Empty for what no script can be named: to take a text of megabytes apart takes seconds."""
    return PurePosixPath(requested).as_posix() if 0 < len(requested) <= PATH_LIMIT else ""


def _name_inside(requested: str, base_directory: Path) -> str:
    """A path that leaves the skill is refused, although detection lists nothing there."""
    base = os.path.realpath(base_directory)
    if requested and os.path.isabs(requested) and is_sayable(requested):
        wanted = os.path.realpath(requested)
        requested = os.path.relpath(wanted, base) if is_inside(wanted, base) else requested
    elif not requested or ".." in requested.replace("\\", "/").split("/"):
        raise violation(requested, base, "a script is named by a path without '..', a file name or a stem")
    # What is longer than a path may be is not a file of any skill; only what claims to lie elsewhere is refused.
    is_endless = len(requested) > PATH_LIMIT and not os.path.isabs(requested)
    for candidate in () if is_endless else (requested, f"scripts/{requested}"):
        FilePathResolver.resolve_path(base, candidate)
    return _plain_name(requested)


def _undetected_script(wanted: str, skill_name: str, base_directory: Path) -> ScriptMetadata | None:
    """A script outside the folders that detection looks into, named by its path."""
    path = Path(wanted)
    for place in (base_directory / path, base_directory / "scripts" / path):
        if os.path.exists(place) and not os.path.isdir(place):
            require_plain_file(str(place), skill_name)
    language = language_at(base_directory / path)
    return ScriptMetadata(path.stem, path, language) if language else None


def _unclear(requested: str, skill_name: str, fits: list[str]) -> ScriptNotFoundError:
    return ScriptNotFoundError(
        f"{requested!r} fits several scripts of {skill_name!r}: {', '.join(fits)}. Name one by its path.",
        skill_name=skill_name,
        script_name=requested,
        available=fits,
    )


def _missing(requested: str, skill_name: str, available: list[str]) -> ScriptNotFoundError:
    there = f"There are: {', '.join(available)}." if available else "It has no scripts."
    return ScriptNotFoundError(
        f"{skill_name!r} has no script {requested!r}. {there}",
        skill_name=skill_name,
        script_name=requested,
        available=available,
    )


def require_part_of_skill(path: Path, skill_name: str, base_directory: Path) -> None:
    """What the digest leaves out is not part of the skill: nobody would notice a change in it."""
    parts = path.relative_to(base_directory).parts
    if LEFT_OUT in parts or parts == (SIGNATURE_FILE,):
        what = f"inside {LEFT_OUT!r}" if LEFT_OUT in parts else "a signature"
        raise ScriptNotFoundError(
            f"{path} is {what}, which is no part of the skill {skill_name!r}. Move the script out of it.",
            skill_name=skill_name,
            script_name=path.name,
        )


def require_plain_file(path: str, skill_name: str) -> None:
    """A regular file without setuid and setgid bits, there and readable now."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ScriptNotFoundError(
            f"The script {os.path.basename(path)!r} of {skill_name!r} is not there any more ({error.strerror}): "
            f"{path}. Put it back, or name another.",
            skill_name=skill_name,
            script_name=os.path.basename(path),
        ) from error
    if not stat.S_ISREG(mode):
        raise ScriptPermissionError(f"{path} is not a regular file; only regular files are run. Replace it.")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        bits = [name for name, bit in (("setuid", stat.S_ISUID), ("setgid", stat.S_ISGID)) if mode & bit]
        raise ScriptPermissionError(
            f"{path} has the {' and '.join(bits)} bit; such scripts are never run. Remove it with 'chmod a-s'."
        )
    if not os.access(path, os.R_OK):
        raise ScriptPermissionError(f"{path} cannot be read. Make it readable with 'chmod u+r'.")


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


def content_of_script(located: Located, manifest: Manifest, base: Path) -> ScriptContent:
    """Read once for each content of the skill; other bytes than were hashed are not what will run."""
    key = (manifest.digest, located.name, located.interpreter.name)
    known = _known.get(key)
    if known is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        known = _known[key] = _read(located, manifest, base)
    return known


def _read(located: Located, manifest: Manifest, base: Path) -> ScriptContent:
    names = tuple(name for name, _ in manifest.entries)
    try:
        with open(located.path, "rb") as file:
            text = file.read()
    except OSError:
        text = b""
    if dict(manifest.entries).get(located.name) != f"sha256 {sha256(text).hexdigest()}":
        forget(base)  # it changed without a sign
        raise ContentChangedError.because(f"{located.name!r} changed while it was looked at", "Run it again.")
    called = [
        name
        for name, (mention, endings) in MENTIONS.items()
        if mention.search(text) or any(each.endswith(endings) for each in names)
    ]
    return ScriptContent(starts_in_skill(text, located.interpreter.name, names), frozenset(called))
