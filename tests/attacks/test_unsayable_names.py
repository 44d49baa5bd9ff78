"""Names that the system cannot be told, as half a surrogate pair: an error of ours and a record, never a crash."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError
from support.running import made_manager, records_of
from support.skill_folders import skill_folder

from skillkit import GUARDED, TRUSTED, ConfigurationError, ScriptExecutor, SkillKitError, SkillManager
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor
from skillkit.integrations.langchain import create_langchain_tools
from skillkit.integrations.mcp.stdio import mend

pytestmark = pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX")

HALVES = ["\ud800", "run\ud800.sh", "scripts/\udfff.sh", "/tmp/\ud800", "\ud800/../run.sh", "~\ud800/x", "\0", "/\0"]

Attempt = Callable[[SkillManager, str], object]


class Named:
    def __init__(self, name: str) -> None:
        self.name = self.version = name


def executed(manager: SkillManager, script: str, folder: str, named: object) -> object:
    executor = ScriptExecutor(policy=manager.policy, state_dir=manager.state_dir)
    try:
        return executor.execute(script, {}, folder, named)
    finally:
        executor.close()


def folder_of(manager: SkillManager) -> str:
    return str(manager.load_skill("demo").base_directory)


REFUSED: dict[str, Attempt] = {
    "script": lambda manager, name: manager.execute_skill_script("demo", name),
    "skill": lambda manager, name: manager.execute_skill_script(name, "run.sh"),
    "argument": lambda manager, name: manager.execute_skill_script("demo", "run.sh", argv=[name]),
    "awaited": lambda manager, name: asyncio.run(manager.aexecute_skill_script("demo", name)),
    "prepared": lambda manager, name: manager.complete_skill_script(manager.prepare_skill_script("demo", name)),
    "executor": lambda manager, name: executed(manager, name, folder_of(manager), Named("demo")),
    "folder": lambda manager, name: executed(manager, "scripts/run.sh", f"/tmp/{name}", Named("demo")),
    "own name": lambda manager, name: executed(manager, "scripts/run.sh", folder_of(manager), Named(name)),
    "function": lambda manager, name: SkillFunctions(manager, session_id=name).call(
        "skills_run_script", {"skill_name": "demo", "script": name}, tool_use_id=name
    ),
    "function as JSON": lambda manager, name: SkillFunctions(manager).call(
        "skills_run_script", json.dumps({"skill_name": name, "script": name})
    ),
    "program": lambda manager, name: InlineProcessor(manager).feed(f"%{{{name}}}"),
    "command": lambda manager, name: InlineProcessor(manager).feed(f"!{{demo:scripts/{name}}}"),
    "command of a skill": lambda manager, name: InlineProcessor(manager).feed(f"!{{{name}:scripts/run.sh}}"),
    "workspace": lambda manager, name: manager.execute_skill_script("demo", "run.sh", workspace=f"/tmp/{name}"),
}


def test_control_the_system_cannot_be_told_such_a_name() -> None:
    for name in HALVES:
        with pytest.raises(ValueError, match=r"surrogates not allowed|embedded null"):
            os.stat(name)


@pytest.mark.parametrize("policy", [TRUSTED, GUARDED], ids=["trusted", "guarded"])
@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_a_name_that_cannot_be_said_is_refused_on_record(tmp_path: Path, attempt: Attempt, policy: object) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:  # type: ignore[arg-type]
        for number, name in enumerate(HALVES, start=1):
            try:
                attempt(manager, name)
            except SkillKitError as error:
                str(error).encode("utf-8")
            kinds = [record.kind for record in records_of(tmp_path)]
            assert kinds == ["refused"] * number, name


@pytest.mark.parametrize("half", HALVES)
def test_folders_of_such_a_name_are_impossible_settings(tmp_path: Path, half: str) -> None:
    name = f"{tmp_path}/{half}"
    for settings in (
        {"project_skill_dir": name},
        {"plugin_dirs": [name]},
        {"additional_search_paths": [name]},
        {"workspace": name},
        {"state_dir": name},
    ):
        with pytest.raises(ConfigurationError):
            SkillManager(**{"project_skill_dir": "", "anthropic_config_dir": "", "plugin_dirs": [], **settings})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        ScriptExecutor(state_dir=name)


@pytest.mark.parametrize("name", HALVES)
def test_a_session_of_such_a_name_runs_and_is_on_record(tmp_path: Path, name: str) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        assert manager.execute_skill_script("demo", "run.sh", session_id=name).stdout == "ran\n"
    for record in records_of(tmp_path):
        json.dumps(record.fields, ensure_ascii=False).encode("utf-8")


ODD_FILES = (b"scripts/b\xff.sh", b"references/c\xff.md", b"d\xff.txt", b"scripts/\xe2\x28/x.sh")


@pytest.fixture
def odd(tmp_path: Path) -> SkillManager:
    """A skill with files whose names are no UTF-8, beside a skill whose folder's name is none."""
    manager = made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=GUARDED)
    roots = os.fsencode(tmp_path / "skills")
    for relative in (*(b"demo/" + name for name in ODD_FILES), b"odd\xff/scripts/a.sh"):
        path = os.path.join(roots, relative)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("echo odd\n")
    with open(os.path.join(roots, b"odd\xff/SKILL.md"), "w", encoding="utf-8") as file:
        file.write("---\ndescription: Odd.\n---\nRun `scripts/a.sh`.\n")
    return manager


