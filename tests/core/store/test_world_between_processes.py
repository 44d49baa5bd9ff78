"""Many askers and many who answer, in processes that may die at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.asking import in_threads, only_pending, request_named, started_program
from support.running import wait_for

from skillkit import ApprovalUnavailableError, RequestClosedError, World
from skillkit.core.store.request_rows import LEASE_SECONDS

pytestmark = [
    pytest.mark.usefixtures("each_database"),
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL and fork"),
]

# Each thread asks so many questions in turn and prints their ids, the options and who chose them.
ASK = """
import os, sys, threading
from skillkit import World
world = World(sys.argv[1])
def ask():
    for _ in range(int(sys.argv[3])):
        got = world.ask("T?", "", ["a", "b", "c"], expires_in=90)
        os.write(1, f"{got.request_id} {got.option_id} {got.channel}\\n".encode())
threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

# Answers whatever waits until the file `stop` appears; prints the ids whose first answer was its own.
ANSWER = """
import os, random, sys, time
from skillkit import RequestClosedError, World
world, name, stop = World(sys.argv[1]), sys.argv[2], sys.argv[3]
while not os.path.exists(stop):
    for request in world.pending():
        option = random.choice(request.options).id
        try:
            world.answer(request.id, option, name)
        except RequestClosedError:
            continue
        print(request.id, option, name, flush=True)
    time.sleep(0.01)
"""

# Each thread asks the same question and leaves a file named by what it got.
ASK_THE_SAME = """
import os, sys, threading
from support.asking import request_named
from skillkit import World
world, folder, process = World(sys.argv[1]), sys.argv[2], sys.argv[3]
def ask(number):
    got = world.ask_request(request_named("run"), expires_in=280, single_use=("yes_once",))
    open(f"{folder}/{got.option_id}-{process}-{number}", "x").close()
threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

FORK = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
from skillkit import World
world = World(sys.argv[1])
def ask(title):
    got = world.ask(title, "", ["a"], expires_in=60)
    os.write(1, f"{title} {got.option_id}\\n".encode())
thread = threading.Thread(target=ask, args=("parent",))
thread.start()
while not world.pending(): time.sleep(0.01)
child = os.fork()
if child == 0:
    ask("child")
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""

WAIT_IDLY = """
import sys, threading, time
from skillkit import ApprovalUnavailableError, World
world, cancel = World(sys.argv[1]), threading.Event()
def ask():
    try:
        world.ask("T?", "", ["a"], expires_in=60, cancel=cancel)
    except ApprovalUnavailableError:
        pass
threads = [threading.Thread(target=ask) for _ in range(50)]
for thread in threads: thread.start()
while len(world.pending()) < 50: time.sleep(0.05)
before = time.process_time()
time.sleep(2)
print(time.process_time() - before)
cancel.set()
for thread in threads: thread.join()
print(len(world.pending()))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "state") as world:
        yield world


@contextmanager
def ended_at_last(*processes: subprocess.Popen[str]) -> Iterator[tuple[subprocess.Popen[str], ...]]:
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    output, errors = process.communicate(timeout=100)
    assert errors == ""
    return output.splitlines()


