"""`add` and `remove`: a source and names -> skills in their folder, and in the lock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillkit.core.exceptions import SourceRefusedError
from skillkit.core.store.installed import Installed
from skillkit.sources.choosing import SkillContent, choose_skills
from skillkit.sources.given import Source
from skillkit.sources.home import SkillHome
from skillkit.sources.lock import Locked, read_lock
from skillkit.sources.outcomes import Outcome, change_for, digest_at, installed_row, named_locks, refuse_local_change
from skillkit.sources.placing import Change, place_all
from skillkit.sources.signatures import Signature

__all__ = ["add_skills", "locked_as", "remove_skill"]


def add_skills(home: SkillHome, source: Source, wanted: Sequence[str], folder: str) -> list[Outcome]:
    """All of them or none. What is there already with other content is never replaced."""
    place = home.folder(folder)
    with home.alone():
        locked = read_lock(home.lock)
        with home.opened(source, wanted=wanted) as tree:
            fallback = source.place.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
            chosen = choose_skills(tree, source.path, wanted, fallback=Path(fallback).stem or "skill")
        found = [_added(home, source, content, place / content.name, folder) for content in chosen]
        changes = [change for _, _, change in found if change is not None]
        place_all(changes, home.lock, {**locked, **{outcome.name: outcome.locked for outcome, _, _ in found}})
        home.installed.keep(row for _, row, _ in found)
    return [outcome for outcome, _, _ in found]


def remove_skill(home: SkillHome, name: str, *, discard: bool) -> Outcome:
    """From its folder and from the lock; who signed it stays known."""
    with home.alone():
        locked = read_lock(home.lock)
        entry = named_locks(locked, (name,), home.lock)[name]
        place = home.place_of(name, entry)
        there, known = digest_at(place), home.installed.of(place)
        if there == "" or (there is not None and there != entry.digest and not discard):
            raise refuse_local_change(name, place, there)
        rest = {other: each for other, each in locked.items() if other != name}
        place_all([] if there is None else [Change(place, (), there)], home.lock, rest)
        if known is not None:
            home.installed.keep([known._replace(digest="")])
    return Outcome(name, "removed", place, entry)


def _added(
    home: SkillHome, source: Source, content: SkillContent, place: Path, folder: str
) -> tuple[Outcome, Installed, Change | None]:
    there, digest = digest_at(place), content.manifest.digest
    if there not in (None, digest):
        raise SourceRefusedError(
            f"{content.name!r} is not added: {place} is there already, with other content. Nothing was changed. "
            f"'skillkit update {content.name}' takes a newer version of what is locked; "
            f"'skillkit remove {content.name}' makes room."
        )
    signature = home.signature_of(content, place)
    change = change_for(content, place, there)
    locked = locked_as(source, content, signature, folder)
    outcome = Outcome(content.name, "added" if there is None else "unchanged", place, locked, signature)
    return outcome, installed_row(content, place, signature), change


def locked_as(source: Source, content: SkillContent, signature: Signature, folder: str) -> Locked:
    """What the lock says of it."""
    return Locked(
        source.place, content.manifest.digest, source.ref, content.version, content.path, signature.shown, folder
    )
