"""A run that goes on, as the page shows it: the hosts that it reaches and is refused, while it does and afterwards."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.network import NAME, POLICY, HostWorld, echo, host_world, listening
from support.page_visits import Visit, text_of, visiting
from support.running import wait_for

from skillkit import OptionRequest, SkillManager, World
from skillkit.approvers.store import StoreApprover
from skillkit.testing import skill_folder
from skillkit.web.live import Pending, Subscription

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")

TALKER = f"""
import socket
def ask(name):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"CONNECT {{name}}:443 HTTP/1.1\\r\\n\\r\\n".encode())
    return s, s.recv(1000)
ask("evil.test")
s, _ = ask({NAME!r})
s.sendall(b"x" * 1234)
assert s.recv(5) == b"again"
s.sendall(b"x" * 8766)
assert s.recv(5) == b"ended"
"""
CALLER = """
import sys
from pathlib import Path
from support.network import POLICY
from skillkit import SkillManager
folder = Path(sys.argv[1])
with SkillManager(folder / "skills", "", [], [], policy=POLICY, state_dir=folder / "state") as manager:
    result = manager.execute_skill_script("net", "talk.py", timeout=120)
    sys.exit(result.stderr or result.exit_code)
"""


class Talk:
    """A script of another process that talks to a host until it is told to stop."""

    def __init__(self) -> None:
        self.again, self.end = threading.Event(), threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        for event, word in ((self.again, b"again"), (self.end, b"ended")):
            event.wait(120)
            connection.sendall(word)
        while connection.recv(1 << 16):
            pass


@contextmanager
def talking(world: HostWorld) -> Iterator[tuple[Talk, subprocess.Popen[bytes]]]:
    skill_folder(world.folder / "skills", "net", files={"scripts/talk.py": TALKER})
    talk = Talk()
    with listening(talk) as port:
        world.outside.hosts[f"{NAME}:443"] = port
        paths = str(Path(__file__).parents[1])
        code = f"import sys; sys.path.insert(0, {paths!r})\n{CALLER}"
        caller = subprocess.Popen([sys.executable, "-c", code, str(world.folder)])
        try:
            yield talk, caller
            talk.again.set()
            talk.end.set()
            assert caller.wait(60) == 0
        finally:
            talk.again.set()
            talk.end.set()
            caller.kill()
            caller.wait()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    """Before the machine gets a proxy: the visitor needs none."""
    with visiting(tmp_path / "state") as made:
        yield made


def shown(visit: Visit, path: str) -> str:
    answer = visit.client.get(path)
    assert answer.status_code == 200
    return text_of(answer.text)


def test_a_run_of_another_process_is_shown_with_its_hosts_until_it_ends_and_afterwards(
    visit: Visit, world: HostWorld
) -> None:
    with talking(world) as (talk, _):
        assert wait_for(lambda: "1,234" in shown(visit, "/"), seconds=60)
        for path in ("/", "/audit", "/history"):
            said = shown(visit, path)
            assert f"{NAME}:443" in said
            assert "evil.test:443" in said
            assert "is not among the hosts" in said
        number = visit.world.running()[0].run
        said = shown(visit, f"/audit/{number}")
        assert "Running" in said
        assert "Look again" in said, "for who has no JavaScript"
        talk.again.set()
        assert wait_for(lambda: "10,000" in shown(visit, f"/audit/{number}"), seconds=60)
    for path in (f"/audit/{number}", f"/audit/{number + 1}"):
        said = shown(visit, path)
        assert "Succeeded" in said
        assert "10,000" in said
        assert "evil.test:443" in said
    assert f"{NAME}:443" not in shown(visit, "/")


@pytest.mark.slow
def test_each_change_is_news_and_the_question_list_is_left_alone(visit: Visit, world: HostWorld) -> None:
    before = now(visit)
    with talking(world) as (talk, _):
        assert wait_for(lambda: now(visit).runs != before.runs, seconds=60)
        between = now(visit)
        talk.again.set()
        assert wait_for(lambda: now(visit).runs != between.runs, seconds=60)
        assert now(visit).version == before.version
    assert now(visit) == before


def now(visit: Visit) -> Pending:
    return Subscription(visit.world).now()


def test_a_run_that_is_over_at_once_writes_no_row_and_is_found_in_the_audit(visit: Visit, world: HostWorld) -> None:
    with listening(echo) as port:
        world.outside.hosts[f"{NAME}:443"] = port
        rows: list[object] = []
        text = TALKER.partition("assert s.recv")[0]
        watch = World(world.folder / "state")
        result = world.run("short.py", text)
        rows += watch.running()
    assert result.success, result.stderr
    assert rows == []
    said = shown(visit, "/audit/2")
    assert f"{NAME}:443" in said
    assert "Reached" in said
    assert "Refused" in said


def test_the_history_and_a_closed_question_tell_the_hosts_of_the_run_that_was_approved(
    visit: Visit, world: HostWorld
) -> None:
    text = TALKER.partition("assert s.recv")[0] + "for number in range(3):\n    ask(f'evil-{number}.test')\n"
    skill_folder(world.folder / "skills", "net", files={"scripts/short.py": text})
    asked = list[str]()

    def answered(request: OptionRequest) -> str:
        asked.append(request.id)
        return "yes_once"

    policy = replace(POLICY, approval="first_run")
    with (
        listening(echo) as port,
        SkillManager(world.folder / "skills", "", [], [], policy=policy, state_dir=world.folder / "state") as manager,
    ):
        world.outside.hosts[f"{NAME}:443"] = port
        manager.approver = StoreApprover(visit.world)
        person = threading.Thread(target=lambda: wait_for(lambda: answer_pending(visit.world, answered), 60))
        person.start()
        assert manager.execute_skill_script("net", "short.py", timeout=60).success
        person.join()
    for path in ("/history", f"/requests/{asked[0]}"):
        said = shown(visit, path)
        assert "refused evil.test:443" in said
        assert f"reached {NAME}:443" in said
        assert "and 2 more" in said, "its own page has all"
    assert "Reached" in shown(visit, "/audit/2")


def answer_pending(world: World, choose: Callable[[OptionRequest], str]) -> bool:
    for request in world.pending():
        world.answer(request.id, choose(request), "web")
        return True
    return False


def test_a_refused_host_stands_with_what_would_open_it(visit: Visit, world: HostWorld) -> None:
    with listening(echo) as port:
        world.outside.hosts[f"{NAME}:443"] = port
        world.run("short.py", TALKER.partition("assert s.recv")[0])
    said = shown(visit, "/audit/2")
    assert "If it should: skillkit grant net --host evil.test" in said
    assert f"--host {NAME}" not in said, "what was reached needs nothing"


@pytest.mark.parametrize("number", [0, 99, 10**15])
def test_a_run_that_nobody_knows_is_not_found(visit: Visit, number: int) -> None:
    assert visit.client.get(f"/audit/{number}").status_code == 404


@pytest.mark.slow
def test_a_killed_caller_leaves_a_run_without_an_end_that_is_not_shown_as_running(
    visit: Visit, world: HostWorld
) -> None:
    with talking(world) as (_, caller):
        assert wait_for(lambda: bool(visit.world.running()), seconds=60)
        number = visit.world.running()[0].run
        caller.kill()
        caller.wait()
        assert wait_for(lambda: not visit.world.running(), seconds=20)
        said = shown(visit, f"/audit/{number}")
        assert "No end on record" in said
        assert "Running" not in said
        caller.returncode = 0
