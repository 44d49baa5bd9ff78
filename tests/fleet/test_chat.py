"""A chat whose scripts run on workers: in a terminal with a person who is asked, in a pipe, and from Python."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.brokers import Broker
from support.chats import KEY, ChatTerminal, chat_words, without_terminal
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.model_servers import Said, chat_server
from support.page_visits import answer_over_http
from support.running import wait_for
from support.terminals import READY, without_controls

from skillkit import GUARDED, World
from skillkit.approvers.store import StoreApprover
from skillkit.chat.endpoint import Endpoint
from skillkit.chat.events import Event, ToolOutcome
from skillkit.chat.talk import Talk
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import CommandOutcome, InlineProcessor
from skillkit.web.server import PageServer

pytestmark = pytest.mark.slow
RUN = "skills_run_script"
LOOK_UP = Said("I look it up.", ((RUN, {"skill_name": "demo", "script": "scripts/lookup.sh", "args": ["chat"]}),))
FOUND = "chat means a small domesticated cat"


@pytest.fixture(scope="module")
def fleet(databases: Database, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path_factory.mktemp("fleet")) as made:
        made.start_worker("--policy", "guarded")
        yield made


def elsewhere(fleet: Fleet, login: str) -> list[str]:
    return ["--broker", fleet.broker, "--state", fleet.address(login), "--allow-scripts"]


def runs(fleet: Fleet) -> int:
    return int(fleet.rows("select count(*) from runs where state = 'finished'")[0][0])


def test_a_person_at_the_chats_terminal_says_yes_and_a_worker_runs_it(fleet: Fleet, tmp_path: Path) -> None:
    before = runs(fleet)
    with chat_server(LOOK_UP, Said("It is a cat."), LOOK_UP, Said("Still a cat.")) as server:
        words = chat_words(tmp_path, server, *elsewhere(fleet, fleet.person))
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("what is a chat?")
            terminal.wait_for(READY, seconds=60)
            terminal.send("2")
            terminal.wait_for("It is a cat.", seconds=60)
            terminal.type("sure?")
            terminal.wait_for("Still a cat.", seconds=60)
            assert terminal.end() == 0
        told = json.dumps(server.bodies[-1]["messages"])
    assert told.count(FOUND) == 2
    assert without_controls(terminal.text).count("May this script run?") == 1, "a yes for the session holds there"
    assert runs(fleet) == before + 2
    fleet.verify()


def test_a_no_at_the_terminal_is_a_no(fleet: Fleet, tmp_path: Path) -> None:
    before = runs(fleet)
    with chat_server(LOOK_UP) as server:
        words = chat_words(tmp_path, server, *elsewhere(fleet, fleet.person))
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("what is a chat?")
            terminal.wait_for(READY, seconds=60)
            terminal.send("3")
            terminal.wait_for("Stopped, because you said no.", seconds=60)
            assert terminal.end() == 0
    assert runs(fleet) == before


def test_commands_in_an_answer_run_on_workers(fleet: Fleet, tmp_path: Path) -> None:
    before = runs(fleet)
    text = "Two: !{scripts/lookup.sh chat} and !{scripts/lookup.sh chien}"
    with chat_server(Said(text), Said("Done.")) as server:
        (tmp_path / "plain.toml").write_text("tools = false\n")
        words = chat_words(tmp_path, server, *elsewhere(fleet, fleet.person), "--agent", str(tmp_path / "plain.toml"))
        done = without_terminal(tmp_path, [*words, "-y", "--once", "go", "--json"])
        assert done.returncode == 0, done.stderr
        told = server.bodies[-1]["messages"][-1]["content"]
    assert "chat means" in told
    assert "chien means" in told
    assert runs(fleet) == before + 2


def test_python_chats_ask_on_the_page_and_run_on_workers(fleet: Fleet) -> None:
    """A program whose login may not approve; somebody else answers on the page."""
    (fleet.skills / "demo/scripts/lookup.sh").write_text('echo "$1 means a small domesticated cat"\n')
    manager = fleet.manager(GUARDED)
    manager.approver = StoreApprover(World(manager.state_dir, state=manager.state), expires_in=90)
    events: list[Event] = []
    with (
        chat_server(LOOK_UP, Said("It is a cat.")) as server,
        World(fleet.folder / "page", state=fleet.address(fleet.approver)) as world,
        PageServer(world) as page,
    ):
        endpoint = Endpoint("a-model", server.address, KEY, "OPENAI_API_KEY")
        functions = SkillFunctions(manager, run_scripts=True)
        talk = Talk(
            endpoint, InlineProcessor(manager), functions, system=lambda _: "You teach.", show=events.append, tools=True
        )
        talking = threading.Thread(target=talk.ask, args=("what is a chat?",))
        talking.start()
        try:
            shown = answer_over_http(page.login_url(), "yes_once", seconds=60)
            talking.join(60)
        finally:
            endpoint.close()
        assert not talking.is_alive()
        told = json.dumps(server.bodies[-1]["messages"])
    assert "lookup.sh" in shown
    assert FOUND in told
    assert [each.status for each in events if isinstance(each, ToolOutcome | CommandOutcome)] == ["ok"]


def test_what_a_run_writes_is_shown_on_the_page_while_it_goes_on(fleet: Fleet) -> None:
    """The worker tells of it, for a person approved it on the page."""
    manager = fleet.manager(GUARDED)
    runner: Any = manager.runner
    with World(fleet.folder / "page", state=fleet.address(fleet.approver)) as world, PageServer(world) as page:
        run = runner.order(manager, "demo", "count")
        answer_over_http(
            page.login_url(),
            "yes_once",
            request_id=fleet.rows("select order_id from runs where id::text = %s", run.id)[0][0],
            seconds=60,
        )
        seen: list[str] = []

        def look() -> bool:
            seen.extend("".join(text for _, text in world.output_of(each.run).pieces) for each in world.running())
            return bool(run.state == "finished")

        assert wait_for(look, 60)
        assert any(text and "9" not in text for text in seen), "before it was over"
        (ended,) = [each for each in world.running(with_ended=True) if each.script.endswith("count.sh")]
        assert "9" in "".join(text for _, text in world.output_of(ended.run).pieces)
