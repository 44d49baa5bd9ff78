"""A prompt -> its sections, in the order in which a person needs them."""

from __future__ import annotations

from collections.abc import Iterator

from skillkit.core.questions import FileChange, OptionRequest, Prompt, RiskFlag
from skillkit.present.request import CHANGE_KINDS, as_word, has_added
from skillkit.web.highlight import marked
from skillkit.web.icons import icon
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.shown import card, facts, input_block, moment, plural
from skillkit.web.source_view import LINES_BEFORE, diff_block, line_id, part_of, source_block

__all__ = ["prompt_heading", "prompt_sections"]

RISKS_LISTED = 100
# By how our own sentences begin: the rest of one may hold a name that a skill chose.
WALLS = (
    ("It cannot use the network", "network", "closed"),
    ("It can use the network", "network", "wide"),
    ("It cannot ", "file", "closed"),
    ("It can write to a work folder", "folder", "open"),
    ("It can read and write your files", "file", "wide"),
    ("It can read and write the workspace", "folder", "open"),
    ("It can see", "eye", "open"),
    ("It can start programs", "program", "open"),
    ("It can ", "file", "open"),
    ("It gets your environment", "key", "wide"),
    ("Of your environment", "key", "open"),
    ("Its memory", "program", "wide"),
    ("After ", "clock", "closed"),
    ("No walls", "open", "wide"),
)
WALL_WORDS = {"closed": "kept out", "open": "allowed", "wide": "wide open"}


def prompt_heading(request: OptionRequest, prompt: Prompt) -> Markup:
    """Who asks: our words as a heading, the skill's names as facts below."""
    many = len(prompt.commands)
    scripts = [tag("code", each.script) for each in prompt.commands]
    listed = tag("ol", [tag("li", each) for each in scripts], class_="plain") if many > 1 else scripts
    return tag(
        "section",
        tag("h1", "May this script run?" if many == 1 else f"May these {many} scripts run?"),
        facts(
            [
                ("Script" if many == 1 else "Scripts", listed),
                ("Skill", tag("code", prompt.skill)),
                ("From", tag("code", prompt.origin, class_="path")),
                ("Why asked", [tag("p", reason) for reason in prompt.reasons]),
                ("Session", tag("code", request.session_id) if request.session_id else None),
                ("Asked", moment(request.created_at)),
            ]
        ),
        class_="card question",
    )


def prompt_sections(request: OptionRequest, prompt: Prompt, links: Links) -> Iterator[Markup]:
    yield risks(request, prompt, links)
    yield changes(request, prompt, links)
    yield given(prompt)
    yield walls(prompt)
    yield from sources(request, prompt, links)
    yield card("Digest", tag("p", "An approval is for exactly this content of the skill."),
               tag("p", tag("code", prompt.digest, class_="path")))  # fmt: skip


def risks(request: OptionRequest, prompt: Prompt, links: Links) -> Markup:
    if not prompt.risks:
        return card("Risks", tag("p", "None found, which proves nothing."))
    entries = [tag("li", risk_entry(request, prompt, each, links)) for each in prompt.risks[:RISKS_LISTED]]
    more = len(prompt.risks) - RISKS_LISTED
    rest = tag("p", f"{more:,} more.") if more > 0 else None
    return card(["Risks ", tag("span", len(prompt.risks), class_="count")],
                tag("ul", entries, class_="risks"), rest, class_="warn")  # fmt: skip


def risk_entry(request: OptionRequest, prompt: Prompt, risk: RiskFlag, links: Links) -> Child:
    place = f"{risk.path}:{risk.line}" if risk.line > 0 else risk.path
    address = place_of(request, prompt, risk, links)
    linked = tag("a", tag("code", place), href=address) if address else tag("code", place)
    kind = tag("span", icon("flag"), risk.kind.replace("_", " "), class_="chip warn")
    return [kind, tag("span", risk.message, " ", linked)]


def place_of(request: OptionRequest, prompt: Prompt, risk: RiskFlag, links: Links) -> str:
    """The flagged line, here or on the page that holds it; empty for files that are not shown."""
    for number, command in enumerate(prompt.commands, 1):
        if command.script == risk.path and risk.line > 0:
            is_here = risk.line <= part_of(command, 1, len(prompt.commands)).end
            page = "" if is_here else links.source(request.id, number, max(1, risk.line - LINES_BEFORE))
            return f"{page}#{line_id(number, risk.line)}"
    return ""


def changes(request: OptionRequest, prompt: Prompt, links: Links) -> Markup:
    if prompt.changes is None:
        return card("Changed", tag("p", "Never approved before."))
    if not prompt.changes:
        return card("Changed", tag("p", "Nothing since the last approval."))
    kinds = [change.kind for change in prompt.changes]
    counted = ", ".join(f"{kinds.count(kind):,} {kind}" for kind in CHANGE_KINDS if kind in kinds)
    listed = [change_entry(each, is_open=at == 0 or has_added(each.diff)) for at, each in enumerate(prompt.changes)]
    every = tag("a", "Show every line", href=links.changes(request.id), class_="button") if prompt.approved else None
    unseen = f"{plural(prompt.unseen, 'added line')} not shown to the end."
    more = tag("p", unseen if prompt.unseen else "All added lines are shown.")
    return card("Changed", tag("p", f"{counted} since it was approved."), more, listed, tag("p", every), class_="warn")


def change_entry(change: FileChange, *, is_open: bool) -> Markup:
    name = tag("summary", tag("span", change.kind, class_="chip"), " ", tag("code", change.path))
    return tag("details", name, diff_block(change.diff, change.path), open=is_open)


def given(prompt: Prompt) -> Markup:
    """What the caller gives each script."""
    parts: list[Child] = []
    for number, command in enumerate(prompt.commands, 1):
        if len(prompt.commands) > 1:
            parts.append(tag("h3", f"{number}. ", tag("code", command.script)))
        words = [tag("li", tag("code", marked(as_word(word))), None if word else " empty") for word in command.argv]
        parts.append(tag("ol", words, class_="words") if words else tag("p", "No arguments."))
        if command.stdin:
            parts += [tag("p", "Input:", class_="label"), input_block(command.stdin)]
    return card("Arguments", parts)


def walls(prompt: Prompt) -> Markup:
    entries = [tag("li", wall_entry(sentence)) for sentence in prompt.walls]
    return card("Walls", tag("ul", entries, class_="walls") if entries else tag("p", "None."))


def wall_entry(sentence: str) -> Child:
    drawing, state = next(
        ((name, state) for start, name, state in WALLS if sentence.startswith(start)), ("shield", "open")
    )
    return [tag("span", icon(drawing), tag("span", f"{WALL_WORDS[state]}: ", class_="unsaid"), class_=f"wall {state}"),
            tag("span", sentence)]  # fmt: skip


def sources(request: OptionRequest, prompt: Prompt, links: Links) -> Iterator[Markup]:
    for number, command in enumerate(prompt.commands, 1):
        part = part_of(command, 1, len(prompt.commands))
        heading: Child = ["Source ", tag("code", command.script)] if len(prompt.commands) > 1 else "Source"
        if not part.total:
            yield card(heading, tag("p", "Empty."))
            continue
        told = plural(part.total, "line")
        more = None
        if part.end < part.total:
            told = f"The first {part.end:,} of {told}"
            more = tag("p", tag("a", f"Show the other {part.total - part.end:,} lines",
                                href=links.source(request.id, number, part.end + 1), class_="button"))  # fmt: skip
        yield card(heading, tag("p", f"{told}.", class_="quiet"), source_block(prompt, number, part), more)
