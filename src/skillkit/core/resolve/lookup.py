"""What a caller calls a script -> the one script of the skill that is meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from skillkit.core.detect import language_at
from skillkit.core.exceptions import ScriptNotFoundError
from skillkit.core.paths import PATH_LIMIT, FilePathResolver, is_inside, is_sayable, violation
from skillkit.core.resolve.permissions import require_plain_file
from skillkit.core.values import ScriptMetadata

__all__ = ["script_named"]


def script_named(
    requested: str, skill_name: str, base_directory: Path, scripts: Sequence[ScriptMetadata]
) -> ScriptMetadata:
    """By relative path, path below `scripts/`, file name or stem; several that fit are an error that lists them."""
    wanted = plain_name(requested)
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
            raise unclear(requested, skill_name, [script.path.as_posix() for script in fits])
    inside = name_inside(requested, base_directory)
    found = paths.get(inside) or undetected(inside, skill_name, base_directory)
    if found is None:
        raise missing(requested, skill_name, sorted(paths))
    return found


def plain_name(requested: str) -> str:
    return PurePosixPath(requested).as_posix() if requested else ""


def name_inside(requested: str, base_directory: Path) -> str:
    """A path that leaves the skill is refused, although detection lists nothing there."""
    base = os.path.realpath(base_directory)
    if requested and os.path.isabs(requested) and is_sayable(requested):
        wanted = os.path.realpath(requested)
        requested = os.path.relpath(wanted, base) if is_inside(wanted, base) else requested
    elif not requested or ".." in PurePosixPath(requested.replace("\\", "/")).parts:
        raise violation(requested, base, "a script is named by a path without '..', a file name or a stem")
    # What is longer than a path may be is no file of any skill; only what claims to lie elsewhere is refused for that.
    is_endless = len(requested) > PATH_LIMIT and not os.path.isabs(requested)
    for candidate in () if is_endless else (requested, f"scripts/{requested}"):
        FilePathResolver.resolve_path(base, candidate)
    return plain_name(requested)


def undetected(wanted: str, skill_name: str, base_directory: Path) -> ScriptMetadata | None:
    """A script outside the folders that detection looks into, named by its path."""
    path = Path(wanted)
    for place in (base_directory / path, base_directory / "scripts" / path):
        if os.path.exists(place) and not os.path.isdir(place):
            require_plain_file(str(place), skill_name)
    language = language_at(base_directory / path)
    return ScriptMetadata(path.stem, path, language) if language else None


def unclear(requested: str, skill_name: str, fits: list[str]) -> ScriptNotFoundError:
    return ScriptNotFoundError(
        f"{requested!r} fits several scripts of {skill_name!r}: {', '.join(fits)}. Name one by its path.",
        skill_name=skill_name,
        script_name=requested,
        available=fits,
    )


def missing(requested: str, skill_name: str, available: list[str]) -> ScriptNotFoundError:
    there = f"There are: {', '.join(available)}." if available else "It has no scripts."
    return ScriptNotFoundError(
        f"{skill_name!r} has no script {requested!r}. {there}",
        skill_name=skill_name,
        script_name=requested,
        available=available,
    )
