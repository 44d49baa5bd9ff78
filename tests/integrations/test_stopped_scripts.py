"""What a script had printed before it was stopped reaches the model on every surface: first the output, then the mark."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.chats import talk_with
from support.inline_answers import outcomes_in, shown_by
from support.langchain_agents import message_of, tool_named
from support.mcp_clients import conversing, text_of
from support.model_servers import Said
from support.running import made_manager
from support.skill_folders import skill_folder

from skillkit import TRUSTED, ScriptExecutor, SkillManager
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor
from skillkit.integrations.mcp.server import create_server
from skillkit.present.tool_result import told_output

QUICK = replace(TRUSTED, timeout_seconds=1)
PRINTED = "".join(f"line {number}\n" for number in range(1, 31))
COUNT = 'for n in $(seq 30); do echo "line $n"; done\n'
SCRIPTS = {
    "scripts/hang.sh": f"{COUNT}sleep 30\n",
    "scripts/die.sh": f"{COUNT}kill -SEGV $$\n",
    "scripts/warn.sh": f"{COUNT}echo careful >&2\nsleep 30\n",
}
CALLED = {"skill_name": "demo"}
STOPPED = "\n\nIt was stopped after 1 second, its limit; --timeout SECONDS allows up to 600."
Told = Callable[[SkillManager, str], str]


def by_functions(manager: SkillManager, script: str) -> str:
    return SkillFunctions(manager).call("skills_run_script", {**CALLED, "script": script}).content


def by_loading(manager: SkillManager, script: str) -> str:
    (folder,) = [root.path for root in manager.roots]
    skill_folder(folder, "demo", files=SCRIPTS, body=f"Run `bash {script}`.\n")
    manager.discover()
    envelope = ET.fromstring(SkillFunctions(manager).call("load_skill", CALLED).content)
    return envelope.findtext("active_resources/script_output") or ""


def by_langchain(manager: SkillManager, script: str) -> str:
    return message_of(tool_named(manager, f"demo.{Path(script).stem}"), {}).text


def by_inline(manager: SkillManager, script: str) -> str:
    (outcome,) = outcomes_in(shown_by(InlineProcessor(manager), f"!{{{script}}}"))
    return outcome.output


def by_mcp(manager: SkillManager, script: str) -> str:
    with conversing(create_server(manager), manager.state_dir.parent, era="2026-07-28") as talk:
        return text_of(talk.run("demo", script))


SURFACES = [by_functions, by_loading, by_langchain, by_inline, by_mcp]


@pytest.fixture
def manager(tmp_path: Path) -> SkillManager:
    return made_manager(tmp_path, SCRIPTS, policy=QUICK)


@pytest.mark.parametrize("told", SURFACES)
@pytest.mark.parametrize(
    ("script", "end"),
    [("scripts/hang.sh", "Timeout"), ("scripts/die.sh", "Signal: SIGSEGV")],
)
def test_a_model_reads_what_was_printed_and_then_why_it_ended(
    manager: SkillManager, told: Told, script: str, end: str
) -> None:
    with manager:
        assert told(manager, script).removesuffix(STOPPED) == f"{PRINTED}{end}"


def test_a_word_on_stderr_does_not_hide_it_either(manager: SkillManager) -> None:
    with manager:
        assert by_functions(manager, "scripts/warn.sh") == f"{PRINTED}careful\nTimeout{STOPPED}"


def test_the_chat_s_model_reads_it_too(tmp_path: Path) -> None:
    call = ("skills_run_script", {**CALLED, "script": "scripts/long.sh"})
    with talk_with(tmp_path, Said("", (call,)), Said("It hangs."), tools=True, policy=QUICK) as story:
        (tmp_path / "skills/demo/scripts/long.sh").write_text(SCRIPTS["scripts/hang.sh"])
        story.talk.ask("run it")
        assert story.server.bodies[1]["messages"][-1]["content"] == f"{PRINTED}Timeout{STOPPED}"


def test_one_that_printed_nothing_is_told_by_the_mark_alone(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/hang.sh": "sleep 30\n"}, policy=QUICK) as manager:
        assert by_functions(manager, "scripts/hang.sh") == f"Timeout{STOPPED}"


def test_a_mark_for_cut_output_hides_no_other_output(tmp_path: Path) -> None:
    script = "echo found it\nhead -c 5000 /dev/zero | tr '\\0' '\\n' >&2\nexit 3\n"
    with made_manager(tmp_path, {"scripts/blank.sh": script}) as manager:
        skill = manager.load_skill("demo")
        executor = ScriptExecutor(max_output_size=1000, policy=TRUSTED, state_dir=manager.state_dir)
        result = executor.execute(Path("scripts/blank.sh"), None, skill.base_directory, skill.metadata)
    assert (result.stderr_truncated, result.exit_code) == (True, 3)
    assert told_output(result) == "found it\n"


def test_the_line_for_a_person_names_a_signal_once(manager: SkillManager) -> None:
    with manager:
        (outcome,) = outcomes_in(shown_by(InlineProcessor(manager), "%{scripts/die.sh}"))
    assert outcome.line == "[scripts/die.sh: failed, killed by SIGSEGV]"
