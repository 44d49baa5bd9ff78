"""Every command that README and docs show is run, page by page, as a reader would run it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
import yaml
from support.doc_pages import LANGUAGES, ROOT, Block, blocks_of, commands_of, is_as_shown, pages
from support.doc_sessions import Reader
from support.model_servers import Said, chat_server, model_server

from skillkit.cli.main import cli

RUN = ("bash", "console", "python")
NOT_RUN_AT_MOST = 6
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def blocks_on(page: str) -> list[Block]:
    return list(blocks_of((ROOT / page).read_text(encoding="utf-8")))


EVERY_BLOCK = [(page, block) for page in pages() for block in blocks_on(page)]
PAGES_WITH_COMMANDS = [
    page for page in pages() if any(block.language in RUN and not block.not_run for block in blocks_on(page))
]


@pytest.fixture
def reader() -> Iterator[Reader]:
    # A short path: output is wrapped where a reader's would be.
    with (
        tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder,
        chat_server(Said("A cat, in English.")) as chats,
        model_server() as tools,
        Reader(Path(folder).resolve(), chats.address, tools.address) as someone,
    ):
        tools.wanted = "stats"
        yield someone


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_the_page_can_be_followed_to_the_letter(page: str, reader: Reader) -> None:
    for block in blocks_on(page):
        if block.not_run or not (block.language in RUN or block.title):
            continue
        reader.follow(with_what_can_run(block))
    reader.wait_for_the_rest()


def with_what_can_run(block: Block) -> Block:
    """Installing and building are looked at, not done: the tests run in what they made."""
    if block.language not in ("bash", "console") or block.title:
        return block
    lines = block.text.splitlines()
    return replace(block, text="\n".join(line for line in lines if not is_looked_at(line.removeprefix("$ "))) + "\n")


def is_looked_at(line: str) -> bool:
    words = shlex.split(line, comments=True) if re.match(r"(pip|make) ", line) else []
    if words[:2] == ["pip", "install"]:
        require_installable(words[2:])
    elif words[:1] == ["make"]:
        subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    return bool(words)


def require_installable(words: list[str]) -> None:
    named = [re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?", word) for word in words if not word.startswith("-")]
    own = [match for match in named if match is not None and match[1] == PROJECT["name"]]
    assert own, f"pip install {words} installs something else"
    assert all(set(match[2].split(",")) <= set(PROJECT["optional-dependencies"]) for match in own if match[2])


def test_what_is_not_run_says_why_and_is_little() -> None:
    elsewhere = {f"run by {path.relative_to(ROOT)}" for path in ROOT.glob("tests/*/test_*.py")}
    not_run = [(page, block) for page, block in EVERY_BLOCK if block.not_run and block.not_run not in elsewhere]
    reasons = [f"{page}:{block.line}: {block.not_run}" for page, block in not_run]
    assert all(len(reason.rpartition(": ")[2]) > len("yes") for reason in reasons)
    assert len(reasons) <= NOT_RUN_AT_MOST, "\n".join(reasons)


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page: str) -> None:
    for block in blocks_on(page):
        assert block.language in LANGUAGES, f"{page}:{block.line}: {block.language!r}"
        if block.language == "text":
            assert not re.search(r"^\$ |^skillkit ", block.text, re.MULTILINE), f"{page}:{block.line} has commands"


@pytest.mark.parametrize("page", pages())
def test_commands_stand_in_fences(page: str) -> None:
    """An indented one would not be run."""
    text = re.sub(r"^( *)```.*?^\1```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    assert not re.findall(r"^(?: {4}|\t)(?:\$ )?(?:skillkit|pip|python3?|claude|make|export) .*$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "block"),
    [pytest.param(page, block, id=f"{page}:{block.line}") for page, block in EVERY_BLOCK if block.language == "json"],
)
def test_json_is_json_and_names_commands_that_exist(page: str, block: Block) -> None:
    given = json.loads(block.text)
    for server in (given.get("mcpServers") or given.get("servers") or {}).values() if isinstance(given, dict) else ():
        if server.get("command") == "skillkit":
            require_command(server["args"], page)


def require_command(words: list[str], page: str) -> None:
    """The words parse as a command with its options; nothing is run."""
    context = click.Context(cli, info_name="skillkit")
    _, command, rest = cli.resolve_command(context, list(words))
    assert command is not None, f"{page}: {words}"
    existing = [str(ROOT) if word.startswith(("/", "$")) else word for word in rest]
    command.make_context(words[0], existing, parent=context)


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page}:{block.line}")
        for page, block in EVERY_BLOCK
        if block.language in ("toml", "yaml", "xml")
    ],
)
def test_data_is_what_it_says(page: str, block: Block) -> None:
    if block.language == "toml":
        assert tomllib.loads(block.text), page
    elif block.language == "yaml":
        assert yaml.safe_load(block.text), page
    else:
        assert ET.fromstring(block.text) is not None, page


class TestTheComparison:
    """It must notice what a page shows wrongly."""

    @pytest.mark.parametrize(
        ("shown", "real"),
        [
            ("one\n...\nthree", "one\ntwo\nthree"),
            ("hash 685465d6846f8228.", "hash 000011112222aaaa."),
            ("11-16 01:54:10  refused", "12-01 23:00:59  refused"),
            ("exit 1 after 0.019 s", "exit 1 after 1.204 s"),
            ("long te…", "long text and more"),
            ("Walls  │ It cannot\n       │ read.", "Walls  │ It\n       │ cannot read."),
        ],
    )
    def test_accepts_what_may_vary(self, shown: str, real: str) -> None:
        assert is_as_shown(shown, real)

    @pytest.mark.parametrize(
        ("shown", "real"),
        [
            ("one\nthree", "one\ntwo\nthree"),
            ("one", "one two"),
            ("exit 1 after 0.019 s", "exit 2 after 0.019 s"),
            ("8 skills", "7 skills"),
            ("It cannot read.", "It can read."),
        ],
    )
    def test_notices_what_may_not(self, shown: str, real: str) -> None:
        assert not is_as_shown(shown, real)

    def test_commands_and_their_output_are_told_apart(self) -> None:
        first, second = commands_of("$ cat <<END\n> a\n> END\na\n\n$ true\n")
        assert (first.text, first.output, second.text, second.output) == ("cat <<END\na\nEND", "a", "true", None)
