"""The page of a host in the docs -> its commands and files, done as it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.doc_pages import ROOT, Block, blocks_of, commands_of
from support.hosts.world import SCRIPT_WORD, SKILL, HostWorld

__all__ = ["HOST_PAGES", "RUN_HERE", "add_as_the_page_says", "blocks_of_page", "follow", "run"]

HOST_PAGES = ROOT / "docs/how-to/hosts"
ADDING = "## Add skillkit\n"
RUN_HERE = "run by tests/hosts/test_pages.py"
HERE = {
    "Use csv-report on sales.csv": "Follow plan-greet.",
    "csv-report": SKILL,
    "scripts/report.py": "scripts/greet.py",
    "--sample": f"{SCRIPT_WORD}-here",
}


def blocks_of_page(name: str, heading: str = "") -> list[Block]:
    """Those under this heading, up to the next one of its kind; all without one."""
    text = (HOST_PAGES / f"{name}.md").read_text(encoding="utf-8")
    if heading:
        assert heading in text, f"{name}.md has no {heading.strip()!r}"
        text = re.split(r"^## ", text.partition(heading)[2], maxsplit=1, flags=re.MULTILINE)[0]
    return list(blocks_of(text))


def add_as_the_page_says(name: str, world: HostWorld, environment: Mapping[str, str]) -> None:
    """All that stands under the heading: commands, and files by their title."""
    for block in blocks_of_page(name, ADDING):
        assert "skillkit" in block.text or "mcp" in block.text
        follow(block, world, environment)


def follow(block: Block, world: HostWorld, environment: Mapping[str, str]) -> list[str]:
    """What its commands said; a block with a title is the file of that name."""
    if block.title:
        write(block, world)
        return []
    assert block.language == "console", f"{block.language} without a title"
    return [run(command.text, world, environment) for command in commands_of(block.text)]


def write(block: Block, world: HostWorld) -> None:
    file = Path(block.title.replace("~", str(world.home), 1))
    file = world.project / file
    file.parent.mkdir(parents=True, exist_ok=True)
    # Settings that are there stay there, but for the table that this one is; a JSON file is whole by itself.
    before = file.read_text(encoding="utf-8") if file.exists() and file.suffix != ".json" else ""
    table = re.escape(block.text.splitlines()[0])
    before = (
        re.sub(rf"^{table}\n(?:(?!\[).*\n?)*", "", before, flags=re.MULTILINE) if table.startswith(r"\[") else before
    )
    file.write_text(before + as_here(block.text, world), encoding="utf-8")
    world.transcript.write(f"WROTE {block.title}", block.text.splitlines())


def run(words: str, world: HostWorld, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", as_here(words, world)],
        cwd=world.project,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    told = done.stdout + done.stderr
    world.transcript.write(f"$ {words} (exit {done.returncode})", told.splitlines())
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{told}"
    return told


def as_here(text: str, world: HostWorld) -> str:
    """A page names the reader's folders, an example's skill and a wish in place of these."""
    text = text.replace("/home/you/project", str(world.project)).replace("/home/you", str(world.home))
    for words, ours in HERE.items():
        text = text.replace(words, ours)
    return text
