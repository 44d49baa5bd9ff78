"""What a world keeps about skills: what a person gave each of them for good, and who signed what lies in its folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import is_inside, is_sayable, real_path
from skillkit.core.store.base import Store
from skillkit.core.store.trust import named_place, place_of
from skillkit.core.values.needs import Grant
from skillkit.core.values.runs import ScriptCommand
from skillkit.core.values.text import storable

__all__ = ["Installed", "InstalledSkills", "KeptGrant", "Signing", "StandingGrants"]

# Of these a skill has one: a later one takes its place.
_SINGLE = "working_directory"

_COLUMNS = "select skill, folder, digest, name, channel, granted_at from grants"
_INSERT = "insert into grants (skill, folder, digest, kind, name, channel, granted_at) values (?, ?, ?, ?, ?, ?, ?)"
_DELETE = "delete from grants where skill = ? and folder = ? and name = ?"


@dataclass(frozen=True, slots=True)
class KeptGrant:
    """One grant, to one skill in one folder with exactly this content; once that changes it is only remembered."""

    skill: str
    folder: str
    """Its real path, by whatever links it was reached."""
    digest: str
    grant: Grant
    channel: str
    granted_at: float


class StandingGrants:
    """The grants of one world. Those that only look make no file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def give(
        self, grants: Collection[Grant], *, skill: str, folder: str | Path, digest: str, channel: str
    ) -> list[KeptGrant]:
        """Beside what this content has; what other content had, its own or of a folder it was given, is forgotten."""
        name, place, now = storable(skill), storable(place_of(self._store, folder, digest)), self._store.now().wall
        self._remove(name, grants, place)
        given = [KeptGrant(name, place, digest, grant, channel, now) for grant in dict.fromkeys(grants)]
        if sum(grant.kind == _SINGLE for grant in dict.fromkeys(grants)) > 1:
            raise ConfigurationError("A skill has one working directory. Grant one of: skill, workspace, auto.")
        with self._store.transaction() as connection:
            kept = (name, place)
            connection.execute("delete from grants where skill = ? and folder = ? and digest <> ?", (*kept, digest))
            for each in given:
                kind, text = each.grant.kind, storable(each.grant.id)
                if kind == _SINGLE:
                    connection.execute("delete from grants where skill = ? and folder = ? and kind = ?", (*kept, kind))
                connection.execute(_DELETE, (*kept, text))
                connection.execute(_INSERT, (*kept, digest, kind, text, channel, now))
        return given

    def of(self, skill: str, folder: str | Path) -> list[KeptGrant]:
        """All that is kept about the skill in this folder, of whichever content."""
        if self._store.is_shared:
            return self._find("where skill = ? order by seq", storable(skill))
        if not is_sayable(folder):
            return []
        named = (skill, real_path(folder))
        if not all(map(str.isascii, named)):
            named = (storable(skill), storable(named[1]))
        return self._find("where skill = ? and folder = ? order by seq", *named)

    def all(self) -> list[KeptGrant]:
        """By name, folder, then in the order in which they were given."""
        return self._find("order by skill, folder, seq")

    def remove(
        self, skill: str, grants: Iterable[Grant] | None = None, *, folder: str | Path | None = None
    ) -> list[KeptGrant]:
        """What it does not have any more; without grants all, without a folder wherever the skill was."""
        place = None if folder is None else named_place(self._store, folder)
        return self._remove(storable(skill), grants, place)

    def _remove(self, skill: str, grants: Iterable[Grant] | None, place: str | None) -> list[KeptGrant]:
        wanted = None if grants is None else {replace(grant, content="") for grant in grants}
        found = self._find("where skill = ? order by seq", storable(skill))
        named = [(each, replace(each.grant, content="")) for each in found if place in (None, each.folder)]
        gone = [each for each, grant in named if wanted is None or grant in wanted]
        if gone:
            with self._store.transaction() as connection:
                connection.executemany(_DELETE, [(each.skill, each.folder, storable(each.grant.id)) for each in gone])
        return gone

    def _find(self, which: str, *values: str) -> list[KeptGrant]:
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            rows = connection.execute(f"{_COLUMNS} {which}", values).fetchall()
        return [kept for row in rows if (kept := _kept_from(row)) is not None]


def _kept_from(values: tuple[Any, ...]) -> KeptGrant | None:
    """None for what this version does not know: it grants nothing."""
    skill, folder, digest, name, channel, granted_at = values
    try:
        return KeptGrant(skill, folder, digest, Grant.from_id(name), channel, granted_at)
    except ConfigurationError:
        return None


_SIGNED = "select signer, key, signed_at, digest from signers"
_NOTE_SIGNER = """insert into signers (skill, digest, signer, key, signed_at) values (?, ?, ?, ?, ?)
    on conflict do nothing"""
_INSTALLED = "select folder, skill, digest, signer, key, signed_at, signed from installed"


class Installed(NamedTuple):
    """One folder; the digest is empty where the skill was removed, the key where nobody had signed it."""

    folder: str
    skill: str
    digest: str
    signer: str = ""
    key: str = ""
    signed_at: int = 0
    signed: str = ""
    """The digest that the signature was checked against."""

    @property
    def shown(self) -> str:
        """Who signed: a name that the user gave, or the key's fingerprint."""
        return self.signer or self.key


class Signing(NamedTuple):
    """Of some content: who signed it; or who had signed what was there before, and not this."""

    signer: str
    lost: str

    @property
    def said(self) -> str:
        """For a person; empty where nobody ever signed it. What a key that is new here signed counts for nothing."""
        return f"nobody known here; until now {self.lost} had signed it" if self.lost else self.signer


