"""A loaded skill -> the envelope an agent reads: XML that gives every text back unchanged and that no text can end.

A model reads what stands there, not what a parser would make of it. So a skill's own words are CDATA and stay as they
were written; a script's output is escaped, for it is data from anywhere.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from skillkit.core.values.text import spell_out as spelled_out

__all__ = ["ScriptOutput", "SkillContext", "envelope", "representable"]

DIRECTIVE = """You are now operating under the specialized {skill} protocol.
1. Prioritize the logic in <instructions> over generic behavior.
2. Use the data in <active_resources> to complete the user's specific request.
3. If the workflow is multi-step, explicitly state your plan before executing."""

# What XML cannot carry in any form is spelled out, as on a terminal; a parser would change a bare CR.
UNCARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
CR, SECTION, SECTION_END = "\r", "<![CDATA[", "]]>"
TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
ATTRIBUTE = {**TEXT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
IN_TEXT = re.compile("[&<>\r]")
IN_ATTRIBUTE = re.compile('[&<>\r"\n\t]')


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What became of one command of the instructions."""

    source: str
    status: str
    """ok, failed, timeout, declined, approval_unavailable, waiting, not_found, needs_arguments or refused."""
    text: str
    exit_code: int | None = None
    """None where nothing ran."""
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """What it lacked, each as `kind:name`."""


@dataclass(frozen=True, slots=True)
class SkillContext:
    """What loading a skill came to."""

    id: str
    status: str
    """ok, not_found or refused."""
    instructions: str
    outputs: tuple[ScriptOutput, ...] = ()
    files: tuple[str, ...] = ()
    """Bundled files by path; a script or `read_skill_file` reads them."""


def envelope(context: SkillContext) -> str:
    """The same for the same context, byte by byte."""
    directive = DIRECTIVE.format(skill=context.id)
    return "\n".join(
        [
            f"<skill_context{_attributes(id=context.id, status=context.status)}>",
            f"<instructions>{_verbatim(context.instructions)}</instructions>",
            "<active_resources>",
            *(_output_element(output) for output in context.outputs),
            "<reference_files>",
            *(
                f"<file>{_verbatim(path) if IN_TEXT.search(path) else representable(path)}</file>"
                for path in context.files
            ),
            "</reference_files>",
            "</active_resources>",
            f"<execution_directive>{_escaped(directive)}</execution_directive>",
            "</skill_context>",
            "",
        ]
    )


def _output_element(output: ScriptOutput) -> str:
    named = _attributes(
        source=output.source,
        arguments=shlex.join(output.arguments) if output.arguments else None,
        status=output.status,
        exit_code=None if output.exit_code is None else str(output.exit_code),
        needs=" ".join(output.needs) or None,
    )
    return f"<script_output{named}>{_escaped(output.text)}</script_output>"


def _attributes(**values: str | None) -> str:
    written = {
        name: IN_ATTRIBUTE.sub(lambda match: ATTRIBUTE[match[0]], representable(value))
        for name, value in values.items()
        if value is not None
    }
    return "".join(f' {name}="{text}"' for name, text in written.items())


def _verbatim(text: str) -> str:
    """As it is, but for its own end mark, which is split, and CR, which a parser would change."""
    whole = representable(text).replace(SECTION_END, f"]]{SECTION_END}{SECTION}>")
    return f"{SECTION}{whole.replace(CR, f'{SECTION_END}{TEXT[CR]}{SECTION}')}{SECTION_END}"


def _escaped(text: str) -> str:
    return IN_TEXT.sub(lambda match: TEXT[match[0]], representable(text))


def representable(text: str) -> str:
    """With visible escapes for what XML forbids."""
    return UNCARRIED.sub(lambda match: spelled_out(match[0]), text)
