"""What a person approved for longer than one run -> whether it covers this skill, as it is now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skillkit.core.bounds import Bounds
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import real_path
from skillkit.core.state import StateStore

__all__ = ["AGENT_OWNER", "SESSION_APPROVAL_SECONDS", "Approval", "StandingApprovals"]

# Sessions end without telling anybody; an approval that old is given again.
SESSION_APPROVAL_SECONDS = 30 * 86_400.0
NO_SESSION = ""
AGENT_OWNER = "(agent)"
"""Stands for a skill's name where an agent file was approved; no skill can have it."""

_COLUMNS = "select kind, session, skill, folder, digest, channel, approved_at, walls from approvals"
_INSERT = """insert into approvals (kind, session, skill, folder, digest, channel, approved_at, walls)
    values (?, ?, ?, ?, ?, ?, ?, ?)"""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's lasting word about one skill with exactly this content, within the walls they were shown."""

    kind: Literal["session", "trust"]
    session_id: str | None
    """None for trust, which holds in every session."""
    skill: str
    folder: str
    """Its real path, by whatever links it was reached."""
    digest: str
    channel: str
    approved_at: float
    walls: Bounds | None
    """What a run may get under it; None covers none."""


class StandingApprovals:
    """Session approvals and trust of one world; each is bound to a digest and to walls, and covers no others."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def approve_in_session(
        self, session_id: str, *, skill: str, folder: str | Path, digest: str, channel: str, walls: Bounds
    ) -> Approval:
        """Holds for this session only; a new digest of the same skill takes the place of the old one."""
        if not session_id:
            raise ConfigurationError("An approval for a session needs the session's id; ask for a single run instead.")
        approval = Approval("session", session_id, skill, real_path(folder), digest, channel, time.time(), walls)
        return self._keep(approval)

    def trust(self, *, skill: str, folder: str | Path, digest: str, channel: str, walls: Bounds | None) -> Approval:
        """Holds until it is removed; a new digest of the same skill takes the place of the old one.

        Without walls it covers no run: it is about a file that is only read.
        """
        return self._keep(Approval("trust", None, skill, real_path(folder), digest, channel, time.time(), walls))

    def covering(self, session_id: str | None, skill: str, digest: str, walls: Bounds) -> Approval | None:
        """The approval under which this skill, with this content, may run in this session within these walls."""
        standing = self.of_content(session_id, skill, digest)
        return next((each for each in standing if each.walls is not None and each.walls.hold(walls)), None)

    def of_content(self, session_id: str | None, skill: str, digest: str) -> list[Approval]:
        """What a person approved of this content in this session, within whichever walls."""
        statement = f"{_COLUMNS} where skill = ? and digest = ? order by kind desc"
        session = kept_text(session_id or NO_SESSION)
        found = self._rows(statement, kept_text(skill), digest)
        return [each for each in map(approval_from, found) if holds(each, session)]

    def trusted(self) -> list[Approval]:
        """By name, then folder."""
        statement = f"{_COLUMNS} where kind = 'trust' order by skill, folder"
        return [approval_from(values) for values in self._rows(statement)]

    def in_sessions(self) -> list[Approval]:
        """What still holds for a session; by session, name, then folder."""
        statement = f"{_COLUMNS} where kind = 'session' order by session, skill, folder"
        found = [approval_from(values) for values in self._rows(statement)]
        return [each for each in found if holds(each, each.session_id or NO_SESSION)]

    def end_in_sessions(self, *, skill: str | None = None, session_id: str | None = None) -> list[Approval]:
        """What does not hold any more; without a skill all of them, without a session in every one."""
        name, session = (None if each is None else kept_text(each) for each in (skill, session_id))
        found = self.in_sessions()
        gone = [each for each in found if name in (None, each.skill) and session in (None, each.session_id)]
        self._remove(gone)
        return gone

    def remove_trust(self, skill: str, *, folder: str | Path | None = None) -> list[Approval]:
        """What is not trusted any more; without a folder, wherever the skill was."""
        place = None if folder is None else kept_text(real_path(folder))
        gone = [each for each in self.trusted() if each.skill == kept_text(skill) and place in (None, each.folder)]
        self._remove(gone)
        return gone

    def last_approved_digest(self, skill: str, folder: str | Path) -> str | None:
        """Of what a person approved last, to show what changed since."""
        statement = "select digest from approvals where skill = ? and folder = ? order by seq desc limit 1"
        return next(
            (digest for (digest,) in self._rows(statement, kept_text(skill), kept_text(real_path(folder)))), None
        )

    def digests(self) -> frozenset[str]:
        """Everything some approval is about; their copies are kept."""
        return frozenset(digest for (digest,) in self._rows("select digest from approvals"))

    def _remove(self, gone: list[Approval]) -> None:
        """Only as they were when they were found; who approved other content meanwhile meant that."""
        if not gone:
            return
        with self._store.transaction() as connection:
            connection.executemany(
                "delete from approvals where kind = ? and session = ? and skill = ? and folder = ? and digest = ?",
                [(each.kind, each.session_id or NO_SESSION, each.skill, each.folder, each.digest) for each in gone],
            )

    def _rows(self, statement: str, *values: str) -> list[Any]:
        """Looking makes no file."""
        if not self._store.path.exists():
            return []
        with self._store.connection() as connection:
            return connection.execute(statement, values).fetchall()

    def _keep(self, approval: Approval) -> Approval:
        place = (
            approval.kind,
            kept_text(approval.session_id or NO_SESSION),
            *map(kept_text, (approval.skill, approval.folder)),
        )
        with self._store.transaction() as connection:
            connection.execute(
                "delete from approvals where kind = 'session' and approved_at < ?",
                (approval.approved_at - SESSION_APPROVAL_SECONDS,),
            )
            connection.execute(
                "delete from approvals where kind = ? and session = ? and skill = ? and folder = ?", place
            )
            walls = approval.walls.to_text() if approval.walls else ""
            connection.execute(_INSERT, (*place, approval.digest, approval.channel, approval.approved_at, walls))
        return approval


def holds(approval: Approval, session: str) -> bool:
    if approval.kind == "trust":
        return True
    is_recent = time.time() - approval.approved_at < SESSION_APPROVAL_SECONDS
    return is_recent and approval.session_id == session != NO_SESSION


def approval_from(values: tuple[Any, ...]) -> Approval:
    kind, session, skill, folder, digest, channel, approved_at, walls = values
    return Approval(kind, session or None, skill, folder, digest, channel, approved_at, Bounds.from_text(walls))


def kept_text(text: str) -> str:
    """A name that is no UTF-8 cannot be stored as it is."""
    return text.encode("utf-8", "backslashreplace").decode()
