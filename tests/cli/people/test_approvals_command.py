"""`skillkit approvals` as a person and as a program see it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.approving import asking_manager
from support.asking import in_threads, only_pending, request_named
from support.commands import BOUNDS
from support.screens import on_screen

from skillkit import ConfigurationError, OptionRequest, RequestClosedError, World
from skillkit.cli.people.approvals import approvals
from skillkit.core.store.opening import open_store
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.questions import OPTIONS, Tick

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "state") as world:
        yield world


def run(*words: str, world: World) -> Result:
    return CliRunner().invoke(approvals, [*words, "--state-dir", str(world.folder)])


def test_a_reason_goes_with_a_no_and_a_grant_with_a_yes(world: World) -> None:
    world.open(request_named("q"))
    for words, told in (
        (("yes_once", "--reason", "x"), "--reason goes with a no"),
        (("no", "--grant", "host:a.b"), "--grant goes with a yes"),
    ):
        result = run("answer", "q", *words, world=world)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
        assert [each.id for each in world.pending()] == ["q"], "nothing is answered"
    assert run("answer", "q", "no", "--reason", "x", world=world).exit_code == 0


def test_a_question_is_listed_shown_and_answered_for_an_asker_that_waits(world: World) -> None:
    with in_threads(1, lambda: world.ask_request(request_named("0123456789abcdef"))) as (asking,):
        only_pending(world)
        listed = run("list", world=world)
        assert listed.stdout.splitlines()[1].split()[0] == "0123456789ab"
        assert "yes_once yes_in_session no" in listed.stdout
        assert "skillkit approvals answer 0123456789ab OPTION" in listed.stderr
        shown = run("show", "0123456789ab", world=world)
        assert shown.stdout.splitlines() == [
            "Run 0123456789abcdef?",
            "  │ Policy asks.",
            "",
            "Id: 0123456789abcdef",
            "Options:",
            "  yes_once        Yes once",
            "  yes_in_session  Yes in this session",
            "  no              No",
        ]
        answered = run("answer", "0123456789abcdef", "no", world=world)
        assert answered.stdout == "Answered 'no': Run 0123456789abcdef?\n"
        got = asking.result(30)
    assert (got.option_id, got.channel) == ("no", "cli")


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (80, ["ID", "EXPIRES IN", "OPTIONS", "QUESTION"]),
        (120, ["ID", "EXPIRES IN", "SESSION", "OPTIONS", "QUESTION"]),
    ],
)
def test_the_options_are_never_cut_on_a_usual_screen(world: World, width: int, headings: list[str]) -> None:
    world.open(replace(request_named("0123456789abcdef"), title="Run it? " * 20, session_id="terminal-24609-4690433"))
    heading, line, hint = on_screen("approvals", "list", "--state-dir", world.folder, width=width)
    assert re.split(r"  +", heading) == headings
    assert "  yes_once yes_in_session no  Run it?" in line
    assert len(line) <= width
    assert hint.startswith("hint: ")


def test_every_command_speaks_json(world: World) -> None:
    world.open(request_named("abcd"))
    (listed,) = json.loads(run("list", "--json", world=world).stdout)["requests"]
    assert (listed["id"], listed["options"][0], listed["context"]) == (
        "abcd",
        {"id": "yes_once", "label": "Yes once"},
        {"digest": "d"},
    )
    assert json.loads(run("show", "abcd", "--json", world=world).stdout)["request"] == listed
    answered = json.loads(run("answer", "abcd", "yes_once", "--json", world=world).stdout)
    assert (answered["schema_version"], answered["answer"]["option_id"]) == (1, "yes_once")
    (past,) = json.loads(run("list", "--history", "--json", world=world).stdout)["history"]
    assert (past["outcome"], past["answer"]["channel"], past["request"]["id"]) == ("answered", "cli", "abcd")


def test_when_nothing_waits_it_says_so_and_makes_no_world(world: World) -> None:
    listed = run("list", world=world)
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert f"Nothing waits for an answer in {world.folder}." in listed.stderr
    assert "Nothing was asked yet" in run("list", "--history", world=world).stderr
    assert json.loads(run("list", "--json", world=world).stdout) == {"schema_version": 1, "requests": []}
    assert not world.folder.exists()


def test_history_tells_how_each_question_ended(world: World) -> None:
    for name in ("first", "second"):
        world.open(request_named(name))
        world.answer(name, "yes_once", "web")
    lines = run("list", "--history", "-n", "1", world=world).stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("second")
    assert "yes_once by web" in lines[1]


def test_a_beginning_that_fits_several_is_refused_with_all_of_them(world: World) -> None:
    world.open(request_named("aaaaaaaaaaaa11"))
    world.open(request_named("aaaaaaaaaaaa22"))
    result = run("answer", "a" * 12, "no", world=world)
    assert result.exit_code == 2
    assert "'aaaaaaaaaaaa' fits 2 questions: aaaaaaaaaaaa11, aaaaaaaaaaaa22. Write more of it." in result.stderr
    assert len(world.pending()) == 2


@pytest.mark.parametrize("words", [["show"], ["answer"]])
def test_a_beginning_that_is_easily_made_again_names_no_question(world: World, words: list[str]) -> None:
    world.open(request_named("0123456789abcdef"))
    for given in ("", "0", "0123", "0123456789a"):
        result = run(*words, given, *(["yes_once"] if words == ["answer"] else []), world=world)
        assert result.exit_code == 2
        assert "at least its first 12 characters" in result.stderr
    assert len(world.pending()) == 1


@pytest.mark.parametrize("option", ["yes_once", "yes_in_session", "no"])
def test_without_a_terminal_a_beginning_answers_nothing(world: World, option: str) -> None:
    world.open(request_named("0123456789abcdef"))
    result = run("answer", "0123456789ab", option, world=world)
    assert result.exit_code == 2
    assert "'skillkit approvals show 0123456789ab' and answer with the whole id" in result.stderr
    assert len(world.pending()) == 1
    assert run("answer", "0123456789abcdef", option, world=world).exit_code == 0


def test_at_a_terminal_the_question_is_shown_and_the_answer_confirmed(world: World) -> None:
    """What is answered is what was on the screen, whatever else begins with the same characters."""
    words = ("approvals", "answer", "0123456789ab", "yes_once", "--state-dir", world.folder)
    for typed, is_open in (("n\n", True), ("y\n", False)):
        world.open(request_named("0123456789abcdef"))
        lines = on_screen(*words, width=100, typed=typed)
        assert "Run 0123456789abcdef?" in lines
        assert "Id: 0123456789abcdef" in lines
        assert any("Answer 'yes_once' to exactly this?" in line for line in lines)
        assert bool(world.pending()) is is_open


def test_a_no_to_a_script_needs_no_more_than_a_beginning(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager, World(tmp_path / "state") as world:
        request = manager.prepare_skill_script("demo", "run").request
        assert request is not None
        world.open(request)
        assert run("answer", request.id[:12], "yes_once", world=world).exit_code == 2
        assert run("answer", request.id[:12], "no", world=world).exit_code == 0


def test_ids_are_as_long_as_it_takes_to_tell_them_apart(world: World) -> None:
    for name in ("0" * 14 + "aa", "0" * 14 + "bb"):
        world.open(request_named(name))
    lines = run("list", world=world).stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["0" * 14 + "aa", "0" * 14 + "bb"]


def test_a_question_that_is_not_there_is_not_found(world: World) -> None:
    for words in (["show", "x"], ["answer", "x", "no"]):
        result = run(*words, world=world)
        assert result.exit_code == 127
        assert "'skillkit approvals list' shows" in result.stderr


def test_a_second_answer_and_an_unknown_option_are_errors_of_their_kind(world: World) -> None:
    world.open(request_named("abcd"))
    assert isinstance(run("answer", "abcd", "maybe", world=world).exception, ConfigurationError)
    run("answer", "abcd", "no", world=world)
    second = run("answer", "abcd", "yes_once", world=world).exception
    assert isinstance(second, RequestClosedError)
    assert "'no' by cli" in str(second)


def test_text_of_a_skill_cannot_pass_for_words_of_skillkit(world: World) -> None:
    hostile = OptionRequest("abcd", "Run?\nOptions:\x1b[2J", "fine\nOptions:\n  no  Yes\u202e", OPTIONS)
    world.open(hostile)
    lines = run("show", "abcd", world=world).stdout.splitlines()
    assert lines[0] == r"Run?\nOptions:\x1b[2J"
    assert lines[1:4] == ["  │ fine", "  │ Options:", r"  │   no  Yes\u202e"]
    assert lines.count("Options:") == 1
    assert r"Run? Options:\x1b[2J" in run("list", world=world).stdout


@pytest.fixture
def approved(world: World, tmp_path: Path) -> Iterator[StandingApprovals]:
    """Two skills in one session, one of them in another too, and trust."""
    store = open_store(world.folder)
    standing = StandingApprovals(store)
    for session, skill in (("chat-1", "csv"), ("chat-1", "pdf"), ("chat-2", "csv")):
        standing.approve_in_session(session, skill=skill, folder=tmp_path, digest="d" * 64, channel="web", walls=BOUNDS)
    standing.trust(skill="csv", folder=tmp_path, digest="d" * 64, channel="cli", walls=BOUNDS)
    yield standing
    store.close()


def test_sessions_lists_what_is_approved_for_a_session_and_no_trust(world: World, approved: StandingApprovals) -> None:
    headings, *lines = run("sessions", world=world).stdout.splitlines()
    assert headings.split()[:3] == ["SKILL", "SESSION", "DIGEST"]
    assert [line.split()[:3] for line in lines] == [
        ["csv", "chat-1", "d" * 12],
        ["pdf", "chat-1", "d" * 12],
        ["csv", "chat-2", "d" * 12],
    ]
    listed = json.loads(run("sessions", "--json", world=world).stdout)["approvals"]
    assert [(each["skill"], each["session_id"], each["channel"]) for each in listed] == [
        ("csv", "chat-1", "web"),
        ("pdf", "chat-1", "web"),
        ("csv", "chat-2", "web"),
    ]
    assert len(approved.trusted()) == 1


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["csv"], [("chat-1", "pdf")]),
        (["csv", "--session", "chat-2"], [("chat-1", "csv"), ("chat-1", "pdf")]),
        (["--all", "--session", "chat-1"], [("chat-2", "csv")]),
        (["--all"], []),
    ],
    ids=["skill", "skill and session", "session", "all"],
)
def test_end_ends_what_it_names_and_never_trust(
    world: World, approved: StandingApprovals, words: list[str], left: list[tuple[str, str]]
) -> None:
    ended = run("end", *words, world=world)
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (0, 3 - len(left))
    assert [(each.session_id, each.skill) for each in world.session_approvals()] == left
    assert len(approved.trusted()) == 1


def test_end_speaks_json_and_says_when_there_is_nothing_to_end(world: World, approved: StandingApprovals) -> None:
    assert approved.in_sessions()
    ended = json.loads(run("end", "pdf", "--json", world=world).stdout)["ended"]
    assert [(each["session_id"], each["skill"]) for each in ended] == [("chat-1", "pdf")]
    again = run("end", "pdf", world=world)
    assert (again.exit_code, again.stdout) == (127, "")
    assert "'pdf' is not approved for a session here." in again.stderr


@pytest.mark.parametrize("words", [[], ["csv", "--all"]], ids=["neither", "both"])
def test_end_wants_a_skill_or_all_of_them(world: World, approved: StandingApprovals, words: list[str]) -> None:
    ended = run("end", *words, world=world)
    assert (ended.exit_code, "Name a skill, or end them all with --all." in ended.stderr) == (2, True)
    assert len(approved.in_sessions()) == 3


def test_where_nothing_is_approved_sessions_says_so_and_makes_no_world(world: World) -> None:
    listed = run("sessions", world=world)
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert f"Nothing is approved for a session in {world.folder}." in listed.stderr
    ended = run("end", "--all", world=world)
    assert (ended.exit_code, "Nothing is approved for a session here." in ended.stderr) == (127, True)
    assert not world.folder.exists()


def test_an_answer_ticks_what_is_offered_and_a_no_may_say_why(world: World) -> None:
    key = Tick("secret:API_KEY", "the key API_KEY", "It is yours.")
    for name in ("a" * 64, "b" * 64):
        world.open(OptionRequest(name, "Run it?", "", OPTIONS, grants=(key,)), expires_in=60)
    shown = run("show", "a" * 64, world=world).stdout
    assert "A yes may open too, with --grant:\n  secret:API_KEY  the key API_KEY. It is yours.\nOptions:" in shown
    refused = run("answer", "a" * 64, "yes_once", "--grant", "secret:OTHER", world=world)
    assert "is not offered" in str(refused.exception)
    assert run("answer", "a" * 64, "yes_once", "--grant", "secret:API_KEY", world=world).exit_code == 0
    assert run("answer", "b" * 64, "no", "--reason", "Not now.", world=world).exit_code == 0
    yes, no = world.collect("a" * 64), world.collect("b" * 64)
    assert yes is not None
    assert no is not None
    assert (yes.grants, yes.reason, no.grants, no.reason) == (("secret:API_KEY",), "", (), "Not now.")
