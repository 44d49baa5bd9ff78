"""A locked release and the files that an index has of it -> the one file for this machine, and what a person is told.

`python` is a version, as `3.12.4`.
"""

from __future__ import annotations

from dataclasses import replace

from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from skillkit.packages.index import File
from skillkit.packages.values import Locked, Wanted, common_name_near

__all__ = ["hashes_of", "told"]


def told(locked: Locked, files: list[File], wanted: Wanted | None, python: str) -> Locked:
    """With what the index tells of it: the file that this machine gets, and when the last one was added.

    The lock is for other machines too, and a file that was added to an old release is as new as itself.
    """
    file = _file_for(locked, files, python)
    times = [each.uploaded_at for each in _files_of(locked, files)]
    known = [each for each in times if each is not None]
    source, where = (wanted.source, wanted.where) if wanted else ("", "")
    return replace(
        locked,
        source=source,
        where=where,
        size=file.size if file else None,
        uploaded_at=max(known) if known and len(known) == len(times) else None,
        resembles=common_name_near(locked.name, "python") if wanted else "",
    )


def hashes_of(locked: Locked, files: list[File], python: str) -> tuple[str, ...]:
    """Of the one file that is installed here, so that the tool can take no other one beside it."""
    file = _file_for(locked, files, python)
    return (f"sha256:{file.sha256}",) if file and file.sha256 else locked.hashes


def _file_for(locked: Locked, files: list[File], python: str) -> File | None:
    """The one made most closely for this machine; None where none is."""
    rank = {tag: number for number, tag in enumerate(_tags(python))}
    best: tuple[int, File] | None = None
    for file in _files_of(locked, files):
        number = min(rank.get(tag, len(rank)) for tag in _tags_of(file, locked))
        if number < (best[0] if best else len(rank)):
            best = number, file
    return best[1] if best else None


def _files_of(locked: Locked, files: list[File]) -> list[File]:
    """Of this release, as far as the lock has them."""
    hashes = {each.removeprefix("sha256:") for each in locked.hashes}
    return [file for file in files if (not file.sha256 or file.sha256 in hashes) and _tags_of(file, locked)]


def _tags(python: str) -> list[Tag]:
    version = tuple(int(part) for part in python.split(".")[:2])
    platforms = list(platform_tags())
    return [*cpython_tags(version, platforms=platforms), *compatible_tags(version, platforms=platforms)]


def _tags_of(file: File, locked: Locked) -> frozenset[Tag]:
    """Which machines a file is for; none where it is not of this release."""
    try:
        name, version, _, tags = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, ValueError):
        return frozenset()
    return tags if name == locked.name and str(version) == locked.version else frozenset()
