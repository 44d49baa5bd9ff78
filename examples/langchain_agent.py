"""A LangChain agent with skills: it reads a skill, a person is asked, the script runs. No network is used.

Run it with an answer (yes_once, yes_in_session, no), or without one to be asked. The model follows a script, so that
the example runs anywhere; put your own in its place, for example `ChatOpenAI(model="...")`, and the rest stays.
Needs: pip install "skillkit-runtime[langchain]"
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from skillkit import GUARDED, SkillManager
from skillkit.integrations.langchain import SkillCatalog, SkillToolNames, create_langchain_tools

SKILLS = Path(__file__).parent / "skills"
QUESTION = "How readable is: 'The cat sat. The dog ran.'?"


class ScriptedModel(GenericFakeChatModel):
    """Says what it was told to say; a real model would choose these calls by itself."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:  # noqa: ARG002, ANN401
        return self


def turns() -> list[AIMessage]:
    given = {"arguments": {"text": "The cat sat. The dog ran."}}
    return [
        AIMessage("", tool_calls=[{"name": "text-stats", "args": {}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "text-stats__stats", "args": given, "id": "2"}]),
        AIMessage("Two short sentences; anybody can read them."),
    ]


def person(question: dict[str, Any]) -> str:
    """Where you show the question in your own way; the answer is one of its three options."""
    (command,) = question["prompt"]["commands"]
    print(f"? {question['title']}\n  input: {command['stdin']}")
    print("  " + "\n  ".join(question["prompt"]["walls"][:2]))
    offered = [option["id"] for option in question["options"]]
    try:
        said = sys.argv[1] if sys.argv[1:] else input(f"  {', '.join(offered)}: ").strip()
    except EOFError:  # nobody is there
        said = "no"
    return said if said in offered else "no"


def main() -> None:
    thread: Any = {"configurable": {"thread_id": "example"}}
    with (
        tempfile.TemporaryDirectory() as state,
        SkillManager(SKILLS, "", [], [], policy=GUARDED, state_dir=state) as manager,
    ):
        agent: Any = create_agent(
            ScriptedModel(messages=iter(turns())),
            create_langchain_tools(manager),
            middleware=[SkillToolNames(), SkillCatalog(manager)],
            checkpointer=InMemorySaver(),
        )
        answer = agent.invoke({"messages": [("user", QUESTION)]}, thread)
        while questions := answer.get("__interrupt__"):
            said = {question.id: person(question.value) for question in questions}
            answer = agent.invoke(Command(resume=said), thread)
    for message in answer["messages"]:
        kind = message.name if isinstance(message, ToolMessage) else message.type
        if message.text:
            print(f"{kind}: {message.text.strip()[:200]}")


if __name__ == "__main__":
    main()
