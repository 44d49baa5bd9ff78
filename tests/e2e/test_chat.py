"""`skillkit chat` on a real terminal: a tutor, its commands and tools, a person who answers and interrupts."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from support.chats import KEY, ChatTerminal, chat_words
from support.inline_answers import said
from support.model_servers import Failed, Said, chat_server
from support.running import anybody_runs, kinds, wait_for
from support.skill_folders import skill_folder
from support.terminals import READY, without_controls

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
RUN = "skills_run_script"


def test_the_tutor_speaks_looks_up_and_is_asked_about_once(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    lesson = Said("Listen: %{scripts/speak.sh chat} le chat.\nI look it up.\n!{scripts/lookup.py chat}")
    with chat_server(Failed(400, "no tools here"), lesson, Said("It is a cat.")) as server:
        words = ["chat", "--agent", str(EXAMPLES / "vocabulary-tutor.toml"), "--skills", str(EXAMPLES / "skills")]
        words += ["--model", "m", "--base-url", server.address, "--allow-scripts", "--save", "lesson.md"]
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("teach me")
            terminal.wait_for(READY)
            terminal.send("2")
            terminal.wait_for("It is a cat.")
            assert terminal.end() == 0
        told = server.bodies[-1]["messages"]
    screen = without_controls(terminal.text)
    assert (tmp_path / "workspace" / "practised.txt").read_text() == "chat\n"
    assert screen.count("May this script run?") == 1
    assert "%{" not in screen
    assert "!{" not in screen
    assert "[scripts/speak.sh chat: done" in screen
    assert "You teach French words" in told[0]["content"]
    assert '%{scripts/speak.sh "the word"}' in told[0]["content"]
    assert "chat (masculine): cat. Example: Le chat dort sur le lit." in told[-1]["content"]
    saved = (tmp_path / "workspace" / "lesson.md").read_text()
    assert saved.startswith("## You\n\nteach me\n")
    assert "It is a cat." in saved


def test_a_tool_is_declined_then_approved_for_the_session_and_taken_back(tmp_path: Path) -> None:
    call = Said("I try.", ((RUN, {"skill_name": "demo", "script": "scripts/speak.sh", "args": ["chat"]}),))
    answers = (call, call, Said("Two."), call, Said("Three."), call)
    with (
        chat_server(*answers) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server, "--allow-scripts")) as terminal,
    ):
        terminal.type("speak")
        terminal.wait_for(READY)
        terminal.send("3")
        terminal.wait_for("Stopped, because you said no. What you type next goes to the model.")
        terminal.type("please")
        terminal.wait_for(READY, times=2)
        terminal.send("2")
        terminal.wait_for("Two.")
        terminal.type("more")
        terminal.wait_for("Three.")
        terminal.type("/approve end")
        terminal.wait_for("You will be asked again about: demo.")
        terminal.type("more")
        terminal.wait_for(READY, times=3)
        terminal.send("\x1b")
        terminal.wait_for("Stopped, because you said no", times=2)
        assert terminal.end() == 0
    assert "[skills_run_script demo scripts/speak.sh chat: not approved" in without_controls(terminal.text)
    assert said(tmp_path) == ["chat", "chat"]
    assert kinds(tmp_path) == ["refused", *["started", "finished"] * 2, "refused"]


def test_ctrl_c_stops_an_answer_a_script_and_a_line_but_not_the_chat(tmp_path: Path) -> None:
    endless = Said("Once upon a time there was ", ending="hang")
    with chat_server(endless, Said(f"I wait. !{{scripts/hang.sh {tmp_path.name}}}"), Said("Still here.")) as server:
        words = chat_words(tmp_path, server, "--allow-scripts", "-y", "--agent", str(tmp_path / "plain.toml"))
        (tmp_path / "plain.toml").write_text("tools = false\n")
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("tell me a story")
            terminal.wait_for("there was ")
            terminal.send("\x03")
            terminal.wait_for("Stopped. What was said so far is kept.")
            terminal.type("wait")
            assert wait_for(lambda: anybody_runs(f"hang.sh\0{tmp_path.name}"), 30)
            terminal.send("\x03")
            terminal.wait_for("Stopped. What was said so far is kept.", times=2)
            assert wait_for(lambda: not anybody_runs(f"hang.sh\0{tmp_path.name}"), 10)
            terminal.wait_for_prompt()
            terminal.send("half a li")
            terminal.wait_for("> half a li")
            terminal.text = ""
            terminal.send("\x03")
            terminal.wait_for("> ")
            terminal.type("hello")
            terminal.wait_for("Still here.")
            assert terminal.end() == 0
        asked = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    assert asked == ["tell me a story", "wait", "hello"]


def test_the_chat_goes_on_after_failures_and_its_commands_help(tmp_path: Path) -> None:
    hostile = Said("\x1b]0;owned\x07\x1b[2JHello\u202e.")
    with chat_server(Failed(401, f"bad key {KEY}"), hostile) as server:
        with ChatTerminal(tmp_path, chat_words(tmp_path, server)) as terminal:
            terminal.type("first question")
            terminal.wait_for("It does not accept the key in $OPENAI_API_KEY.")
            terminal.type("/retry")
            terminal.wait_for("\\x1b]0;owned\\x07\\x1b[2JHello\\u202e.")
            terminal.type("/skils")
            terminal.wait_for("/skils is no command. Did you mean /skills?")
            terminal.type("/skills")
            terminal.wait_for("Their scripts may not run in this chat: start it with --allow-scripts.")
            terminal.type("/approve")
            terminal.wait_for("nothing is approved for this session")
            terminal.type("/help")
            terminal.wait_for("/save FILE")
            terminal.type("/save talk.jsonl")
            terminal.wait_for("what follows goes there too.")
            terminal.wait_for_prompt()
            terminal.send("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r")  # up to the first question, from the history
            terminal.wait_for("Hello", times=2)
            terminal.type("/quit")
            assert terminal.program.wait(30) == 0
        asked = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    assert asked == ["first question", "first question"]
    history = tmp_path / "state" / "chat-history"
    assert history.read_text().startswith("first question\n/retry\n")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert KEY not in terminal.text
    assert "\x07" not in terminal.text
    assert (tmp_path / "workspace" / "talk.jsonl").read_text().count('"kind": "user"') == 2


def test_a_model_that_never_stops_is_stopped_and_the_person_is_told(tmp_path: Path) -> None:
    with chat_server(Said("!{scripts/lookup.sh again}")) as server:
        words = chat_words(tmp_path, server, "--allow-scripts", "--policy", "trusted")
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("go")
            terminal.wait_for("Stopped: the model has used all its rounds for this question.", seconds=90)
            assert terminal.end() == 0
        assert len(server.bodies) == 8


def test_a_no_stops_the_model_and_what_is_typed_next_goes_to_it(tmp_path: Path) -> None:
    """It asks for two scripts at once, and would ask for more: nobody is asked after the no."""
    arguments = {"skill_name": "demo", "script": "scripts/speak.sh"}
    calls = tuple((RUN, {**arguments, "args": [word]}) for word in ("one", "two"))
    with (
        chat_server(Said("I try.", calls), Said("Then not.")) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server, "--allow-scripts")) as terminal,
    ):
        terminal.type("speak")
        terminal.wait_for(READY)
        terminal.send("3")
        terminal.wait_for("Stopped, because you said no.")
        assert len(server.bodies) == 1
        terminal.type("use the other file")
        terminal.wait_for("Then not.")
        assert terminal.end() == 0
        told = server.bodies[-1]["messages"]
    assert without_controls(terminal.text).count("May this script run?") == 1
    assert [message["role"] for message in told[-3:]] == ["tool", "tool", "user"]
    assert "the person stopped it" in told[-2]["content"]
    assert told[-1]["content"] == "use the other file"
    assert said(tmp_path) == []


def test_a_no_with_a_reason_goes_to_the_model_and_it_goes_on(tmp_path: Path) -> None:
    call = Said("I try.", ((RUN, {"skill_name": "demo", "script": "scripts/speak.sh", "args": ["chat"]}),))
    with (
        chat_server(call, Said("I see.")) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server, "--allow-scripts")) as terminal,
    ):
        terminal.type("speak")
        terminal.wait_for(READY)
        terminal.send("n")
        terminal.wait_for("No, because: _")
        terminal.send("not today\r")
        terminal.wait_for("I see.")
        assert terminal.end() == 0
        told = server.bodies[-1]["messages"][-1]
    assert (told["role"], "They said: not today" in told["content"]) == ("tool", True)


@pytest.mark.parametrize(
    "pasted",
    ["\x1b[200~one\ntwo\nthree\x1b[201~\r", "one\ntwo\nthree\n", "one\ntwo\nthree"],
    ids=["marked by the terminal", "line by line", "without a last end"],
)
def test_pasted_lines_are_one_message(tmp_path: Path, pasted: str) -> None:
    with (
        chat_server(Said("Thanks.")) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server)) as terminal,
    ):
        terminal.wait_for_prompt()
        terminal.send(pasted)
        if pasted.endswith("e"):
            terminal.wait_for(". three")
            terminal.send("\r")
        terminal.wait_for("Thanks.")
        assert terminal.end() == 0
        assert [message["content"] for message in server.bodies[0]["messages"][1:]] == ["one\ntwo\nthree"]


def test_markdown_is_shown_as_it_is_meant_and_kept_as_it_was_written(tmp_path: Path) -> None:
    said_so = "# A title\n\n- **bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    with (
        chat_server(Said(said_so)) as server,
        ChatTerminal(tmp_path, chat_words(tmp_path, server, "--save", "talk.md")) as terminal,
    ):
        terminal.type("show me")
        terminal.wait_for("1 │ 2")
        assert "\x1b[1mA title\x1b[0m" in terminal.text
        assert "• \x1b[1mbold\x1b[0m and \x1b[36mcode\x1b[0m" in terminal.text
        assert terminal.end() == 0
    assert "**" not in without_controls(terminal.text)
    assert "- **bold** and `code`" in (tmp_path / "workspace" / "talk.md").read_text()


def test_a_script_that_takes_long_says_that_it_runs(tmp_path: Path) -> None:
    call = Said("I wait.", ((RUN, {"skill_name": "slow", "script": "scripts/wait.sh"}),))
    with chat_server(call, Said("Done.")) as server:
        words = chat_words(tmp_path, server, "--allow-scripts", "-y")
        skill_folder(tmp_path / "skills", "slow", files={"scripts/wait.sh": "sleep 2.5\n"})
        with ChatTerminal(tmp_path, words) as terminal:
            terminal.type("wait")
            terminal.wait_for("slow scripts/wait.sh runs, 1 s")
            terminal.wait_for("slow scripts/wait.sh runs, 2 s")
            terminal.wait_for("Done.")
            assert terminal.end() == 0
