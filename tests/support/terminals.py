"""A real terminal with a program on it: tests type, look and resize as a person does."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import skillkit
from skillkit.core.values.questions import (
    OPTIONS,
    FileChange,
    OptionRequest,
    Prompt,
    PromptCommand,
    ReachMark,
    RiskFlag,
)

__all__ = [
    "READY",
    "Asking",
    "Terminal",
    "as_line",
    "asker_code",
    "question",
    "script_prompt",
    "shown",
    "without_controls",
]

READY = "Press 1, 2 or 3."
# Everything our own code may send beside text: colours, marked pastes, wrapping, the second screen, clearing.
OWN_CONTROLS = re.compile(
    r"\x1b[78]|\x1b\[\d+A|\x1b\[(?:0|1|2|7|31|32|33|36)m|\x1b\[\?(?:7|25|1049|2004)[hl]|\x1b\[[KHJ]|\x1b\[\d+;1H|\r"
)

# Takes the terminal, reads a request from its stdin (a pipe), asks, prints what came of it (into a pipe) and stays
# until its stdin is closed: a terminal whose session leader ends forgets its modes.
ASKER = """
import dataclasses, json, os, signal, sys, threading
if sys.argv[1]:
    os.open(sys.argv[1], os.O_RDWR)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from skillkit.approvers.terminal import TerminalApprover
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.values.questions import Option, OptionRequest, Tick

def asked(line):
    fields = json.loads(line)
    fields["grants"] = tuple(Tick(**each) for each in fields["grants"])
    request = OptionRequest(**{**fields, "options": tuple(Option(**each) for each in fields["options"])})
    try:
        told = dataclasses.asdict(TerminalApprover().ask(request, cancel))
    except ApprovalUnavailableError as error:
        told = {"unavailable": str(error)}
    except KeyboardInterrupt:
        told = {"interrupted": True}
    print(json.dumps(told), flush=True)

def listen():
    order = sys.stdin.readline().strip()
    if order:
        orders[order]()

cancel = threading.Event()
orders = {"cancel": cancel.set}
PREPARE
line = sys.stdin.readline()
listener = threading.Thread(target=listen)
listener.start()
ASK
listener.join()
"""


def asker_code(prepare: str = "", ask: str = "asked(line)") -> str:
    return ASKER.replace("PREPARE", prepare).replace("ASK", ask)


def as_line(request: OptionRequest) -> str:
    return json.dumps(dataclasses.asdict(request))


def script_prompt(**changes: Any) -> Prompt:
    prompt = Prompt(
        skill="pdf-tools",
        origin="/home/ana/skills/pdf-tools",
        reasons=("Policy asks a person before a skill's first run.",),
        risks=(RiskFlag("network", "opens a connection", "scripts/extract.py", 2),),
        changes=(FileChange("changed", "scripts/extract.py", "@@ -1 +1 @@\n-old words\n+new words\n", added=1),),
        commands=(
            PromptCommand("scripts/extract.py", ("--pages", "1-3"), "", "import os\nimport socket\n", "python3"),
        ),
        walls=("No network.",),
        digest="d1" * 32,
        marks=(ReachMark("network", "no network", "closed"), ReachMark("home", "own home", "open")),
    )
    return dataclasses.replace(prompt, **changes)


def question(prompt: Prompt | None = None, **fields: Any) -> OptionRequest:
    shown_prompt = script_prompt() if prompt is None else prompt
    request = OptionRequest("request-1", "Run it?", "", OPTIONS, shown_prompt.to_context())
    return dataclasses.replace(request, **fields)


def without_controls(text: str) -> str:
    """What a person reads: the text without what our own code sends to arrange it."""
    return OWN_CONTROLS.sub("", text)


def shown(text: str) -> list[str]:
    """Its lines; one that is written over is a line of its own."""
    return without_controls(text.replace("\r\x1b[K", "\n")).split("\n")


class Terminal:
    """A pseudo-terminal and the session that a program leads on it; stdin, stdout and stderr are pipes."""

    def __init__(self, *, columns: int = 80, rows: int = 60) -> None:
        self._ours, self._theirs = pty.openpty()
        self.path = os.ttyname(self._theirs)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "PYTHONPATH": str(Path(skillkit.__file__).parents[1]),
            "TERM": "xterm-256color",
        }
        self.text = ""
        self._programs: list[subprocess.Popen[str]] = []
        self.resize(columns, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
        self.close()

    def close(self) -> None:
        """As if its window were closed."""
        for descriptor in (self._ours, self._theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self._ours = self._theirs = -1

    def start(self, code: str, *, with_terminal: bool = True) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", code, self.path if with_terminal else ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.environment,
        )
        self._programs.append(program)
        return program

    def ask(
        self,
        request: OptionRequest,
        *,
        prepare: str = "",
        ask: str = "asked(line)",
        with_terminal: bool = True,
        ready: str = READY,
    ) -> Asking:
        """Starts a program that asks; returns once the question takes answers, or at once with `ready=""`."""
        asking = Asking(self.start(asker_code(prepare, ask), with_terminal=with_terminal))
        asking.tell(as_line(request))
        if ready:
            self.wait_for(ready)
        return asking

    def send(self, keys: str | bytes) -> None:
        os.write(self._ours, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self) -> list[Any]:
        """As they are now; asked through our end, which sees the other end's."""
        return termios.tcgetattr(self._ours)

    def waiting_bytes(self) -> int:
        """How much has been typed that nobody has read."""
        (count,) = struct.unpack("i", fcntl.ioctl(self._theirs, termios.FIONREAD, b"\0" * 4))
        return int(count)

    def read(self, seconds: float) -> str:
        """What appears within this time, added to `text`."""
        new = b""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and select.select([self._ours], [], [], left)[0]:
            new += os.read(self._ours, 65536)
        self.text += new.decode("utf-8", "replace")
        return new.decode("utf-8", "replace")

    def press(self, key: str, asking: Asking) -> dict[str, Any]:
        """The outcome; pressed again while nothing happens, as on a machine that is too busy to tell keys apart."""
        for _ in range(10):
            self.send(key)
            if asking.has_answer(2):
                break
        return asking.outcome()

    def wait_for_bytes(self, ending: str, seconds: float = 30) -> None:
        """Until that is the last thing the terminal was sent."""
        until = time.monotonic() + seconds
        while not self.text.endswith(ending):
            assert time.monotonic() < until, f"{ending!r} never came last: {self.text[-200:]!r}"
            self.read(0.05)

    def wait_for(self, words: str, *, times: int = 1, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while without_controls(self.text).count(words) < times:
            assert time.monotonic() < until, f"{words!r} never came {times} times:\n{self.text}"
            self.read(0.05)


class Asking:
    """The program that asks, seen from its pipes."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self.program = program

    def tell(self, line: str) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(f"{line}\n")
        self.program.stdin.flush()

    def outcome(self, seconds: float = 30) -> dict[str, Any]:
        assert self.program.stdout is not None
        assert select.select([self.program.stdout], [], [], seconds)[0], "no outcome"
        line = self.program.stdout.readline()
        assert line, self.program.communicate()[1]
        return dict(json.loads(line))

    def has_answer(self, seconds: float) -> bool:
        """Whether it comes within this time; it is left to be read."""
        assert self.program.stdout is not None
        return bool(select.select([self.program.stdout], [], [], seconds)[0])
