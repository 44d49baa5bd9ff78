"""What real agent hosts met, in twelve facts, seen from where a host stands; where each is told in detail:

 1. A form of three cut lines         integrations/mcp/test_stdio.py, present/test_form.py, hosts/test_sittings.py
 2. Loading that blocked in silence   integrations/test_loading.py, integrations/mcp/test_approval.py
 3. Hosts that answer for a person    integrations/mcp/test_approval.py
 4. Skills that no model sees         integrations/mcp/test_being_found.py, integrations/test_catalog.py
 5. Harmless tools that are refused   integrations/mcp/test_being_found.py; a quick start: `make bench`
 6. Hosts without a page              hosts/test_pages.py
 7. A timeout that hid the output     integrations/test_stopped_scripts.py
 8. A form that is answered late      integrations/mcp/test_approval.py
 9. Questions and pages of the dead   integrations/mcp/test_approval.py, core/ask/test_approvals_between_processes.py
10. A host that approves itself       attacks/test_self_approval.py
11. Instructions full of escapes      present/test_skill_context.py
12. One manager, asking at one door   core/test_agent_facing.py, integrations/test_given_answers.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from support.asking import only_pending
from support.mcp_clients import ERAS, Conversation, answering, conversing, environment, over_stdio, text_of
from support.running import made_manager, records_of, wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, TRUSTED, SkillManager, World
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.mcp.server import create_server

DOCS = Path(__file__).parents[2] / "docs"
HELLO = {"scripts/hello.sh": 'echo "hello $1"\n'}
LEGACY, MODERN = ERAS


@contextmanager
def talking(folder: Path, era: str = LEGACY, *, has_form: bool = True, **settings: Any) -> Iterator[Conversation]:
    with (
        made_manager(folder, HELLO, policy=GUARDED) as manager,
        conversing(create_server(manager, **settings), folder, era=era, has_form=has_form) as talk,
    ):
        yield talk


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Conversation]:
    """By the program as a host starts it; the host shows no form."""
    skill_folder(folder / "skills", "demo", files=HELLO)
    with conversing(over_stdio(folder, *options), folder, era=LEGACY, has_form=False) as talk:
        yield talk


# 1.


def test_a_form_of_three_lines_says_what_would_run_its_risks_and_its_reach(tmp_path: Path) -> None:
    with talking(tmp_path, approval_wait=0.1) as talk:
        talk.add_skill("probe", {"scripts/go.sh": "curl http://example.org\n"})
        talk.run("probe", "go", "--now", "two words")
        (form,) = talk.person.forms
    first, risks, reach = (line[:80].strip() for line in form.message.splitlines()[:3])
    assert first == 'Run probe: scripts/go.sh --now "two words"'
    assert risks == "Risks: network"
    assert reach.startswith("Reach: no network")
    assert form.requested_schema["properties"]["answer"]["title"] == first, "where only the field is shown, too"
    assert "```" not in form.message


# 2.


def test_loading_does_not_wait_for_whoever_answers_elsewhere(tmp_path: Path) -> None:
    with talking(tmp_path, has_form=False, approval_wait=3600) as talk, World(tmp_path / "state") as world:
        talk.add_skill("loads", HELLO, body="Greet them. Run `scripts/hello.sh all`.\n")
        told = text_of(talk.start("load_skill", skill_name="loads").result(20))
        assert "Greet them." in told
        assert 'status="waiting"' in told
        world.answer(only_pending(world).id, "yes_once", "page")
        assert "hello all" in text_of(talk.call("load_skill", skill_name="loads"))


# 3.


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_host_that_answers_by_itself_is_not_taken_for_a_person(tmp_path: Path, action: Any) -> None:
    with talking(tmp_path, approval_wait=0.1) as talk, World(tmp_path / "state") as world:
        talk.person.says = types.ElicitResult(action=action)
        told = text_of(talk.run("demo", "hello"))
        assert only_pending(world).title, "the question waits for a person"
    assert "--ask-locally" in told
    (refused,) = records_of(tmp_path)
    assert "Declined by a person" not in str(refused.fields["reasons"])
    assert re.search(r"after \d+ ms", str(refused.fields["reasons"]))


# 4.


@pytest.mark.parametrize("era", ERAS)
def test_a_model_knows_each_skill_before_it_calls_anything(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era) as talk:
        talk.add_skill("tides", {}, frontmatter="name: tides\ndescription: Tell when the tide is high.")
    with talking(tmp_path, era) as talk:
        told = talk.client.instructions or talk.ask("server/discover")["instructions"]
        tools = talk.tools()
    assert "- tides: Tell when the tide is high." in told
    assert all((tool.meta or {}).get("anthropic/alwaysLoad") is True for tool in tools)
    assert not [tool.name for tool in tools if (tool.description or "").splitlines()[0].endswith(":")], (
        "some show one line"
    )


# 5.


@pytest.mark.parametrize("name", ["read_skill_file", "load_skill"])
def test_a_tool_that_runs_nothing_says_so_of_itself(tmp_path: Path, name: str) -> None:
    policy = replace(GUARDED, run_on_load="never") if name == "load_skill" else GUARDED
    with (
        made_manager(tmp_path, HELLO, policy=policy) as manager,
        conversing(create_server(manager), tmp_path, era=LEGACY) as talk,
    ):
        hints = {tool.name: tool.annotations for tool in talk.tools()}
    said, runs = hints[name], hints["skills_run_script"]
    assert said is not None
    assert (said.destructive_hint, said.open_world_hint) == (False, False)
    assert runs is None or (runs.destructive_hint, runs.read_only_hint) != (False, True)


# 6.


@pytest.mark.parametrize(
    "host",
    ["claude-code", "cline", "codex", "continue", "copilot", "gemini", "goose", "inspector", "opencode", "qwen"],
)
def test_every_host_has_a_page_that_says_how_it_is_set_up_and_what_passes_us_by(host: str) -> None:
    page = (DOCS / f"how-to/hosts/{host}.md").read_text(encoding="utf-8")
    assert "skillkit mcp" in page.replace('"', " ").replace(",", " ") or "mcp" in page
    assert host == "inspector" or "passes skillkit by" in page


def test_a_header_for_claude_code_comes_last() -> None:
    page = (DOCS / "how-to/mcp.md").read_text(encoding="utf-8").replace("\\\n>", "")
    (command,) = re.findall(r"claude mcp add .*--header.*", page)
    assert re.search(r" skillkit http\S+ +--header ", command), command


# 7.


def test_a_model_reads_what_a_script_printed_before_its_timeout(tmp_path: Path) -> None:
    files = {"scripts/hang.sh": 'for n in $(seq 30); do echo "line $n"; done\nsleep 30\n'}
    with made_manager(tmp_path, files, policy=replace(TRUSTED, timeout_seconds=1)) as manager:
        told = SkillFunctions(manager).call("skills_run_script", {"skill_name": "demo", "script": "hang"}).content
    assert told.startswith("".join(f"line {number}\n" for number in range(1, 31)))
    assert "Timeout" in told


# 8.


def test_a_form_that_is_answered_after_eleven_minutes_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    with talking(tmp_path, MODERN, approval_wait=0.1) as talk:

        async def called(**more: Any) -> Any:
            return await talk.client.session.call_tool("skills_run_script", given, allow_input_required=True, **more)

        asked = talk.portal.call(called)
        for clock in (time.time, time.monotonic):
            monkeypatch.setattr(time, clock.__name__, lambda clock=clock: clock() + 60 * 11)
        answer = {"request_state": asked.request_state, "input_responses": {"approval": answering("yes_once")}}
        assert text_of(talk.portal.start_task_soon(lambda: called(**answer)).result(60)) == "hello \n"


# 9.


def test_the_question_of_a_server_that_was_killed_dies_with_it(tmp_path: Path) -> None:
    with World(tmp_path / "state") as world, served(tmp_path, "--approval-wait", "0.1") as talk:
        talk.run("demo", "hello")
        only_pending(world)
        os.kill(own_server(tmp_path), 9)
        assert wait_for(lambda: not world.pending())


def test_the_address_that_a_model_was_told_is_the_next_page_s_too(tmp_path: Path) -> None:
    told = set()
    for _ in range(2):
        with served(tmp_path, "--approval-wait", "0.1") as talk:
            told |= set(re.findall(r"http://127\.0\.0\.1:\d+", text_of(talk.run("demo", "hello"))))
    assert len(told) == 1


def own_server(folder: Path) -> int:
    """The child of this process that serves the folder."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines() if str(folder / "skills") in line]
    (found,) = [int(pid) for pid, parent, _ in rows if int(parent) == os.getpid()]
    return found


