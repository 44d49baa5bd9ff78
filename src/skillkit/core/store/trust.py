"""What a person approved for longer than one run -> whether it covers this skill, as it is now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import real_path
from skillkit.core.store.base import Store
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.needs import Grant
from skillkit.core.values.text import storable

__all__ = [
    "AGENT_OWNER",
    "ANYWHERE",
    "SESSION_APPROVAL_SECONDS",
    "Approval",
    "StandingApprovals",
    "first_covering",
    "named_place",
    "place_of",
]

# Sessions end without telling anybody; an approval that old is given again.
SESSION_APPROVAL_SECONDS = 30 * 86_400.0
NO_SESSION = ""
ANYWHERE = "any folder, "
"""Stands before the digest where a folder would: in a world of many machines the content alone is what is known."""
AGENT_OWNER = "(agent)"
"""Stands for a skill's name where an agent file was approved; no skill can have it."""

_COLUMNS = "select kind, session, skill, folder, digest, channel, approved_at, walls, ticks from approvals"
_INSERT = """insert into approvals (kind, session, skill, folder, digest, channel, approved_at, walls, ticks)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_ON_LOAD = """select case session when '' then 'trust' else 'session' end,
    session, skill, folder, digest, channel, approved_at, walls, ticks from on_load"""
_INSERT_ON_LOAD = """insert into on_load
    (session, skill, folder, digest, commands, channel, approved_at, walls, ticks) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (session, skill, folder) do update set digest = excluded.digest, commands = excluded.commands,
    channel = excluded.channel, approved_at = excluded.approved_at, walls = excluded.walls, ticks = excluded.ticks"""
_DELETE_ON_LOAD = "delete from on_load where session = ? and skill = ? and folder = ?"
_DELETE = "delete from approvals where kind = ? and session = ? and skill = ? and folder = ?"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's lasting word about one skill with exactly this content, within the walls they were shown."""

    kind: Literal["session", "trust"]
    session_id: str | None
    """None for trust, which holds in every session."""
    skill: str
    folder: str
    """Its real path, by whatever links it was reached; in a shared world a word for wherever that content is."""
    digest: str
    channel: str
    approved_at: float
    walls: Bounds | None
    """What a run may get under it; None covers none."""
    ticks: tuple[Grant, ...] = ()
    """What the person ticked with it, of which each run under it gets what policy lets be granted."""
    left: tuple[str, ...] = ()
    """What they were offered and did not tick: not asked about again in that session."""


