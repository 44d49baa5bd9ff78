"""`update`: locked skills -> what their sources have now, with the diff that the next question would show."""

from __future__ import annotations

import tempfile
from pathlib import Path

from skillkit.core.ask.changes import changes_between
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import write_tree
from skillkit.core.store.installed import Installed
from skillkit.core.store.snapshots import Snapshots
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.questions import FileChange
from skillkit.sources.adding import locked_as
from skillkit.sources.choosing import SkillContent
from skillkit.sources.fetching import fetch_locked
from skillkit.sources.given import is_commit
from skillkit.sources.home import SkillHome
from skillkit.sources.lock import Locked, read_lock
from skillkit.sources.outcomes import (
    Outcome,
    change_for,
    digest_at,
    installed_row,
    named_locks,
    refuse_local_change,
)
from skillkit.sources.placing import Change, place_all

__all__ = ["update_skills"]


def update_skills(home: SkillHome, names: tuple[str, ...], *, check: bool, discard: bool) -> list[Outcome]:
    """All of them or none; `check` changes nothing and says what would."""
    with home.alone():
        locked = read_lock(home.lock)
        found = [
            _updated(home, name, locked[name], content, check=check, discard=discard)
            for name, content in fetch_locked(home, named_locks(locked, names, home.lock), exactly=False)
        ]
        if not check:
            changes = [change for _, _, change in found if change is not None]
            fresh = {outcome.name: outcome.locked for outcome, _, _ in found}
            if changes or fresh != {name: locked[name] for name in fresh}:
                place_all(changes, home.lock, {**locked, **fresh})
            home.installed.keep(row for _, row, _ in found)
    return [outcome for outcome, _, _ in found]


def _updated(
    home: SkillHome, name: str, entry: Locked, content: SkillContent, *, check: bool, discard: bool
) -> tuple[Outcome, Installed, Change | None]:
    place = home.place_of(name, entry)
    there, digest = digest_at(place), content.manifest.digest
    is_changed_here = there not in (None, entry.digest, digest)
    if (is_changed_here and not discard and not check) or (there == "" and not check):
        raise refuse_local_change(name, place, there)
    signature = home.signature_of(content, place)
    fresh = locked_as(entry.as_source(), content, signature, entry.folder)
    change = change_for(content, place, there)
    is_new = digest != entry.digest or change is not None
    changes = _changes(home, name, content, place) if is_new and there != digest else ()
    what = ("newer" if check else "updated") if is_new else "unchanged"
    note = _note(entry, fresh, is_changed_here=is_changed_here)
    outcome = Outcome(name, what, place, fresh, signature, changes, note)
    return outcome, installed_row(content, place, signature), change


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
    with tempfile.TemporaryDirectory(prefix="skillkit-update-") as folder, Folder.of(folder) as around:
        before = Path(folder, "nothing")
        around.new_folder(before.name).close()
        write_tree(around, name, content.files)
        return changes_between(approved or (place if place.is_dir() else before), Path(folder, name))
