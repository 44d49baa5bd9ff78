"""A reader who follows a page to the letter: a home, a folder to work in, a shell on a terminal, and a Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pexpect

import skillkit
from skillkit.core.record import AuditLog
from skillkit.core.store.state import StateStore
from support.doc_pages import QUESTION, ROOT, Block, commands_of, is_as_shown
from support.skill_folders import skill_folder

__all__ = ["Reader"]

COLUMNS, ROWS = 88, 200
NOT_KEPT = ("COLUMNS", "GIT_", "LINES", "SKILLKIT_", "XDG_")
PATIENCE_SECONDS = 60
QUIET_SECONDS = 3
ENDINGS = {"Ctrl-C": "\x03", "Ctrl-D": "\x04"}
# Each line of the pipe names a file with a command; what it leaves (folder, variables) stays for the next.
SHELL = 'trap : INT; exec 9<"$0"; while IFS= read -r file <&9; do . "$file" 9<&-; printf "\\n\\001%s\\001" "$?"; done'
ENDED = "\x01(\\d+)\x01"
WAITING = re.compile(r"(?:\x1b\[\d*m)*…(?:\x1b\[\d*m)*\r\x1b\[K|\r\x1b\[K  [\d,]+ kB fetched(?=\r\x1b\[K)")
CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>78]|\r")
PYTHON = """
import json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
names = {"__name__": "__main__"}
for line in sys.stdin:
    name, text = json.loads(line)
    try:
        exec(compile(text, name, "exec"), names)
        told = ""
    except BaseException:
        told = traceback.format_exc()
    print(json.dumps(told), file=answers, flush=True)
"""
# Names that pages use for what is the reader's own.
GIVEN = """
from skillkit.testing import ScriptedApprover
my_approver = ScriptedApprover(*["yes_once"] * 9)
def your_person(question):
    return "yes_once"
"""

NOTES = """#!/usr/bin/env python3
import os
import subprocess
import sys
import urllib.request

with open(os.path.expanduser("~/notes.txt"), "a") as notes:
    notes.write(sys.argv[1])