# 10.


def test_the_shell_of_the_host_cannot_approve_its_own_call(tmp_path: Path) -> None:
    with World(tmp_path / "state") as world, served(tmp_path, "--approval-wait", "0.1") as talk:
        talk.run("demo", "hello")
        request = only_pending(world)
        command = [sys.executable, "-m", "skillkit", "approvals", "answer", request.id, "yes_once"]
        typed = subprocess.run(
            command,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )
        assert typed.returncode == 126, typed.stdout
        assert "a person's to give" in typed.stderr
        assert [each.id for each in world.pending()] == [request.id]


# 11.


def test_a_model_reads_instructions_as_they_were_written(tmp_path: Path) -> None:
    written = 'Run `make && ./go <file> > "out"`, then & only then ]]> stop.'
    with made_manager(tmp_path, HELLO, policy=GUARDED) as manager:
        skill_folder(tmp_path / "skills", "demo", files=HELLO, body=f"{written}\n")
        manager.discover()
        envelope = SkillFunctions(manager).call("load_skill", {"skill_name": "demo"}).content
    assert written.partition(" ]]>")[0] in envelope, "not a character is escaped"
    assert written in (ET.fromstring(envelope).findtext("instructions") or ""), "and it is well-formed"


# 12.


def test_one_manager_asks_at_every_door_that_a_model_comes_through(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files=HELLO)
    with SkillManager(tmp_path / "skills", "", [], [], state_dir=tmp_path / "state") as manager:
        prepared = manager.prepare_skill_script("demo", "hello", agent_facing=True)
        assert prepared.request is not None
        called = SkillFunctions(manager).call("skills_run_script", {"skill_name": "demo", "script": "hello"})
        assert called.is_error, "nobody is there to ask"
