"""What became of a skill, for whoever tells it; and what is on disk now, compared with what should be."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import SkillNotFoundError, SourceRefusedError
from skillkit.core.find.reading import read_skill_file
from skillkit.core.find.walk import SKILL_FILE
from skillkit.core.store.skills import Installed
from skillkit.core.values.questions import FileChange
from skillkit.sources.choosing import SkillContent
from skillkit.sources.lock import Locked
from skillkit.sources.placing import Change
from skillkit.sources.present import Present
from skillkit.sources.signatures import Signature, signature_in

__all__ = ["Outcome", "change_for", "label_at", "named_locks", "pinned", "refuse_local_change"]


class Outcome(NamedTuple):
    """`what` is one of added, updated, unchanged, removed, newer, restored, missing, changed, unreadable, signer."""

    name: str
    what: str
    place: Path
    locked: Locked
    signature: Signature | None = None
    changes: tuple[FileChange, ...] = ()
    note: str = ""


def label_at(place: Path, name: str) -> str:
    """What the skill there calls itself, by which it was signed."""
    file = next((each for each in sorted(place.iterdir()) if each.name.upper() == SKILL_FILE.upper()), None)
    reading = read_skill_file(str(file), file.stat()) if file else None
    return reading.name if reading and reading.name else name


def change_for(content: SkillContent, place: Path, there: Present) -> Change | None:
    """None where every byte is there already, its signature too, and nothing else."""
    if there.is_one_of(content.manifest.digest) and signature_in(place) == content.signature:
        return None
    return Change(place, content.files, there)


def pinned(place: Path, name: str, digest: str, signature: Signature) -> Installed:
    """What a world keeps of content in a folder, and of who signed it."""
    signed = digest if signature.is_there else ""
    return Installed(str(place), name, digest, signature.signer, signature.key, signature.signed_at, signed)


def refuse_local_change(name: str, place: Path, there: Present) -> SourceRefusedError:
    """What a person can do about it depends on whether it can be told what is there."""
    if not there.digest:
        return SourceRefusedError(
            f"{place} is a link, or not all of it can be read, so nobody can say what would be lost. Nothing was "
            "changed. Move it away by hand."
        )
    what = f": it holds {there.shown_extras}, which came from no source" if there.extras else ""
    return SourceRefusedError(
        f"{name!r} was changed in {place}{what}, and that would be lost. Nothing was changed. Keep a copy of what "
        "you need, then add --discard."
    )


def named_locks(locked: dict[str, Locked], names: tuple[str, ...], lock: Path) -> dict[str, Locked]:
    """All, or those of these names; SkillNotFoundError says which there are."""
    for name in names:
        if name not in locked:
            there = (
                f"It has: {', '.join(sorted(locked)[:20])}." if locked else "Only what 'skillkit add' got stands there."
            )
            raise SkillNotFoundError(f"{name!r} is not in {lock}. {there}", skill_name=name, available=sorted(locked))
    return {name: locked[name] for name in names} if names else dict(locked)
