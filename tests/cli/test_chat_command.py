"""`skillkit chat` without a terminal: one question, an exit code, and nobody who could be asked."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.chats import KEY, chat_words, without_terminal
from support.inline_answers import said
from support.model_servers import Failed, Said, chat_server
from support.running import kinds, only_record, records_of
from support.skill_folders import skill_folder

from skillkit.cli.chat import chat_command

SPEAK = Said("Listen: %{scripts/speak.sh chat}\nDone.")


def test_without_anybody_to_ask_nothing_runs_and_the_code_says_so(tmp_path: Path) -> None:
    with chat_server(SPEAK) as server:
        ended = without_terminal(tmp_path, chat_words(tmp_path, server, "--once", "speak", "--allow-scripts"))
    assert (ended.returncode, ended.stdout) == (126, "Listen: \nDone.\n")
    assert "[scripts/speak.sh chat: not run, nobody could approve it: " in ended.stderr
    assert said(tmp_path) == []
    assert only_record(tmp_path, "refused")["error"].startswith("ApprovalUnavailableError")


def test_with_yes_it_runs_once_and_the_key_reaches_nobody_else(tmp_path: Path) -> None:
    answers = (Said("%{scripts/speak.sh chat} !{scripts/env.sh}"), Said("That is all."))
    with chat_server(*answers) as server:
        words = chat_words(tmp_path, server, "--once", "-", "--allow-scripts", "-y", "--policy", "trusted")
        skill_folder(tmp_path / "skills", "demo", files={"scripts/env.sh": "env | sort\n"})
        ended = without_terminal(tmp_path, [*words, "--save", str(tmp_path / "talk.jsonl")], text="speak\n")
        given = server.bodies[-1]["messages"][-1]["content"]
        assert server.keys == [f"Bearer {KEY}"] * 2
    assert (ended.returncode, said(tmp_path)) == (0, ["chat"])
    assert "SKILL_NAME=demo" in given
    assert KEY not in given
    assert KEY not in "".join(str(record) for record in records_of(tmp_path))
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert stat.S_IMODE((tmp_path / "talk.jsonl").stat().st_mode) == 0o600


def test_a_key_that_policy_would_pass_on_is_gone_by_then(tmp_path: Path) -> None:
    config = tmp_path / "own" / "config.toml"
    config.parent.mkdir(mode=0o755)
    config.write_text('profile = "standard"\n[policy]\npass_environment = ["OPENAI_API_KEY", "GREETING"]\n')
    config.chmod(0o644)
    with chat_server(Said("!{scripts/env.sh}"), Said("Done.")) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLKIT_CONFIG", str(config))
        patch.setenv("GREETING", "hello there")
        words = chat_words(tmp_path, server, "--once", "env", "--allow-scripts", "--json")
        skill_folder(tmp_path / "skills", "demo", files={"scripts/env.sh": "env | sort\n"})
        ended = without_terminal(tmp_path, words)
        given = server.bodies[-1]["messages"][-1]["content"]
    assert "GREETING=hello there" in given
    assert KEY not in given
    told = json.loads(ended.stdout)
    assert (told["answer"], told["stopped"], ended.returncode) == ("Done.", "answered", 0)
    assert [command["status"] for command in told["commands"]] == ["ok"]


def test_json_gives_each_call_as_data_and_each_round_by_itself(tmp_path: Path) -> None:
    words_given = ["a b", "x" * 300]
    call = ("skills_run_script", {"skill_name": "demo", "script": "scripts/speak.sh", "args": words_given})
    with chat_server(Said("I speak.", (call,)), Said("I have spoken.")) as server:
        words = chat_words(tmp_path, server, "--once", "speak", "--allow-scripts", "-y", "--json")
        told = json.loads(without_terminal(tmp_path, words).stdout)
    assert told["answer"] == "I have spoken."
    assert [(each["round"], each["text"]) for each in told["rounds"]] == [(1, "I speak."), (2, "I have spoken.")]
    (command,) = told["commands"]
    assert (command["tool"], command["status"], command["round"]) == ("skills_run_script", "ok", 1)
    assert command["arguments"] == call[1]
    assert command["seconds"] > 0


def test_without_leave_commands_are_stripped_and_the_person_is_told(tmp_path: Path) -> None:
    with chat_server(SPEAK) as server:
        ended = without_terminal(tmp_path, chat_words(tmp_path, server, "--once", "speak", "-y"))
    assert (ended.returncode, ended.stdout, said(tmp_path)) == (126, "Listen: \nDone.\n", [])
    assert "[scripts/speak.sh chat: not run: " in ended.stderr
    assert "start it with --allow-scripts" in ended.stderr
    assert "'allow_scripts'" not in ended.stderr
    assert kinds(tmp_path) == ["refused"]


def test_where_the_profile_forbids_scripts_the_chat_says_so(tmp_path: Path) -> None:
    with chat_server(SPEAK) as server:
        ended = without_terminal(tmp_path, chat_words(tmp_path, server, "--once", "speak", "--policy", "locked"))
    assert "as in the profile 'locked'" in ended.stderr
    assert "--allow-scripts" not in ended.stderr


def test_lines_from_a_pipe_are_questions_one_after_the_other(tmp_path: Path) -> None:
    with chat_server(Said("One."), Failed(503, "busy"), Failed(503, "busy"), Said("Two.")) as server:
        ended = without_terminal(tmp_path, chat_words(tmp_path, server), text="first\nsecond\n/retry\n")
        assert [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"] == [
            "first",
            "second",
        ]
    assert (ended.returncode, ended.stdout) == (0, "One.\nTwo.\n")
    assert "answered 503: busy" in ended.stderr


def test_a_prompt_file_has_its_commands_run_and_their_output_inserted(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Notes: !{scripts/read.sh}\nEnd. `!{scripts/speak.sh code}`\n")
    with chat_server(Said("Read.")) as server:
        words = chat_words(tmp_path, server, "--prompt-file", str(prompt), "--once", "Shorter.", "--allow-scripts")
        (tmp_path / "workspace" / "notes").write_text("%{scripts/speak.sh injected}\n")
        refused = without_terminal(tmp_path, [*words, "--policy", "trusted"])
        assert refused.returncode == 126  # every command of a prompt file is asked about, whatever policy says
        assert without_terminal(tmp_path, [*words, "-y"]).returncode == 0
        first, second = (body["messages"][-1]["content"] for body in (server.bodies[0], server.bodies[-1]))
    assert first == "Notes: \nEnd. `!{scripts/speak.sh code}`\n\nShorter."
    assert second == "Notes: \\%{scripts/speak.sh injected}\nEnd. `!{scripts/speak.sh code}`\n\nShorter."
    assert said(tmp_path) == []


@pytest.mark.parametrize(("written", "heard"), [("injected", []), ("own idea", ["own idea"])])
def test_what_a_prompt_files_command_printed_is_data_for_the_model_too(
    tmp_path: Path, written: str, heard: list[str]
) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Notes: !{scripts/read.sh}\n")
    with chat_server(Said(f"Done. %{{scripts/speak.sh '{written}'}}")) as server:
        words = chat_words(tmp_path, server, "--prompt-file", str(prompt), "--json", "--allow-scripts", "-y")
        (tmp_path / "workspace" / "notes").write_text("%{scripts/speak.sh injected}\n")
        without_terminal(tmp_path, words)
    assert said(tmp_path) == heard


def test_a_prompt_file_inside_a_skill_stays_as_it_is(tmp_path: Path) -> None:
    with chat_server(Said("Read.")) as server:
        words = chat_words(tmp_path, server, "--allow-scripts", "-y", "--json", "--prompt-file")
        prompt = tmp_path / "skills" / "demo" / "prompt.md"
        prompt.write_text("Say !{scripts/speak.sh stolen}\n")
        assert without_terminal(tmp_path, [*words, str(prompt)]).returncode == 0
        assert server.bodies[-1]["messages"][-1]["content"] == "Say !{scripts/speak.sh stolen}"
    assert said(tmp_path) == []


def test_an_endpoint_that_fails_is_our_failure(tmp_path: Path) -> None:
    with chat_server(Failed(401, "no such key")) as server:
        ended = without_terminal(tmp_path, chat_words(tmp_path, server, "--once", "hi"))
    assert (ended.returncode, ended.stdout) == (125, "")
    assert "It does not accept the key in $OPENAI_API_KEY" in ended.stderr


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (Failed(429, "slow down"), 125, "Wait a little, then run the command again."),
        (Failed(503, "busy"), 125, "wait a little, then run the command again."),
        (Said("Half", ending="cut"), 125, "What came so far is not all; run the command again."),
        (Said(""), 0, "The model said nothing. Run the command again."),
        (Said("!{scripts/speak.sh again}"), 0, "Ask for less, or chat without --once and say 'go on'."),
    ],
)
def test_after_a_single_question_nothing_is_advised_that_needs_a_chat(
    tmp_path: Path, answer: Said | Failed, code: int, told: str
) -> None:
    with chat_server(answer) as server:
        words = chat_words(tmp_path, server, "--once", "hi", "--allow-scripts", "--policy", "trusted", "-y")
        ended = without_terminal(tmp_path, words)
    assert (ended.returncode, told in ended.stderr) == (code, True), ended.stderr
    assert "/retry" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "No model is named."),
        (["--model", "m", "--json"], "--json needs --once or --prompt-file."),
    ],
)
def test_wrong_usage_is_said(words: list[str], told: str) -> None:
    ended = CliRunner().invoke(chat_command, words, env={"OPENAI_API_KEY": KEY})
    assert (ended.exit_code, told in ended.output) == (2, True)


def test_without_a_key_nothing_is_asked_of_a_stranger() -> None:
    ended = CliRunner().invoke(chat_command, ["--model", "m", "--once", "hi"], env={"OPENAI_API_KEY": ""})
    assert str(ended.exception) == "There is no key for https://api.openai.com/v1. Put it into $OPENAI_API_KEY."


def test_a_projects_agent_file_gets_no_key_for_the_server_it_names(tmp_path: Path) -> None:
    with chat_server(Said("Hello.")) as server:
        words = chat_words(tmp_path, server, "--once", "hi", "--agent", "project.toml")
        (tmp_path / "workspace" / "project.toml").write_text(f'base_url = "{server.address}"\n')
        assert without_terminal(tmp_path, words).returncode == 0
        address = words.index("--base-url")
        ended = without_terminal(tmp_path, [*words[:address], *words[address + 2 :]])
        assert (ended.returncode, ended.stdout) == (0, "Hello.\n")
        assert server.keys == [f"Bearer {KEY}", "Bearer no-key"]
