"""What importing costs, and what is said where LangChain is missing; in interpreters of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import skillkit

SOURCES = Path(str(skillkit.__file__)).parents[1]


def said_by(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_without_langchain_one_sentence_says_how_to_get_it() -> None:
    ended = said_by("import skillkit.integrations.langchain", "-S")
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: skillkit's LangChain tools need langchain_core, langchain, langgraph")
    assert last.endswith('pip install "skillkit-runtime[langchain]"')


def test_skillkit_itself_never_imports_langchain() -> None:
    code = "import sys, skillkit; from skillkit import SkillManager; print(*sys.modules)"
    loaded = {name.split(".")[0] for name in said_by(code).stdout.split()}
    assert "skillkit" in loaded
    assert loaded.isdisjoint(("langchain", "langchain_core", "langgraph", "pydantic"))


def test_tools_do_without_the_agents_part_of_langchain() -> None:
    code = "import sys; from skillkit.integrations.langchain import create_langchain_tools; print(*sys.modules)"
    loaded = set(said_by(code).stdout.split())
    assert "langchain_core.tools" in loaded
    assert "langchain.agents" not in loaded


def test_the_package_lists_its_names() -> None:
    from skillkit.integrations import langchain

    assert dir(langchain) == sorted(langchain.__all__)
    assert all(getattr(langchain, name) for name in langchain.__all__)
