"""`sync`: a lock -> folders that are byte for byte what it says, or an error; or what differs, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillkit.core.exceptions import ConfigurationError, SkillKitError, SourceRefusedError
from skillkit.sources.lock import Locked, read_lock
from skillkit.sources.outcomes import Outcome, change_for, label_at, pinned, refuse_local_change
from skillkit.sources.placing import Change, place_all
from skillkit.sources.present import present_at
from skillkit.sources.signatures import check_signature, signature_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillkit.core.store.skills import Installed
    from skillkit.sources.choosing import SkillContent
    from skillkit.sources.home import SkillHome

__all__ = ["drift_of", "require_signers", "sync_skills"]


def sync_skills(home: SkillHome, *, frozen: bool, discard: bool) -> list[Outcome]:
    """What is as locked is left alone, without a look at its source; `frozen` never writes the lock."""
    with home.alone():
        locked = _require_lock(home)
        if frozen:
            _require_whole(locked)
        wanted = {name: entry for name, entry in locked.items() if _is_wanted(home, name, entry, discard=discard)}
        fetched = dict(home.fetched(wanted, exactly=True))
        found = [_restored(home, name, wanted[name], content) for name, content in fetched.items()]
        fresh = {} if frozen else {outcome.name: outcome.locked for outcome, _, _ in found}
        if found:
            place_all([change for _, _, change in found if change], home.lock, {**locked, **fresh}, home.notes)
        home.installed.keep(row for _, row, _ in found)
    done = {outcome.name: outcome for outcome, _, _ in found}
    return [done.get(name) or _unchanged(home, name, entry) for name, entry in locked.items()]


def drift_of(home: SkillHome) -> list[Outcome]:
    """Every locked skill, each with what differs; nothing is fetched and nothing changed."""
    return [_drift(home, name, entry) for name, entry in _require_lock(home).items()]


def require_signers(home: SkillHome, locked: Mapping[str, Locked]) -> None:
    """Each is signed by whom the world knows for it and the lock names; a first signer is known from now on."""
    for name, entry in locked.items():
        place = home.place_of(name, entry)
        found = check_signature(label_at(place, name), entry.digest, signature_in(place), home.allowed_signers)
        home.require_known(name, place, found)
        if entry.signer and entry.signer not in (found.signer, found.key):
            raise SourceRefusedError(
                f"{name!r} is refused: the lock says that {entry.signer} signed it, and "
                f"{found.shown if found.is_there else 'nobody'} did. Nothing was changed. 'skillkit update {name}' "
                "gets it again and writes down who signed it."
            )
        if found.is_there:
            home.installed.keep([pinned(place, name, entry.digest, found)])


def _require_lock(home: SkillHome) -> dict[str, Locked]:
    locked = read_lock(home.lock)
    if not locked:
        raise ConfigurationError(
            f"There is no {home.lock}, so nothing says which skills there should be. 'skillkit add' makes one."
        )
    return dict(sorted(locked.items()))


def _require_whole(locked: dict[str, Locked]) -> None:
    for name, entry in locked.items():
        if entry.as_source().kind == "git" and not entry.commit:
            raise ConfigurationError(
                f"[skill.{name}] has no commit, so it is not frozen. 'skillkit sync' finds it and writes it down."
            )


def _is_wanted(home: SkillHome, name: str, entry: Locked, *, discard: bool) -> bool:
    place = home.place_of(name, entry)
    there = present_at(place)
    if there.is_one_of(entry.digest):
        return entry.as_source().kind == "git" and not entry.commit
    known = home.installed.of(place)
    is_ours = known is not None and there.is_one_of(known.digest)
    if there.is_untold or not (discard or there.is_nothing or is_ours):
        raise refuse_local_change(name, place, there)
    return True


def _restored(
    home: SkillHome, name: str, entry: Locked, content: SkillContent
) -> tuple[Outcome, Installed, Change | None]:
    if content.manifest.digest != entry.digest:
        raise SourceRefusedError(
            f"{name!r} is not what the lock says: its source gives the digest {content.manifest.digest}, the lock has "
            f"{entry.digest}. Nothing was changed. 'skillkit update {name}' shows what differs and takes it."
        )
    place = home.place_of(name, entry)
    signature = home.signature_of(content, place)
    change = change_for(content, place, present_at(place))
    fresh = entry._replace(commit=content.version, signer=signature.shown)
    what = "unchanged" if change is None else "added" if change.before.is_nothing else "restored"
    return (
        Outcome(name, what, place, fresh, signature),
        pinned(place, name, entry.digest, signature),
        change,
    )


def _unchanged(home: SkillHome, name: str, entry: Locked) -> Outcome:
    return Outcome(name, "unchanged", home.place_of(name, entry), entry)


def _drift(home: SkillHome, name: str, entry: Locked) -> Outcome:
    place = home.place_of(name, entry)
    there = present_at(place)
    if there.is_nothing:
        return Outcome(name, "missing", place, entry, note="It is not there. 'skillkit sync' gets it.")
    if not there.digest:
        return Outcome(name, "unreadable", place, entry, note="It is a link, or not all of it can be read.")
    if not there.is_one_of(entry.digest):
        note = f"It holds {there.shown_extras}, which came from no source."
        if there.digest != entry.digest:
            note = f"Its digest is {there.digest[:12]}, the lock has {entry.digest[:12]}."
        return Outcome(name, "changed", place, entry, note=note)
    if note := _signature_drift(home, name, entry):
        return Outcome(name, "signer", place, entry, note=note)
    return Outcome(name, "unchanged", place, entry)


def _signature_drift(home: SkillHome, name: str, entry: Locked) -> str:
    """Only where the lock says that somebody signed it: a signature is no part of the digest."""
    if not entry.signer:
        return ""
    place = home.place_of(name, entry)
    try:
        label = label_at(place, name)
        found = check_signature(label, entry.digest, signature_in(place), home.allowed_signers)
    except SkillKitError as error:
        return str(error)
    return "" if entry.signer in (found.signer, found.key) else f"The lock says that {entry.signer} signed it."