class StandingApprovals:
    """Session approvals and trust of one world; each is bound to a digest and to walls, and covers no others."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def approve_in_session(
        self,
        session_id: str,
        *,
        skill: str,
        folder: str | Path,
        digest: str,
        channel: str,
        walls: Bounds,
        on_load: str = "",
        ticks: tuple[Grant, ...] = (),
        left: tuple[str, ...] = (),
    ) -> Approval:
        """Holds for this session only; a new digest of the same skill takes the place of the old one.

        `on_load` is the digest of the commands that were shown as those that run when the skill is loaded.
        """
        if not session_id:
            raise ConfigurationError("An approval for a session needs the session's id; ask for a single run instead.")
        place, now = self._place(skill, folder, digest), self._store.now().wall
        approval = Approval("session", session_id, skill, place, digest, channel, now, walls, ticks, left)
        return self._keep(approval, on_load)

    def trust(
        self,
        *,
        skill: str,
        folder: str | Path,
        digest: str,
        channel: str,
        walls: Bounds | None,
        on_load: str = "",
    ) -> Approval:
        """Holds until it is removed; a new digest of the same skill takes the place of the old one.

        Without walls it covers no run: it is about a file that is only read.
        """
        place, now = self._place(skill, folder, digest), self._store.now().wall
        approval = Approval("trust", None, skill, place, digest, channel, now, walls)
        return self._keep(approval, on_load)

    def on_load(self, session_id: str | None, skill: str, digest: str, commands: str) -> list[Approval]:
        """The words that were given when exactly these commands of this content were shown; trust last."""
        which = "where skill = ? and digest = ? and commands = ? order by session desc"
        found = self._find(which, storable(skill), digest, commands, columns=_ON_LOAD)
        return self._holding(found, storable(session_id or NO_SESSION))

    def covering(self, session_id: str | None, skill: str, digest: str, walls: Bounds) -> Approval | None:
        """The approval under which this skill, with this content, may run in this session within these walls."""
        return first_covering(self.of_content(session_id, skill, digest), walls)

    def of_content(self, session_id: str | None, skill: str, digest: str) -> list[Approval]:
        """What a person approved of this content in this session, within whichever walls."""
        found = self._find("where skill = ? and digest = ? order by kind desc", storable(skill), digest)
        return self._holding(found, storable(session_id or NO_SESSION))

    def trusted(self) -> list[Approval]:
        """By name, then folder."""
        return self._find("where kind = 'trust' order by skill, folder")

    def in_sessions(self) -> list[Approval]:
        """What still holds for a session; by session, name, then folder."""
        found = self._find("where kind = 'session' order by session, skill, folder")
        return self._holding(found)

    def end_in_sessions(self, *, skill: str | None = None, session_id: str | None = None) -> list[Approval]:
        """What does not hold any more; without a skill all of them, without a session in every one."""
        name, session = (None if each is None else storable(each) for each in (skill, session_id))
        found = self.in_sessions()
        gone = [each for each in found if name in (None, each.skill) and session in (None, each.session_id)]
        self._remove(gone)
        return gone

    def remove_trust(self, skill: str, *, folder: str | Path | None = None) -> list[Approval]:
        """What is not trusted any more; without a folder, wherever the skill was."""
        if skill == AGENT_OWNER and folder is not None:
            place: str | None = storable(real_path(folder))
        else:
            place = None if folder is None else named_place(self._store, folder)
        gone = [each for each in self.trusted() if each.skill == storable(skill) and place in (None, each.folder)]
        self._remove(gone)
        return gone

    def last_approved(self, skill: str, folder: str | Path) -> Approval | None:
        """What a person approved last."""
        if self._store.is_shared and skill != AGENT_OWNER:
            found = self._find("where skill = ? order by seq desc limit 1", storable(skill))
        else:
            place = (storable(skill), storable(real_path(folder)))
            found = self._find("where skill = ? and folder = ? order by seq desc limit 1", *place)
        return found[0] if found else None

    def last_approved_digest(self, skill: str, folder: str | Path) -> str | None:
        """Of what a person approved last, to show what changed since."""
        found = self.last_approved(skill, folder)
        return found.digest if found else None

    def digests(self, skill: str | None = None) -> frozenset[str]:
        """Everything some approval is about, of one skill or all; their copies are kept."""
        found = self._find("") if skill is None else self._find("where skill = ?", storable(skill))
        return frozenset(each.digest for each in found)

    def _place(self, skill: str, folder: str | Path, digest: str) -> str:
        """What a later word takes the place of; agent files are each machine's own."""
        return real_path(folder) if skill == AGENT_OWNER else place_of(self._store, folder, digest)

    def _holding(self, found: list[Approval], session: str | None = None) -> list[Approval]:
        """Those that hold in this session, without one each in its own."""
        now = self._store.now().wall if found else 0.0
        return [
            each for each in found if _holds(each, each.session_id or NO_SESSION if session is None else session, now)
        ]

    def _remove(self, gone: list[Approval]) -> None:
        """Only as they were when they were found; who approved other content meanwhile meant that."""
        if not gone:
            return
        with self._store.transaction() as connection:
            places = [(each.session_id or NO_SESSION, each.skill, each.folder, each.digest) for each in gone]
            kinds = [each.kind for each in gone]
            removed = [(kind, *place) for kind, place in zip(kinds, places, strict=True)]
            connection.executemany(f"{_DELETE} and digest = ?", removed)
            connection.executemany(f"{_DELETE_ON_LOAD} and digest = ?", places)

    def _find(self, which: str, *values: str, columns: str = _COLUMNS) -> list[Approval]:
        """Looking makes no file."""
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            return [*map(_approval_from, connection.execute(f"{columns} {which}", values).fetchall())]

    def _keep(self, approval: Approval, on_load: str) -> Approval:
        """In the place of what was kept for the same, and with the session approvals gone that are too old.

        A word about something else takes nothing from what was said about commands on load.
        """
        names = map(storable, (approval.session_id or NO_SESSION, approval.skill, approval.folder))
        place = (approval.kind, *names)
        walls = approval.walls.to_text() if approval.walls else ""
        ticks = json.dumps({"given": [grant.id for grant in approval.ticks], "left": approval.left})
        oldest = approval.approved_at - SESSION_APPROVAL_SECONDS
        with self._store.transaction() as connection:
            connection.execute("delete from approvals where kind = 'session' and approved_at < ?", (oldest,))
            connection.execute(_DELETE, place)
            connection.execute(_INSERT, (*place, approval.digest, approval.channel, approval.approved_at, walls, ticks))
            if on_load:
                said = (approval.digest, on_load, approval.channel, approval.approved_at, walls, ticks)
                connection.execute("delete from on_load where session <> '' and approved_at < ?", (oldest,))
                connection.execute(_INSERT_ON_LOAD, (*place[1:], *said))
        return approval


def first_covering(approvals: Iterable[Approval], walls: Bounds, lasting: tuple[Grant, ...] = ()) -> Approval | None:
    """The first under which a run within these walls gets nothing that was not shown, or given for good since.

    `lasting` are the grants that the walls have: a person's act of its own, which does not end trust. A yes for a
    session is for the walls that it was given with, so that one more grant asks once more.
    """

    def covers(approval: Approval) -> bool:
        if approval.walls is None:
            return False
        if approval.kind == "trust":
            return approval.walls.with_grants(lasting).hold(walls)
        return approval.walls.hold(walls.with_grants(approval.ticks))

    return next(filter(covers, approvals), None)


def place_of(store: Store, folder: str | Path, digest: str) -> str:
    """By what a skill with this content is told from another one: its folder, or the content alone."""
    return f"{ANYWHERE}{digest}" if store.is_shared else real_path(folder)


def named_place(store: Store, folder: str | Path) -> str:
    """The same, where a person named a folder."""
    if store.is_shared:
        raise ConfigurationError(
            "In a shared world a skill is known by its name and content, not by its folder. Leave the folder out."
        )
    return storable(real_path(folder))


def _holds(approval: Approval, session: str, now: float) -> bool:
    if approval.kind == "trust":
        return True
    is_recent = now - approval.approved_at < SESSION_APPROVAL_SECONDS
    return is_recent and approval.session_id == session != NO_SESSION


def _approval_from(values: tuple[Any, ...]) -> Approval:
    kind, session, skill, folder, digest, channel, approved_at, walls, ticks = values
    within = Bounds.from_text(walls)
    given, left = _ticks_from(ticks)
    return Approval(kind, session or None, skill, folder, digest, channel, approved_at, within, given, left)


def _ticks_from(text: str) -> tuple[tuple[Grant, ...], tuple[str, ...]]:
    """Nothing of what cannot be read: it opens nothing."""
    try:
        kept = json.loads(text) if text else {"given": (), "left": ()}
        return tuple(map(Grant.from_id, kept["given"])), tuple(map(str, kept["left"]))
    except (AttributeError, KeyError, TypeError, ValueError, ConfigurationError):
        return (), ()