def test_files_on_disk_whose_names_are_no_utf_8_stop_no_surface(odd: SkillManager) -> None:
    functions = SkillFunctions(odd)
    with odd:
        json.dumps(functions.openai_tools(), ensure_ascii=False).encode("utf-8")
        for skill in odd.list_skills():
            skill.name.encode("utf-8")
            odd.invoke_skill(skill.name).encode("utf-8")
            functions.load_skill(skill.name).content.encode("utf-8")
            for script in odd.list_scripts(skill.name):
                answer = functions.call("skills_run_script", {"skill_name": skill.name, "script": str(script.path)})
                answer.content.encode("utf-8")
        functions.call("skills_run_script", {"skill_name": "demo", "script": "none"}).content.encode("utf-8")
        for tool in create_langchain_tools(odd):
            f"{tool.name}: {tool.description}".encode()
            assert isinstance(tool.invoke({}), str)


def test_a_script_whose_name_is_no_utf_8_runs_and_is_on_record(tmp_path: Path, odd: SkillManager) -> None:
    with odd, made_manager(tmp_path) as trusted:
        assert trusted.execute_skill_script("demo", "b\udcff.sh").stdout == "odd\n"
        assert [record.fields["script"] for record in records_of(tmp_path)] == ["scripts/b\\udcff.sh"] * 2


@pytest.mark.parametrize("words", [[b"demo", b"none\xff"], [b"none\xff", b"x"], [b"demo", b"\xed\xa0\x80"]])
def test_the_command_line_refuses_on_record_what_is_no_utf_8(
    tmp_path: Path, odd: SkillManager, words: list[bytes]
) -> None:
    odd.close()
    command: list[str | bytes] = [sys.executable, "-m", "skillkit", "run", "--skills", str(tmp_path / "skills"), *words]
    environment = {**os.environ, "SKILLKIT_STATE_DIR": str(tmp_path / "state"), "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (127, False), ended.stderr
    assert [record.kind for record in records_of(tmp_path)] == ["refused"]


HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


def test_a_client_that_sends_half_a_character_gets_its_answer_on_record(tmp_path: Path) -> None:
    """Over stdio, as the bytes come; the control is that the protocol's own reader takes no such message."""
    skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo ran\n"})
    calls = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "skills_run_script", "arguments": {"skill_name": "demo", "script": name}},
        }
        for number, name in enumerate(HALVES, start=1)
    ]
    with pytest.raises(ValidationError, match="Invalid JSON"):
        jsonrpc_message_adapter.validate_json(json.dumps(calls[0]))
    command = [sys.executable, "-m", "skillkit", "mcp", "--skills", str(tmp_path / "skills")]
    environment = {**os.environ, "SKILLKIT_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls):
            server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        answered = [json.loads(server.stdout.readline())["id"] for _ in range(len(calls) + 1)]
        server.stdin.close()
    assert sorted(answered) == list(range(len(calls) + 1))
    assert [record.kind for record in records_of(tmp_path)] == ["refused"] * len(calls)


@given(st.recursive(st.text(st.sampled_from('a\\"u\ud800\udfff\U0001f600d8'), max_size=8), st.lists))
def test_what_is_no_half_character_comes_through_unchanged(value: object) -> None:
    written = json.dumps(value)
    mended_value = json.loads(mend(written))
    json.dumps(mended_value, ensure_ascii=False).encode("utf-8")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        assert mended_value != value
    else:
        assert mend(written) == written
