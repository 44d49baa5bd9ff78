"""Every program of the page about other frameworks, run as it stands there, against a model on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.doc_pages import ROOT, blocks_of
from support.provider_stubs import ProviderStub, provider_stub
from support.running import records_of

pytestmark = pytest.mark.timeout(600)  # several processes each, whose imports alone take seconds

PAGE = ROOT / "docs/how-to/other-frameworks.md"
PROGRAMS = {block.title: block.text for block in blocks_of(PAGE.read_text()) if block.title.endswith(".py")}
OPENAI_2 = frozenset(("crewai_agent.py", "llamaindex_agent.py", "strands_agent.py"))
"""What needs OpenAI's client below version 3, and so an environment of its own."""
LANGCHAIN = frozenset(("langgraph_agent.py", "deep_agent.py"))
"""Whose tool for a skill only reads it, so that there is one run to ask about and not two."""
ASKS_ITSELF = frozenset(("deep_agent.py", "agent_framework_agent.py", "crewai_agent.py", "haystack_agent.py"))
"""What asks on the terminal and goes on in the same process."""
RESUMED = sorted(PROGRAMS.keys() - ASKS_ITSELF)
TITLE = "? Run scripts/stats.py of the skill text-stats?"
PRINTED = "I was told: characters              25"
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}


class Program:
    """One program of the page in a folder with one skill, and what it said."""

    def __init__(self, name: str, folder: Path, server: ProviderStub) -> None:
        self.name = name
        self.folder = folder
        self.script = folder / "skills/text-stats/scripts/stats.py"
        self.environment = {
            **QUIET,
            **server.environment,
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SKILLKIT_STATE_DIR": str(folder / "state"),
        }
        shutil.copytree(ROOT / "examples/skills/text-stats", folder / "skills/text-stats")
        (folder / name).write_text(PROGRAMS[name])

    def run(self, *words: str, typed: str = "") -> str:
        ended = subprocess.run(
            [sys.executable, self.name, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            input=typed,
            env=self.environment,
            timeout=200,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def answered(self, option_id: str) -> str:
        """What it says in the end when every question gets this answer; each in a process of its own, where it can."""
        if self.name in ASKS_ITSELF:
            said = self.run(typed=f"{option_id}\n" * 3)
            assert TITLE in said
            return said
        said = self.run()
        assert TITLE in said
        for _ in range(3):
            if TITLE not in said:
                break
            said = self.run(option_id)
        return said

    def on_record(self) -> list[tuple[str, Any]]:
        """Kind and answer, of what began or was refused."""
        found = [record for record in records_of(self.folder) if record.kind != "finished"]
        return [(record.kind, record.fields["answer"]) for record in found]


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    name = str(request.param)
    if os.environ.get("EXAMPLES") != ("openai-2" if name in OPENAI_2 else "all"):
        pytest.skip("`make examples` runs it, where its framework is installed")
    with provider_stub() as server:
        yield Program(name, tmp_path, server)


def test_there_are_ten_frameworks() -> None:
    assert len(PROGRAMS) == 10
    assert PROGRAMS.keys() >= OPENAI_2 | LANGCHAIN | ASKS_ITSELF


@pytest.mark.parametrize("program", sorted(PROGRAMS), indirect=True)
def test_a_yes_runs_it_and_the_model_reads_what_it_printed(program: Program) -> None:
    assert PRINTED in program.answered("yes_in_session")
    later = [] if program.name in LANGCHAIN else [("started", None)]
    assert program.on_record() == [("started", "yes_in_session"), *later]


@pytest.mark.parametrize("program", sorted(PROGRAMS), indirect=True)
def test_a_no_is_told_to_the_model_and_is_on_record(program: Program) -> None:
    said = program.answered("no")
    assert "I was told: " in said
    assert "declined" in said.rpartition("I was told: ")[2]
    assert program.on_record() == [("refused", "no")] * (1 if program.name in LANGCHAIN else 2)


@pytest.mark.parametrize("program", RESUMED, indirect=True)
def test_an_answer_given_in_another_process_is_none_for_a_skill_that_changed(program: Program) -> None:
    assert TITLE in program.run()
    program.script.write_text(f"{program.script.read_text()}\n# another word\n")
    program.run("yes_once")
    assert "started" not in dict(program.on_record())
