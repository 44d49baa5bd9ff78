"""Whether a higher pid still means a newer process, as looks at the newest one tell."""

from __future__ import annotations

import sys

import pytest

from skillkit.core.run.process import ProcessRequest, kernel, run_process, survivors
from skillkit.core.run.process.kernel import PidOrder


class Machine:
    """One that has used up its pids after eight seconds at the earliest; a look is due after two."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, round_seconds: float = 8.0) -> None:
        self.now, self.newest, self.looks = 100.0, 1_000, 0
        monkeypatch.setattr(kernel, "seconds_to_start_over", lambda: round_seconds)
        monkeypatch.setattr(kernel, "last_pid", self.look)
        monkeypatch.setattr("skillkit.core.run.process.kernel.time.monotonic", lambda: self.now)

    def look(self) -> int:
        self.looks += 1
        return self.newest

    def later(self, seconds: float, newest: int) -> None:
        self.now += seconds
        self.newest = newest


@pytest.mark.parametrize(
    ("steps", "is_kept"),
    [
        pytest.param([(3, 1_000)], True, id="none made"),
        pytest.param([(3, 5_000), (3, 30_000), (7, 30_001)], True, id="upwards"),
        pytest.param([(3, 5_000), (3, 4_999)], False, id="downwards"),
        pytest.param([(3, 30_000), (3, 400), (3, 30_000)], False, id="once round, seen"),
        pytest.param([(8, 5_000)], False, id="too long without a look"),
        pytest.param([(3, 0)], False, id="not told"),
    ],
)
def test_the_order_is_kept_while_the_newest_pid_grows_between_looks_that_are_close(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, int]], is_kept: bool
) -> None:
    machine, order = Machine(monkeypatch), PidOrder()
    before = order.losses()
    for seconds, newest in steps:
        machine.later(seconds, newest)
        order.losses()
    assert (order.losses() == before) is is_kept


def test_a_round_since_the_last_look_is_seen_although_the_newest_pid_is_above_that_of_an_old_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, order = Machine(monkeypatch), PidOrder()
    before = order.losses()
    machine.later(3, 32_000)
    assert order.newest() == (32_000, before)
    machine.later(0.1, 1_200)  # too early for the next look
    newest, losses = order.newest()
    assert (newest, losses != before) == (1_200, True)


def test_after_a_loss_the_order_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, order = Machine(monkeypatch), PidOrder()
    machine.later(60, 5_000)
    before = order.losses()
    machine.later(3, 5_001)
    assert order.losses() == before


def test_many_who_ask_look_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, order = Machine(monkeypatch), PidOrder()
    for _ in range(40):
        order.losses()
        machine.later(0.1, 1_000)
    assert machine.looks == 2


def test_where_nobody_knows_how_many_pids_there_are_the_order_is_never_known(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, round_seconds=0.0)
    order = PidOrder()
    assert len({order.losses() for _ in range(3)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("is_watched", [True, False])
def test_a_run_that_outlasts_a_round_of_pids_looks_at_no_stranger(
    monkeypatch: pytest.MonkeyPatch, is_watched: bool
) -> None:
    """Because it has looked at the newest pid meanwhile; without these looks it has to list them all."""
    listed: list[set[int]] = []

    def all_pids() -> set[int]:
        listed.append(kernel.all_pids())
        return listed[-1]

    monkeypatch.setattr(kernel, "seconds_to_start_over", lambda: 1.0)
    monkeypatch.setattr(survivors, "all_pids", all_pids)
    monkeypatch.setattr(survivors, "PROBE_LIMIT", 1 << 22)  # others may start thousands meanwhile
    if not is_watched:
        monkeypatch.setattr(PidOrder, "look_seconds", staticmethod(lambda: 0.0))
    for _ in range(6):  # the pids may start over, a busy machine miss a look, a spare of another test look too
        listed.clear()
        ended = run_process(ProcessRequest(("/bin/sleep", "1.3"), "/", {}, b"", 10.0))
        assert (ended.status, ended.leftovers_killed, ended.kill) == (0, 0, "best-effort")
        if (listed == []) is is_watched:
            break
    assert (listed == []) is is_watched


def test_a_machine_that_does_not_tell_its_newest_pid_is_searched_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(survivors, "last_pid", lambda: 0)
    monkeypatch.setattr(kernel, "last_pid", lambda: 0)
    text = "import os, sys, time\nif os.fork() == 0:\n os.setsid()\n os.closerange(0, 1024)\n time.sleep(60)"
    ended = run_process(ProcessRequest((sys.executable, "-c", text), "/", {}, b"", 10.0))
    assert (ended.status, ended.leftovers_killed) == (0, 1)
