"""The kinds of work in the mix: a script, how it is called, how it must end, and how often it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.soak.outside import NAME
from skillkit import (
    ApprovalDeclinedError,
    ScriptExecutionResult,
    ScriptNotFoundError,
    SkillKitError,
)

__all__ = ["ASKED", "HOSTED", "KINDS", "SKILL", "Kind", "Outcome", "write_skill"]

SKILL = "soak"
FLOOD_BYTES = 30_000_000
Outcome = ScriptExecutionResult | SkillKitError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of script; `{word}` in its call stands for a word that no other call has."""

    script: str
    text: str
    share: int
    is_right: Callable[[Outcome, str], bool]
    call: dict[str, Any] = field(default_factory=dict)
    is_asked: bool = False
    has_hosts: bool = False

    def call_with(self, word: str) -> dict[str, Any]:
        return {key: [word] if value == "{word}" else value for key, value in self.call.items()}


def ended(outcome: Outcome, code: int, stdout: str = "") -> bool:
    return (
        isinstance(outcome, ScriptExecutionResult)
        and (outcome.exit_code, outcome.stdout) == (code, stdout)
        and not outcome.timed_out
    )


def timed_out(outcome: Outcome, _: str) -> bool:
    return isinstance(outcome, ScriptExecutionResult) and outcome.timed_out and outcome.exit_code == 124


def crashed(outcome: Outcome, _: str) -> bool:
    return isinstance(outcome, ScriptExecutionResult) and outcome.signal == "SIGSEGV"


def flooded(outcome: Outcome, _: str) -> bool:
    return isinstance(outcome, ScriptExecutionResult) and outcome.stdout_truncated and outcome.success


def left(outcome: Outcome, word: str) -> bool:
    return ended(outcome, 0, word) and [file.size for file in getattr(outcome, "artifacts", ())] == [1000]


# A daemon that left its session and one that holds the pipes; neither may hold up the answer or live on.
FORK = """
import os, subprocess, sys, time
for _ in range(3):
    subprocess.Popen(["sleep", "300"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
print(sys.argv[1], end="", flush=True)
"""
# Imports what a spare has imported ahead; the same words from a warm sandbox as from a cold one.
WARM = "import argparse, json, re, sys\nprint(json.dumps(sys.argv[1:]), end='')\n"
PLAIN_HOST = f"""
import sys, urllib.request
print(urllib.request.urlopen("http://{NAME}/" + sys.argv[1], timeout=60).read().decode(), end="")
"""
TUNNEL = f"""
import os, socket, sys
s = socket.create_connection(("127.0.0.1", 3128), 60)
s.sendall(b"CONNECT {NAME}:443 HTTP/1.1\\r\\n\\r\\n")
assert b" 200 " in s.recv(1000)
sent = os.urandom(300_000)
got = b""
s.sendall(sent[:100_000])
for start in (100_000, 200_000):
    s.sendall(sent[start : start + 100_000])
    while len(got) < start:
        got += s.recv(1 << 16)
while len(got) < len(sent):
    got += s.recv(1 << 16)
assert got == sent
print(sys.argv[1], end="")
"""
OTHER_HOST = """
import sys, urllib.request
try:
    urllib.request.urlopen("http://other.example.com/", timeout=60)
except OSError as error:
    print(sys.argv[1], end="")
    sys.exit(3)
"""


def reached(outcome: Outcome, word: str) -> bool:
    hosts = getattr(outcome, "hosts", ())
    return ended(outcome, 0, word) and bool(hosts) and not any(use.refused for use in hosts)


def refused(outcome: Outcome, word: str) -> bool:
    hosts = getattr(outcome, "hosts", ())
    return ended(outcome, 3, word) and [bool(use.refused) for use in hosts] == [True]


KINDS = {
    "good": Kind("good.sh", 'printf %s "$1"', 30, lambda said, word: ended(said, 0, word), {"argv": "{word}"}),
    "JSON": Kind("read.sh", "cat", 15, lambda said, word: ended(said, 0, f'["{word}"]'), {"arguments": "{word}"}),
    "failing": Kind("fail.sh", 'printf %s "$1"; exit 3', 15, lambda said, w: ended(said, 3, w), {"argv": "{word}"}),
    "crashing": Kind("crash.sh", "kill -SEGV $$", 5, crashed),
    "hanging": Kind("hang.sh", "trap '' TERM INT; sleep 300; sleep 300", 5, timed_out, {"timeout": 1}),
    "flooding": Kind("flood.sh", f"head -c {FLOOD_BYTES} /dev/zero", 3, flooded, {"timeout": 120}),
    "forking": Kind("fork.py", FORK, 10, lambda said, word: ended(said, 0, word), {"argv": "{word}"}),
    "leaving": Kind(
        "leave.sh", 'head -c 1000 /dev/zero >"$SKILL_WORK_DIR/f"; printf %s "$1"', 3, left, {"argv": "{word}"}
    ),
    "warm": Kind("warm.py", WARM, 12, lambda said, word: ended(said, 0, f'["{word}"]'), {"argv": "{word}"}),
    "missing": Kind("", "", 4, lambda said, _: isinstance(said, ScriptNotFoundError)),
}
HOSTED = {
    "host: plain": Kind("plain.py", PLAIN_HOST, 4, reached, {"argv": "{word}", "timeout": 120}, has_hosts=True),
    "host: tunnel": Kind("tunnel.py", TUNNEL, 4, reached, {"argv": "{word}", "timeout": 120}, has_hosts=True),
    "host: refused": Kind("other.py", OTHER_HOST, 3, refused, {"argv": "{word}", "timeout": 120}, has_hosts=True),
}
# A process of its own answers these by the name of the script; the second kind is asked with the same words by many.
ASKED = {
    "asked: yes": Kind("yes.sh", 'printf %s "$1"', 5, lambda s, word: ended(s, 0, word), {"argv": "{word}"}, True),
    "asked together": Kind("yes-all.sh", "printf all", 3, lambda said, _: ended(said, 0, "all"), is_asked=True),
    "asked: no": Kind("no.sh", "echo never", 4, lambda said, _: isinstance(said, ApprovalDeclinedError), is_asked=True),
}


def write_skill(skills: Path) -> None:
    folder = skills / SKILL
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {SKILL}\ndescription: Scripts of every kind.\n---\n")
    for kind in (*KINDS.values(), *HOSTED.values(), *ASKED.values()):
        if kind.script:
            (folder / "scripts" / kind.script).write_text(kind.text)
