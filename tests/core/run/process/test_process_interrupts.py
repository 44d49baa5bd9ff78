"""Signals that raise while a process is started: nothing of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.running import anybody_runs

from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.run.process.kernel import pidfds_work
from skillkit.core.values.runs import ProcessExit

INTERRUPTED_STARTS = """
import json, os, signal, sys
from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.run.process import survivors

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
request = ProcessRequest(("/bin/sleep", sys.argv[1]), "/", {}, b"", 20.0)
for step in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + step * 0.00005)
        run_process(request)
    except Interrupt:
        pass
has_children = True
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    has_children = False
turns = survivors._census._turns.qsize()
print(json.dumps([has_children, survivors.has_other_runs(), turns >= survivors.STARTS_AT_A_TIME]))
"""


def test_an_interrupt_during_a_start_leaves_no_process_and_takes_no_turn() -> None:
    length = f"61.{os.getpid()}"
    said = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_STARTS, length], stdout=subprocess.PIPE, timeout=60, check=True
    )
    assert json.loads(said.stdout) == [False, False, True]
    assert not anybody_runs(length)


def test_an_interrupt_right_after_a_start_comes_out_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read of it."""
    length, told, real = f"62.{os.getpid()}", list[ProcessExit](), os.pidfd_open
    assert pidfds_work()

    def interrupted(*_: int) -> int:
        monkeypatch.setattr(os, "pidfd_open", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "pidfd_open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_process(ProcessRequest(("/bin/sleep", length), "/", {}, b"", 20.0), on_stop=told.append)
    assert [(each.cancelled, each.stdout) for each in told] == [(True, b"")]
    assert not anybody_runs(length)
