"""Whoever lives long finds the next run ready: the MCP server and the chat, as processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.chats import ChatTerminal, chat_words
from support.mcp_clients import ERAS, conversing, over_stdio, text_of
from support.model_servers import Said, chat_server
from support.running import records_of
from support.terminals import READY
from support.warm_runs import needs_spares

pytestmark = [needs_spares, pytest.mark.slow]
SCRIPT = {"scripts/run.py": "import json\nprint('ran')\n"}
RUN = "skills_run_script"
PAUSE_SECONDS = 1.0


def starts(folder: Path) -> list[str]:
    """How each run on record was started."""
    finished: list[Any] = [each.fields for each in records_of(folder) if each.kind == "finished"]
    return [fields["isolation"]["start"] for fields in finished]


def until_warm(folder: Path, run: Callable[[], object]) -> list[str]:
    """A slow machine has made nothing ready yet when the next call comes."""
    for _ in range(8):
        run()
        if "warm" in (found := starts(folder)):
            return found
        time.sleep(PAUSE_SECONDS)
    return starts(folder)


@pytest.mark.parametrize("era", ERAS)
def test_the_server_of_a_host_does(tmp_path: Path, era: str) -> None:
    with conversing(over_stdio(tmp_path), tmp_path, era=era) as talk:
        talk.add_skill("demo", SCRIPT)
        talk.person.will("yes_in_session")
        seen = until_warm(tmp_path, lambda: talk.run("demo", "run"))
        assert seen[0] == "cold"
        assert seen[-1] == "warm"
        assert text_of(talk.run("demo", "run")) == "ran\n"
        assert len(talk.person.forms) == 1


def test_the_chat_does(tmp_path: Path) -> None:
    call = Said("I run it.", ((RUN, {"skill_name": "demo", "script": "scripts/words.py", "args": ["chat"]}),))
    with (
        chat_server(*(each for number in range(10) for each in (call, Said(f"Turn {number}.")))) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server, "--allow-scripts")) as terminal,
    ):
        turns = iter(range(10))

        def turn() -> None:
            number = next(turns)
            terminal.type("run it")
            if number == 0:
                terminal.wait_for(READY)
                terminal.send("2")
            terminal.wait_for(f"Turn {number}.")

        seen = until_warm(tmp_path, turn)
        assert terminal.end() == 0
    assert seen[0] == "cold"
    assert seen[-1] == "warm"