urllib.request.urlopen("https://example.com")
subprocess.run(["git", "commit", "-am", sys.argv[1]], check=True)
"""


def as_text(seen: str) -> str:
    """A line that is written over is a line of its own, but for the dots of who thinks and the sizes of what comes."""
    return CONTROLS.sub("", WAITING.sub("", seen).replace("\r\x1b[K", "\n")).strip()


class Reader:
    """Starts with the example skills, `notes`, `diary` and a table in `~/work`."""

    def __init__(self, folder: Path, chat_address: str = "", tools_address: str = "") -> None:
        self.home = folder / "me"
        self.work = self.home / "work"
        shutil.copytree(ROOT / "examples" / "skills", self.work / "skills")
        shutil.copytree(ROOT / "examples" / "agents", self.work / "examples" / "agents")
        skill_folder(
            self.work / "skills",
            "notes",
            frontmatter="name: notes\ndescription: Keeps short notes.",
            files={"scripts/add.py": NOTES},
        )
        skill_folder(
            self.work / "skills",
            "diary",
            frontmatter="name: diary\ndescription: Keeps a diary in step.",
            files={"scripts/sync.sh": f"cat {self.home}/diary.txt\n"},
        )
        (self.home / "diary.txt").write_text("Dear diary\n", encoding="utf-8")
        shutil.copy(self.work / "skills/csv-report/assets/sample.csv", self.work / "sales.csv")
        # What is killed at the end leaves its work folder there.
        (folder / "tmp").mkdir()
        own = {"OPENAI_BASE_URL": chat_address, "TMPDIR": str(folder / "tmp")}
        self.environment = self.built_environment(folder / "bin") | own
        self.for_python = {"OPENAI_BASE_URL": f"{tools_address}/v1"}
        self.pipe = folder / "commands"
        os.mkfifo(self.pipe)
        self.shell: Any = pexpect.spawn(
            "bash",
            ["--norc", "-c", SHELL, str(self.pipe)],
            cwd=str(self.work),
            env=self.environment,
            dimensions=(ROWS, COLUMNS),
            echo=False,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
        )
        self.orders = self.pipe.open("w")
        self.folder = folder
        self.python: subprocess.Popen[str] | None = None
        self.waiting: list[tuple[Block, subprocess.Popen[str]]] = []

    def built_environment(self, programs: Path) -> dict[str, str]:
        programs.mkdir()
        command = programs / "skillkit"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m skillkit "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_KEPT)}
        return kept | {
            "HOME": str(self.home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(skillkit.__file__).parents[1]),
            "TERM": "xterm-256color",
            "NO_COLOR": "1",
            "OPENAI_API_KEY": "none",
        }

    @property
    def here(self) -> Path:
        """Where the reader's shell is now: a page that says `cd` means all that follows."""
        return Path(f"/proc/{self.shell.pid}/cwd").resolve()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.orders.close()
        self.shell.close(force=True)
        for program in filter(None, (self.python, *(each for _, each in self.waiting))):
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.communicate()

    def follow(self, block: Block) -> None:
        if block.title:
            self.write(block)
        elif block.language == "console":
            self.type_in(block)
        elif block.language == "bash":
            told, code = self.run(self.filled_in(block.text, block), block.keys)
            assert code == 0, f"line {block.line}: exit {code}\n{told}"
        elif block.language == "python":
            self.execute(block)

    def write(self, block: Block) -> None:
        file = Path(str(block.title).replace("~", str(self.home), 1))
        file = self.here / file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text.replace("/home/me", str(self.home)), encoding="utf-8")

    def type_in(self, block: Block) -> None:
        keys = block.keys
        for command in commands_of(self.filled_in(block.text, block)):
            words = command.text
            if block.in_background:
                self.start(block, ["bash", "-c", words])
                continue
            told, code = self.run(words, keys, ENDINGS.get(block.ends_with, ""))
            keys = keys[told.count(QUESTION) :]
            is_fine = code == 0 or command.may_fail or block.ends_with == "Ctrl-C"
            assert is_fine, f"line {block.line}: {command.text}: exit {code}\n{told}"
            if command.output is not None:
                if command.ends_with_question:
                    told = told[: told.rindex(QUESTION)] + command.output.strip().splitlines()[-1]
                assert is_as_shown(command.output, told), f"line {block.line}: {command.text}\n{told}"

    def run(self, words: str, keys: str = "", ending: str = "") -> tuple[str, int]:
        """What appears on the terminal, and the exit code; a question that no key is for is answered with no."""
        # What ends by a key is given the time to begin.
        told, pressed, patience = "", ending, QUIET_SECONDS if ending else PATIENCE_SECONDS
        file = self.folder / "command.sh"
        file.write_text(f"{words}\n", encoding="utf-8")
        self.orders.write(f"{file}\n")
        self.orders.flush()
        while True:
            seen = self.shell.expect([ENDED, re.escape(QUESTION), pexpect.TIMEOUT], timeout=patience)
            if seen == 0:
                return as_text(told + self.shell.before), int(self.shell.match[1])
            if seen == 1:
                told += self.shell.before + QUESTION
                pressed, keys, patience = keys[:1] or "3", keys[1:], 1
                time.sleep(0.3)  # as long as a person needs at least: keys typed ahead are dropped
            assert pressed, f"{words} does not end:\n{self.shell.before}"
            self.shell.send(pressed)

    def execute(self, block: Block) -> None:
        text = self.filled_in(block.text, block)
        if block.in_background:
            self.start(block, [sys.executable, "-c", GIVEN + text])
            return
        if self.python is None:
            self.python = self.started([sys.executable, "-c", PYTHON])
            assert self.told_by_python("the reader's own", GIVEN) == ""
        failed = self.failed_runs()
        problem = self.told_by_python(f"line {block.line}", text)
        assert problem == "", f"line {block.line}: {problem}"
        assert self.failed_runs() == failed, f"line {block.line}: {self.failed_runs()}"

    def failed_runs(self) -> list[str]:
        """Code need not look at a result; the record does."""
        store = StateStore(self.home / ".local/state/skillkit")
        try:
            return [str(each.fields) for each in AuditLog(store).records() if each.fields.get("exit_code")]
        finally:
            store.close()

    def told_by_python(self, name: str, text: str) -> str:
        assert self.python is not None
        assert self.python.stdin is not None
        assert self.python.stdout is not None
        self.python.stdin.write(json.dumps([name, text]) + "\n")
        self.python.stdin.flush()
        return str(json.loads(self.python.stdout.readline()))

    def start(self, block: Block, words: list[str]) -> None:
        self.waiting.append((block, self.started(words)))

    def started(self, words: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words,
            cwd=self.here,
            env=self.environment | self.for_python,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            start_new_session=True,
        )

    def filled_in(self, text: str, block: Block) -> str:
        """What the page writes in place of a value that only exists now."""
        for name, command in block.where.items():
            text = text.replace(name, self.value_of(command))
        return text.replace("/home/me", str(self.home))

    def value_of(self, command: str) -> str:
        until, program = time.monotonic() + PATIENCE_SECONDS, ["bash", "-c", command]
        while True:
            told = subprocess.run(
                program, cwd=self.here, env=self.environment, capture_output=True, text=True, check=False
            )
            if value := told.stdout.strip():
                return value
            assert time.monotonic() < until, f"{command} gives nothing: {told.stderr}"
            time.sleep(0.1)

    def wait_for_the_rest(self) -> None:
        for block, program in self.waiting:
            told, _ = program.communicate(timeout=PATIENCE_SECONDS)
            assert program.returncode == 0, f"line {block.line}: exit {program.returncode}\n{told}"
