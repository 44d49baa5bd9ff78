"""A session -> what waits for a person's word, and what they said for the whole session and may take back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from skillkit.core.decide.requests import World
from skillkit.core.decide.trust import StandingApprovals
from skillkit.core.state import StateStore
from skillkit.present.terminal import cut

__all__ = ["approvals_text", "end_approvals"]

SHORT_ID = 12
TITLE_COLUMNS = 100


def approvals_text(state_dir: Path, session_id: str | None) -> str:
    with World(state_dir) as world:
        pending = world.pending()
    lines = [
        f"Waiting: {cut(each.title, TITLE_COLUMNS)}  (skillkit approvals show {each.id[:SHORT_ID]})" for each in pending
    ]
    store = StateStore(state_dir)
    try:
        standing = StandingApprovals(store).in_session(session_id) if session_id else []
    finally:
        store.close()
    for each in standing:
        since = datetime.fromtimestamp(each.approved_at, UTC).strftime("%H:%M UTC")
        lines.append(f"Approved in this session: {each.skill}, since {since}  (/approve end {each.skill})")
    return "\n".join(lines) or "Nothing waits for your word, and nothing is approved for this session."


def end_approvals(state_dir: Path, session_id: str | None, skill: str) -> str:
    store = StateStore(state_dir)
    try:
        gone = StandingApprovals(store).end_in_session(session_id, skill or None) if session_id else []
    finally:
        store.close()
    if not gone:
        return f"No approval of {skill!r} holds in this session." if skill else "No approval holds in this session."
    return f"You will be asked again about: {', '.join(sorted({each.skill for each in gone}))}."