def test_a_hundred_askers_and_four_who_answer_every_request_is_answered_exactly_once(
    world: World, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    with ended_at_last(
        *(started_program(ANSWER, world.folder, f"answerer{number}", stop) for number in range(4)),
        *(started_program(ASK, world.folder, 20, 1) for _ in range(5)),
    ) as processes:
        received = [line for process in processes[4:] for line in lines_of(process)]
        stop.touch()
        given = [line for process in processes[:4] for line in lines_of(process)]
    assert len(received) == 100
    assert Counter(received) == Counter(given)
    assert len({line.split()[0] for line in given}) == 100
    assert world.pending() == []
    outcomes = Counter(past.outcome for past in world.history(1000))
    outcomes.pop("abandoned", None)  # an asker whom a busy machine kept from its turn for too long asks again
    assert outcomes == {"answered": 100}


def test_whoever_is_killed_leaves_the_others_answered_and_nothing_stuck(world: World, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    chance = random.Random()
    with ended_at_last(
        *(started_program(ASK, world.folder, 10, 6) for _ in range(6)),
        *(started_program(ANSWER, world.folder, f"answerer{number}", stop) for number in range(4)),
    ) as processes:
        askers, answerers = processes[:6], processes[6:]
        assert wait_for(lambda: world.history(1), 60)
        for victim in [*chance.sample(askers, 3), *chance.sample(answerers, 3)]:
            time.sleep(chance.random() * 0.1)
            victim.kill()
        # Whoever was not killed has all its answers, though three of those who answer are gone.
        lived = [asker for asker in askers if asker.wait(100) == 0]
        assert len(lived) >= 3
        assert [len(lines_of(asker)) for asker in lived] == [60] * len(lived)
        assert wait_for(lambda: world.pending() == [], 30)
        stop.touch()
    with in_threads(1, lambda: world.ask("Still there?", "", ["yes"])) as (asking,):
        world.answer(only_pending(world).id, "yes", "test")
        assert asking.result(30).option_id == "yes"
    with world._store.local.connection() as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("select count(*) from requests where state = 'pending'").fetchone() == (0,)


def test_the_question_of_a_killed_asker_goes_away_and_its_answer_runs_nothing(world: World) -> None:
    with ended_at_last(started_program(ASK_THE_SAME, world.folder, world.folder, "x")) as (asker,):
        only_pending(world)
        time.sleep(LEASE_SECONDS + 1)
        assert [request.id for request in world.pending()] == ["run"], "a living asker keeps its question"
        asker.kill()
        assert wait_for(lambda: world.pending() == [], LEASE_SECONDS + 10)
        with pytest.raises(RequestClosedError, match="has lost whoever asked"):
            world.answer("run", "yes_once", "web")
    with pytest.raises(ApprovalUnavailableError, match="nobody answered in time"):
        world.ask_request(request_named("run"), expires_in=0.3)


def askers(world: World) -> int:
    """Those who wait for an open question; who comes late to it asks another one."""
    waiting = "select count(*) from askers join requests on seq = request where state = 'pending'"
    with world._store.connection() as connection:
        return int(connection.execute(waiting).fetchone()[0])


def test_an_answer_that_its_killed_asker_never_took_is_not_left_for_the_next_one(world: World) -> None:
    with ended_at_last(started_program(ASK_THE_SAME, world.folder, world.folder, "x")) as (asker,):
        # One that is stopped while it joins would hold the file.
        assert wait_for(lambda: askers(world) == 5, 60)
        asker.send_signal(signal.SIGSTOP)
        world.answer("run", "yes_once", "web")
        asker.kill()
        asker.wait()
    with pytest.raises(ApprovalUnavailableError, match="nobody answered in time"):
        world.ask_request(request_named("run"), expires_in=0.3, single_use=("yes_once",))


def test_a_stopped_asker_that_goes_on_is_there_again(world: World) -> None:
    with ended_at_last(started_program(ASK, world.folder, 1, 1)) as (asker,):
        request = only_pending(world)
        asker.send_signal(signal.SIGSTOP)
        assert wait_for(lambda: world.pending() == [], LEASE_SECONDS + 10)
        with pytest.raises(RequestClosedError, match="lost whoever asked"):
            world.answer(request.id, "a", "web")
        asker.send_signal(signal.SIGCONT)
        assert only_pending(world).id == request.id
        world.answer(request.id, "a", "web")
        assert lines_of(asker) == [f"{request.id} a web"]


def test_twenty_joined_askers_of_four_processes_take_an_answer_for_one_run_one_at_a_time(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "got"
    folder.mkdir()

    def got() -> Counter[str]:
        return Counter(path.name.partition("-")[0] for path in folder.iterdir())

    with ended_at_last(*(started_program(ASK_THE_SAME, world.folder, folder, number) for number in range(4))) as all_:
        for taken in range(4):
            assert wait_for(lambda taken=taken: askers(world) == 20 - taken, 60)  # type: ignore[misc]
            assert wait_for(lambda taken=taken: got() == ({"yes_once": taken} if taken else {}), 60)  # type: ignore[misc]
            world.answer(only_pending(world).id, "yes_once", "web")
        assert wait_for(lambda: askers(world) == 16, 60)
        world.answer(only_pending(world).id, "no", "web")
        assert [lines_of(process) for process in all_] == [[]] * 4
    assert got() == {"yes_once": 4, "no": 16}
    assert Counter(past.outcome for past in world.history()) == {"answered": 5}


def test_a_child_that_was_forked_while_its_parent_waits_asks_for_itself(world: World) -> None:
    with ended_at_last(started_program(FORK, world.folder)) as (process,):
        assert wait_for(lambda: {request.title for request in world.pending()} == {"parent", "child"}, 30)
        for request in world.pending():
            world.answer(request.id, "a", "web")
        assert sorted(lines_of(process)) == ["child a", "parent a"]


@pytest.mark.skipif(sys.platform == "win32", reason="counts processor time as POSIX does")
def test_fifty_who_wait_cost_next_to_no_processor_time(world: World) -> None:
    with ended_at_last(started_program(WAIT_IDLY, world.folder)) as (process,):
        used, left = lines_of(process)
    assert float(used) < 0.4
    assert left == "0"


OPEN_AND_STAY = """
import sys, time
from skillkit import World
from support.asking import request_named
World(sys.argv[1]).open(request_named("run"), ends_with_us=sys.argv[2] == "bound")
print("open", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["bound", "free"])
def test_a_question_ends_with_its_process_only_where_nobody_else_would_take_the_answer(world: World, kind: str) -> None:
    with ended_at_last(started_program(OPEN_AND_STAY, world.folder, kind)) as (asker,):
        assert asker.stdout is not None
        assert asker.stdout.readline() == "open\n"
        assert only_pending(world).id == "run"
        asker.kill()
        asker.wait()
        assert bool(world.pending()) == (kind == "free")
    if kind == "bound":
        with pytest.raises(RequestClosedError, match="has lost whoever asked"):
            world.answer("run", "yes_once", "web")
        assert world.history()[0].outcome == "abandoned"
    else:
        assert world.answer("run", "yes_once", "web").option_id == "yes_once"


def test_a_killed_asker_that_waits_is_gone_at_once(world: World) -> None:
    with ended_at_last(started_program(ASK, world.folder, 1, 1)) as (asker,):
        request = only_pending(world)
        asker.kill()
        asker.wait()
        assert world.pending() == [], "before its lease is over"
        with pytest.raises(RequestClosedError, match="has lost whoever asked"):
            world.answer(request.id, "a", "web")
