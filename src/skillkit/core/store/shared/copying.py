"""A world in a folder's own file -> the same world in PostgreSQL: its id, its records, what people said and gave.

The database checks each record against the one before as it comes, so a chain that does not hold is not taken.
Questions that are open stay where their askers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import Connection
from skillkit.core.store.shared.postgres import SharedStore
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import AGENT_OWNER, ANYWHERE

__all__ = ["copy_world"]

_PAGE_ROWS = 500
_COPIED = {
    "approvals": ("kind", "session", "skill", "folder", "digest", "channel", "approved_at", "walls", "ticks"),
    "on_load": ("session", "skill", "folder", "digest", "commands", "channel", "approved_at", "walls", "ticks"),
    "grants": ("skill", "folder", "digest", "kind", "name", "channel", "granted_at"),
}
_SIGNED = ("skill", "digest", "signer", "key", "signed_at")
_REQUEST = (
    *("id", "content", "context", "single_use", "is_held", "created_at", "expires_at", "boot", "deadline", "owner"),
    *("state", "option_id", "channel", "answered_at", "grants", "reason", "is_taken"),
)


def copy_world(source: StateStore, target: SharedStore) -> dict[str, int]:
    """All or nothing, into a world that nobody used yet; how many of each there were."""
    with source.transaction() as old, target.transaction() as new:
        if new.execute("select count(*) from audit").fetchone()[0]:
            raise StateUnavailableError(
                f"The shared world {target.place} has records of its own. Make another with 'skillkit fleet init'."
            )
        new.execute("update meta set value = ? where key = 'world'", (source.connected_world,))
        copied = {"audit": 0}
        for page in _pages(old):
            new.executemany("insert into audit values (?, ?, ?, ?, ?, ?)", page)
            copied["audit"] += len(page)
        for kept in old.execute("select value from meta where key = 'checkpoint'").fetchall():
            new.execute("insert into meta (key, value) values ('checkpoint', ?)", kept)
        for table, columns in _COPIED.items():
            copied[table] = _copy_table(old, new, table, columns)
        signed = old.execute("select skill, signed, signer, key, signed_at from installed where key <> ''").fetchall()
        new.executemany(f"{_insert_into('signers', _SIGNED)} on conflict do nothing", signed)
        copied["signers"] = len(signed)
        past = old.execute(f"{_select_from('requests', _REQUEST)} where state <> 'pending' order by seq").fetchall()
        new.executemany(_insert_into("requests", _REQUEST), past)
        copied["requests"] = len(past)
    target.close()  # the next use sees whose world it is now
    return copied


def _pages(connection: Connection) -> Iterator[list[tuple[Any, ...]]]:
    after = 0
    while page := connection.execute(
        "select seq, timestamp, kind, fields, previous, hash from audit where seq > ? order by seq limit ?",
        (after, _PAGE_ROWS),
    ).fetchall():
        yield page
        after = page[-1][0]


def _copy_table(old: Connection, new: Connection, table: str, columns: tuple[str, ...]) -> int:
    """By content, not by folder; of two folders with the same content one word is enough."""
    skill, folder, digest = (columns.index(name) for name in ("skill", "folder", "digest"))
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for found in old.execute(_select_from(table, columns)).fetchall():
        row = list(found)
        if row[skill] != AGENT_OWNER:
            row[folder] = f"{ANYWHERE}{row[digest]}"
        names = [name for name in ("kind", "session", "skill", "folder", "name") if name in columns]
        rows[tuple(row[columns.index(name)] for name in names)] = tuple(row)
    new.executemany(_insert_into(table, columns), rows.values())
    return len(rows)


def _select_from(table: str, columns: tuple[str, ...]) -> str:
    return f"select {', '.join(columns)} from {table}"  # noqa: S608 - names of ours


def _insert_into(table: str, columns: tuple[str, ...]) -> str:
    return f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"  # noqa: S608 - as above
