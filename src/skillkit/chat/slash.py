"""What slash commands of a chat answer: the commands there are, skills, what is approved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.core.store.world import World
from skillkit.core.values.text import near_names
from skillkit.present.terminal import columns, cut

__all__ = ["HELP", "QUIT", "answer_approvals", "help_text", "skills_text", "unknown_command"]

QUIT = "/quit"
SHORT_ID = 12
TITLE_COLUMNS = 100
HELP = {
    "/skills": ("/skills", "the skills and scripts that the model can use"),
    "/approve": ("/approve [end [SKILL]]", "what is approved for this session; take it back"),
    "/retry": ("/retry", "ask the last question again that got no answer"),
    "/save": ("/save FILE", "save the conversation as Markdown or .jsonl"),
    "/help": ("/help", "this"),
    QUIT: (QUIT, "end the chat"),
}
KEYS = (
    "Ctrl-C stops an answer and the script that runs, or clears the line. Ctrl-D ends the chat.\n"
    "A line that ends with \\ goes on. Begin with // to say something that starts with a slash."
)


def help_text(width: int) -> str:
    return "\n".join([*columns(list(HELP.values()), width), KEYS])


def unknown_command(word: str) -> str:
    """With the nearest one; it is not sent to the model."""
    near = near_names(word, HELP)
    return f"{word} is no command. {f'Did you mean {near[0]}?' if near else 'See /help.'}"


def skills_text(manager: SkillManager, skills: Sequence[SkillMetadata], width: int, *, may_run: bool) -> str:
    if not skills:
        return "There are no skills here. 'skillkit list' says where they are looked for."
    rows = []
    for skill in skills:
        rows.append((skill.name, " ".join(skill.description.split())))
        scripts = manager.load_skill(skill.qualified_name).scripts
        rows += [(f"- {script.path.as_posix()}", script.description) for script in scripts]
    note = "" if may_run else "\nTheir scripts may not run in this chat: start it with --allow-scripts."
    return "\n".join(columns(rows, width)) + note


def answer_approvals(manager: SkillManager, words: str) -> str:
    """What waits for a person's word and what they said for the whole session; `end` takes that back."""
    first, _, skill = words.partition(" ")
    if first not in ("", "end"):
        return "Write /approve, or /approve end [SKILL]."
    with World(manager.state_dir, state=manager.state) as world:
        if first == "end":
            return _end_approvals(world, manager.session_id, skill.strip())
        return _approvals_text(world, manager.session_id)


def _approvals_text(world: World, session_id: str | None) -> str:
    lines = [
        f"Waiting: {cut(each.title, TITLE_COLUMNS)}  (skillkit approvals show {each.id[:SHORT_ID]})"
        for each in world.pending()
    ]
    for each in world.session_approvals() if session_id else ():
        if each.session_id == session_id:
            since = datetime.fromtimestamp(each.approved_at, UTC).strftime("%H:%M UTC")
            lines.append(f"Approved in this session: {each.skill}, since {since}  (/approve end {each.skill})")
    return "\n".join(lines) or "Nothing waits for your word, and nothing is approved for this session."


def _end_approvals(world: World, session_id: str | None, skill: str) -> str:
    gone = world.end_session_approvals(skill=skill or None, session_id=session_id) if session_id else []
    if not gone:
        return f"No approval of {skill!r} holds in this session." if skill else "No approval holds in this session."
    return f"You will be asked again about: {', '.join(sorted({each.skill for each in gone}))}."
