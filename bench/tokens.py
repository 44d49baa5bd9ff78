"""How much of a model's context the tools take before anything is asked, for a few and for many skills."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp.client.client import Client

from bench.runner import Row
from skillkit import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.integrations.langchain import create_langchain_tools
from skillkit.integrations.mcp.server import create_server
from skillkit.integrations.tool_schemas import server_instructions, tool_schemas

# OpenAI's own package loads its vocabulary from the network; this one brings it.
VOCABULARY = "rs-bpe==0.1.0"
VOCABULARY_FOLDER = Path(__file__).parents[1] / ".tools" / "vocabulary"
BYTES_OF_A_TOKEN = 3.5
NATIVE = "hosts that list skills themselves: Claude Code 5.9k (48 described), Codex 7.7k, Gemini and opencode 59k"
BOUNDS = {
    "MCP": {5: (1_000, 950), 50: (3_000, 2_500), 500: (6_000, 5_900)},
    "LangChain": {5: (1_500, 1_200), 50: (12_000, 11_500), 500: (6_000, 5_900)},
}

DOING = "extract convert summarise validate merge translate review compare plot schedule".split()
THINGS = "invoice contract spreadsheet calendar dataset presentation transcript changelog schema ticket".split()
PLACES = "pdf docx email github slack".split()
RARE = {
    "Latin": "qzxjkvwbfg",
    "Greek": "αβγδεζηθ",
    "Kana": "あいうえおかきく",
    "Han": "龘靐齉爩麤鱻",
    "Hangul": "갂갉갔걁걇",
    "Ethiopic": "ወዐዘዠየደ",
    "Cherokee": "ᎠᎡᎢᎣᎤᎥ",
    "Cuneiform": "\U00012000\U00012001\U00012002",
}
SCRIPT = '#!/usr/bin/env python3\n"""{title}.\n\nReads the file named first."""\nimport sys\n'


def rows(work: Path) -> list[Row]:
    count_tokens, how = counting()
    found = []
    for count in (5, 50, 500):
        with SkillManager("", "", [], [make_skills(work / str(count), count)], state_dir=work / "state") as manager:
            texts = {"MCP": mcp_text(manager), "LangChain": langchain_text(manager)}
        for surface, (text, tools) in texts.items():
            detail = f"{tools} tools; {how}" + (f"; {NATIVE}" if count == max(BOUNDS[surface]) else "")
            what = f"what a model reads of {count} skills, {surface}"
            found.append(Row(what, count_tokens(text), *BOUNDS[surface][count], "tokens", detail))
    rare = max(count_tokens(told_text(rare_skills(*script))) for script in RARE.items())
    detail = f"the most of {', '.join(RARE)}; {how}"
    return [*found, Row("what a model reads of 500 skills named in rare scripts", rare, 6_000, 5_900, "tokens", detail)]


def rare_skills(script: str, letters: str) -> list[SkillMetadata]:
    """Names and descriptions of letters without sense, as long as names can be to be told."""
    chosen = random.Random(script)
    words = ["".join(chosen.choices(letters, k=5)) for _ in range(1_000)]
    return [
        SkillMetadata(f"{words[number]}{number:03d}", " ".join(words[number : number + 40]), Path())
        for number in range(500)
    ]


def told_text(skills: list[SkillMetadata]) -> str:
    tools = tool_schemas(skills, (), {skill.name for skill in skills})
    return f"{server_instructions(skills)}\n{json.dumps([tool.to_anthropic() for tool in tools], ensure_ascii=False)}"


def make_skills(root: Path, count: int) -> Path:
    """Named and described at the length of real ones, each with a script."""
    names = [(doing, thing, place) for place in PLACES for thing in THINGS for doing in DOING][:count]
    for doing, thing, place in names:
        folder = root / f"{thing}-{place}-{doing}"
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\ndescription: {doing.capitalize()} each {thing} that comes by {place}, check "
            f"its figures against the template and write a short report. Use when the user mentions a {thing}, asks to "
            f"{doing} {place} files, or wants a table of what changed since last time.\n---\n\n# {folder.name}\n"
        )
        (folder / "scripts" / f"{doing}_{thing}.py").write_text(SCRIPT.format(title=f"{doing} a {thing}"))
    return root


def mcp_text(manager: SkillManager) -> tuple[str, int]:
    """What a client passes on: the server's instructions, and name, description and schema of each tool."""
    client = Client(create_server(manager), mode="legacy")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        tools = portal.call(client.list_tools).tools
        told = [tool.model_dump(include={"name", "description", "input_schema"}) for tool in tools]
        return f"{client.instructions}\n{json.dumps(told, ensure_ascii=False)}", len(tools)


def langchain_text(manager: SkillManager) -> tuple[str, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are too many for a tool each is what is measured
        tools = create_langchain_tools(manager)
    return json.dumps([convert_to_openai_tool(tool) for tool in tools], ensure_ascii=False), len(tools)


def counting() -> tuple[Callable[[str], int], str]:
    """By OpenAI's o200k vocabulary where it can be installed; else by length, and the row says so."""
    try:
        if not (VOCABULARY_FOLDER / "rs_bpe").exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--target", VOCABULARY_FOLDER, VOCABULARY], check=True)
        sys.path.append(str(VOCABULARY_FOLDER))
        from rs_bpe.bpe import openai
    except (ImportError, OSError, subprocess.CalledProcessError):
        return lambda text: round(len(text.encode()) / BYTES_OF_A_TOKEN), f"about: {BYTES_OF_A_TOKEN} bytes a token"
    count: Callable[[str], int] = openai.o200k_base().count
    return count, "o200k"
