"""`add`, `update` and `remove`: a source or a lock -> skills in their folder, and in the lock."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillkit.core.ask.changes import changes_between
from skillkit.core.exceptions import SourceRefusedError
from skillkit.core.paths.files import Folder
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.paths.trees import write_tree
from skillkit.core.store.snapshots import Snapshots
from skillkit.core.store.trust import StandingApprovals
from skillkit.sources.choosing import SkillContent, choose_skills
from skillkit.sources.given import is_commit
from skillkit.sources.lock import Locked, read_lock
from skillkit.sources.outcomes import Outcome, change_for, named_locks, pinned, refuse_local_change
from skillkit.sources.placing import Change, place_all
from skillkit.sources.present import present_at

if TYPE_CHECKING:
    from skillkit.core.store.skills import Installed
    from skillkit.core.values.questions import FileChange
    from skillkit.sources.choosing import SkillContent
    from skillkit.sources.given import Source
    from skillkit.sources.home import SkillHome
    from skillkit.sources.signatures import Signature

__all__ = ["add_skills", "locked_as", "remove_skill", "update_skills"]


def add_skills(home: SkillHome, source: Source, wanted: Sequence[str], folder: str) -> list[Outcome]:
    """All of them or none. What is there already with other content is never replaced."""
    place = home.folder(folder)
    with home.alone():
        locked = read_lock(home.lock)
        with home.opened(source, wanted=wanted) as tree:
            fallback = source.place.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
            chosen = choose_skills(tree, source.path, wanted, fallback=Path(fallback).stem or "skill")
        found = [
            _added(home, source, content, place / content.name, folder, locked.get(content.name)) for content in chosen
        ]
        changes = [change for _, _, change in found if change is not None]
        place_all(
            changes, home.lock, {**locked, **{outcome.name: outcome.locked for outcome, _, _ in found}}, home.notes
        )
        home.installed.keep(row for _, row, _ in found)
    return [outcome for outcome, _, _ in found]


def remove_skill(home: SkillHome, name: str, *, discard: bool) -> Outcome:
    """From its folder and from the lock; who signed it stays known."""
    with home.alone():
        locked = read_lock(home.lock)
        entry = named_locks(locked, (name,), home.lock)[name]
        place = home.place_of(name, entry)
        there, known = present_at(place), home.installed.of(place)
        if there.is_untold or not (discard or there.is_one_of(None, entry.digest)):
            raise refuse_local_change(name, place, there)
        rest = {other: each for other, each in locked.items() if other != name}
        place_all([] if there.is_nothing else [Change(place, (), there)], home.lock, rest, home.notes)
        if known is not None:
            home.installed.keep([known._replace(digest="")])
    return Outcome(name, "removed", place, entry)


def _added(
    home: SkillHome, source: Source, content: SkillContent, place: Path, folder: str, before: Locked | None
) -> tuple[Outcome, Installed, Change | None]:
    there, digest = present_at(place), content.manifest.digest
    other = home.place_of(content.name, before) if before is not None else place
    if other != place and not present_at(other).is_nothing:
        raise SourceRefusedError(
            f"{content.name!r} is not added: it is in {other} already, and a lock holds one place of each. Nothing was "
            f"changed. 'skillkit remove {content.name}' makes room."
        )
    if not there.is_one_of(None, digest):
        more = f" ({there.shown_extras})" if there.extras else ""
        raise SourceRefusedError(
            f"{content.name!r} is not added: {place} is there already, with other content{more}. Nothing was changed. "
            f"'skillkit update {content.name}' takes a newer version of what is locked; "
            f"'skillkit remove {content.name}' makes room."
        )
    if (
        source.kind == "folder"
        and not there.is_nothing
        and os.path.samefile(home.base / source.place / content.path, place)
    ):
        raise SourceRefusedError(
            f"{content.name!r} is not added: {place} is its source itself. Nothing was changed. A skill that lies "
            "there is found without being added; add from another folder."
        )
    signature = home.signature_of(content, place)
    change = change_for(content, place, there)
    locked = locked_as(source, content, signature, folder)
    outcome = Outcome(content.name, "added" if there.is_nothing else "unchanged", place, locked, signature)
    return outcome, pinned(place, content.name, content.manifest.digest, signature), change


def locked_as(source: Source, content: SkillContent, signature: Signature, folder: str) -> Locked:
    """What the lock says of it."""
    return Locked(
        source.place, content.manifest.digest, source.ref, content.version, content.path, signature.shown, folder
    )


def update_skills(home: SkillHome, names: tuple[str, ...], *, check: bool, discard: bool) -> list[Outcome]:
    """All of them or none; `check` changes nothing and says what would."""
    with home.alone():
        locked = read_lock(home.lock)
        found = [
            _updated(home, name, locked[name], content, check=check, discard=discard)
            for name, content in home.fetched(named_locks(locked, names, home.lock), exactly=False)
        ]
        if not check:
            changes = [change for _, _, change in found if change is not None]
            fresh = {outcome.name: outcome.locked for outcome, _, _ in found}
            if changes or fresh != {name: locked[name] for name in fresh}:
                place_all(changes, home.lock, {**locked, **fresh}, home.notes)
            home.installed.keep(row for _, row, _ in found)
    return [outcome for outcome, _, _ in found]


def _updated(
    home: SkillHome, name: str, entry: Locked, content: SkillContent, *, check: bool, discard: bool
) -> tuple[Outcome, Installed, Change | None]:
    place = home.place_of(name, entry)
    there, digest = present_at(place), content.manifest.digest
    is_changed_here = not there.is_one_of(None, entry.digest, digest)
    if not check and (there.is_untold or (is_changed_here and not discard)):
        raise refuse_local_change(name, place, there)
    signature = home.signature_of(content, place)
    fresh = locked_as(entry.as_source(), content, signature, entry.folder)
    change = change_for(content, place, there)
    is_new = digest != entry.digest or change is not None
    changes = _changes(home, name, content, place) if is_new and there.digest != digest else ()
    what = ("newer" if check else "updated") if is_new else "unchanged"
    note = _note(entry, fresh, is_changed_here=is_changed_here)
    outcome = Outcome(name, what, place, fresh, signature, changes, note)
    return outcome, pinned(place, content.name, content.manifest.digest, signature), change


def _note(entry: Locked, fresh: Locked, *, is_changed_here: bool) -> str:
    if is_changed_here:
        return "It was changed here."
    if is_commit(entry.ref):
        return "It is pinned to a commit; add it again with another ref to move it."
    is_tag_like = entry.ref[:1] == "v" and entry.ref[1:2].isdigit()
    if is_tag_like and entry.commit and fresh.commit != entry.commit:
        return f"{entry.ref} meant {entry.commit[:12]} when it was locked, and means {fresh.commit[:12]} now."
    return ""


def _changes(home: SkillHome, name: str, content: SkillContent, place: Path) -> tuple[FileChange, ...]:
    """From what was approved last, where its copy is still there; else from what is in the folder."""
    snapshots = Snapshots(home.state.folder)
    approved = snapshots.approved_copy(StandingApprovals(home.state).last_approved_digest(content.label, place))
    with temporary_folder("update") as folder, Folder.of(folder) as around:
        before = Path(folder, "nothing")
        around.new_folder(before.name).close()
        write_tree(around, name, content.files)
        return changes_between(approved or (place if os.path.isdir(place) else before), Path(folder, name))