NOBODY = Signing("", "")


class InstalledSkills:
    """Of one world, by the real path of each skill's folder; who signed it is for all machines of a shared world."""

    def __init__(self, store: Store) -> None:
        self._store = store.local  # folders are this machine's own matter
        self._signers = Signers(store) if store.is_shared else None

    def of(self, folder: str | Path, skill: str = "") -> Installed | None:
        """Looking makes no file. With a skill's name, what a shared world knows of it counts where nothing is here."""
        row = self._row(storable(real_path(folder)))
        if self._signers is None or not (skill or row):
            return row
        known = row or Installed(str(folder), skill, "")
        pin = self._signers.newest(storable(skill) or known.skill)
        return known._replace(**pin) if pin else row and row._replace(signer="", key="", signed_at=0, signed="")

    def _row(self, place: str) -> Installed | None:
        if not self._store.exists():
            return None
        with self._store.connection() as connection:
            row = connection.execute(f"{_INSTALLED} where folder = ?", (place,)).fetchone()
        return None if row is None else Installed(*row)

    def named(self, skill: str, below: Path) -> Installed | None:
        """Whichever folder of this project had a signed skill of that name; the one that was signed last."""
        if self._signers is not None:
            pin = self._signers.newest(storable(skill))
            return Installed("", skill, "", **pin) if pin else None
        if not self._store.exists():
            return None
        with self._store.connection() as connection:
            rows = connection.execute(f"{_INSTALLED} where skill = ? and key != ''", (storable(skill),)).fetchall()
        found = [Installed(*row) for row in rows if is_inside(row[0], real_path(below))]
        return max(found, key=lambda each: each.signed_at, default=None)

    def signing_of(self, folder: str | Path, digest: str, skill: str) -> Signing:
        """As it was checked last, when the skill came or by `skillkit verify`."""
        if self._signers is not None:
            return self._signers.of(storable(skill), digest)
        known = self.of(folder) if self.knows_signers() else None
        if known is None or not known.key:
            return NOBODY
        return Signing(known.shown, "") if known.signed == digest else Signing("", known.shown)

    def with_signer(self, command: ScriptCommand) -> ScriptCommand:
        """The same, with who signed what it would run, or who had signed what was there before."""
        signing = self.signing_of(command.base_directory, command.digest, command.skill_name)
        return replace(command, signer=signing.signer, lost_signer=signing.lost) if any(signing) else command

    def knows_signers(self) -> bool:
        """Every run looks; most worlds know no signer, and need not find out what a folder is really called."""
        if self._signers is not None:
            return self._signers.are_known()
        if not self._store.exists():
            return False
        with self._store.connection() as connection:
            return connection.execute("select 1 from installed where key != '' limit 1").fetchone() is not None

    def keep(self, rows: Iterable[Installed]) -> None:
        """In the place of what was known of each folder."""
        kept = [row._replace(folder=storable(real_path(row.folder)), skill=storable(row.skill)) for row in rows]
        if self._signers is not None:
            self._signers.keep(kept)
        with self._store.transaction() as connection:
            connection.executemany("insert or replace into installed values (?, ?, ?, ?, ?, ?, ?)", kept)

    def require_right(self, found_key: str, known: Installed | None, *, is_changed: bool) -> None:
        """Before anything is put anywhere: who may not note a signer in a shared world is told so."""
        if self._signers is not None:
            known_key = known.key if known is not None else ""
            self._signers.require_right(is_new_signer=is_changed or known_key not in ("", found_key))


class Signers:
    """Who signed which content of each skill, in a world of many machines."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def newest(self, skill: str) -> dict[str, Any]:
        """What an `Installed` has of it; nothing where nobody signed the skill."""
        with self._store.connection() as connection:
            row = connection.execute(f"{_SIGNED} where skill = ? order by signed_at desc limit 1", (skill,)).fetchone()
        return {} if row is None else dict(zip(("signer", "key", "signed_at", "signed"), row, strict=True))

    def of(self, skill: str, digest: str) -> Signing:
        with self._store.connection() as connection:
            order = "order by digest = ? desc, signed_at desc limit 1"
            row = connection.execute(f"{_SIGNED} where skill = ? {order}", (skill, digest)).fetchone()
        if row is None:
            return NOBODY
        signer, key, _, signed = row
        return Signing(signer or key, "") if signed == digest else Signing("", signer or key)

    def are_known(self) -> bool:
        with self._store.connection() as connection:
            return connection.execute("select 1 from signers limit 1").fetchone() is not None

    def keep(self, rows: Iterable[Installed]) -> None:
        """Beside what is known of the same key; another key, or nobody, takes the place of all."""
        with self._store.transaction() as connection:
            for row in rows:
                others = connection.execute(
                    "select 1 from signers where skill = ? and key <> ? limit 1", (row.skill, row.key)
                )
                if others.fetchone() is not None:
                    connection.execute("delete from signers where skill = ?", (row.skill,))
                if row.key:
                    signed = (row.skill, row.signed, row.signer, row.key, row.signed_at)
                    connection.execute(_NOTE_SIGNER, signed)

    def require_right(self, *, is_new_signer: bool) -> None:
        right = "delete" if is_new_signer else "insert"
        with self._store.connection() as connection:
            has_right = connection.execute("select has_table_privilege('signers', ?)", (right,)).fetchone()[0]
        if not has_right:
            what = "say that a skill has another signer" if is_new_signer else "note who signed a skill"
            raise ConfigurationError(
                f"In the shared world {self._store.place} this login may not {what}. Nothing was changed. Use a login "
                f"with the role {'approver' if is_new_signer else 'front or approver'}."
            )
