"""Every surface that a model has, each used as a model uses it -> all that the model, or its program, is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillkit import SkillManager
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor, run_rounds
from skillkit.integrations.langchain import create_langchain_tools
from skillkit.integrations.mcp.server import create_server
from support.inline_answers import saying
from support.langchain_agents import message_of
from support.mcp_clients import conversing

__all__ = ["BODY", "SURFACES", "told_on"]

BODY = "Do it:\n\n```bash\npython scripts/run.py 3\n```\n"
"""Of a SKILL.md: what `load_skill` runs."""


def told_on(surface: str, manager: SkillManager, words: Sequence[str] = ("3",)) -> str:
    """What comes back for `scripts/run.py` of the skill `demo`, with everything that stands beside the text."""
    return SURFACES[surface](manager, list(words))


def _functions(manager: SkillManager, words: list[str]) -> str:
    heard: list[bytes] = []
    call = {"skill_name": "demo", "script": "run", "args": words}
    answer = SkillFunctions(manager).call("skills_run_script", call, on_output=lambda _, data: heard.append(data))
    return f"{answer.content}\n{b''.join(heard).decode()}\n{answer!r}"


def _load_skill(manager: SkillManager, _: list[str]) -> str:
    answer = SkillFunctions(manager).load_skill("demo")
    return f"{answer.content}\n{answer!r}"


def _langchain(manager: SkillManager, words: list[str]) -> str:
    (tool,) = [tool for tool in create_langchain_tools(manager) if tool.name == "demo.run"]
    message = message_of(tool, {"argv": words})
    return f"{message.content}\n{message!r}"


def _mcp(manager: SkillManager, words: list[str]) -> str:
    heard: list[str] = []
    with conversing(create_server(manager), manager.state_dir.parent, era="legacy") as talk:
        call = {"skill_name": "demo", "script": "run", "args": words}
        result = talk.start("skills_run_script", lambda _, line: heard.append(line), **call).result(60)
    return f"{result.model_dump_json(by_alias=True)}\n{heard}"


def _inline(manager: SkillManager, words: list[str]) -> str:
    told: list[Any] = []

    def last(messages: Sequence[Any]) -> str:
        told.extend(messages)
        return "Done."

    first = f"!{{scripts/run.py {' '.join(words)}}}"
    result = run_rounds(saying(first, last), [{"role": "user", "content": "Go."}], InlineProcessor(manager))
    return f"{told[-1]['content']}\n{told!r}\n{[outcome.line for outcome in result.outcomes]}"


SURFACES = {
    "functions": _functions,
    "load_skill": _load_skill,
    "langchain": _langchain,
    "mcp": _mcp,
    "inline": _inline,
}
