"""The MCP server's stdin and stdout carry the protocol: no script may read the one or write to the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcp_clients import command_for, environment
from support.running import anybody_runs, kinds, records_of, wait_for
from support.skill_folders import skill_folder

FORGED = '{"jsonrpc": "2.0", "method": "notifications/forged"}'
TO_PARENT = f"for n in 0 1; do echo '{FORGED}' > /proc/$PPID/fd/$n; done 2>/dev/null; echo tried\n"
TO_EVERYBODY = f"""
for place in /proc/[0-9]*/fd/*; do
    [ -p "$place" ] && [ "${{place%%/fd/*}}" != "/proc/$$" ] && echo '{FORGED}' > "$place"
done 2>/dev/null
echo tried
"""
FROM_PARENT = "timeout 2.125 head -c 20 /proc/$PPID/fd/0 2>/dev/null; head -c 20; echo read\n"
SCRIPTS = {
    "scripts/parent.sh": TO_PARENT,
    "scripts/everybody.sh": TO_EVERYBODY,
    "scripts/reads.sh": FROM_PARENT,
    "scripts/shouts.sh": f"echo '{FORGED}'; echo noise >&2\n",
    "scripts/waits.sh": 'exec -a "$1" sleep 300\n',
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Wire:
    """The bare protocol: every line that the server writes is kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.ids = iter(range(1, 1000))

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self.ids)
        self.tell({"id": number, "method": method, "params": params})
        return self.answer(number)

    def answer(self, number: object) -> dict[str, Any]:
        """To the request of this id; other lines may come before."""
        assert self.process.stdout is not None
        while not (found := [line for line in self.lines if line.get("id") == number]):
            self.lines.append(json.loads(self.process.stdout.readline()))
        result = found[0]["result"]
        assert isinstance(result, dict)
        return result

    def run(self, script: str) -> str:
        given = {"skill_name": "demo", "script": script}
        return str(self.ask("tools/call", name="skills_run_script", arguments=given)["content"][0]["text"])


@contextmanager
def wire(folder: Path, policy: str) -> Iterator[Wire]:
    skill_folder(folder / "skills", "demo", files=SCRIPTS)
    with subprocess.Popen(
        command_for(folder, "--policy", policy),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            talk = Wire(process)
            talk.ask("initialize", **HELLO)
            talk.tell({"method": "notifications/initialized"})
            yield talk
            if process.stdin is not None:
                process.stdin.close()
            process.wait(30)  # by itself, so that it takes its work folders along
        finally:
            process.kill()


@pytest.mark.parametrize("policy", ["standard", "trusted"])
def test_what_scripts_write_never_reaches_the_client(tmp_path: Path, policy: str) -> None:
    attacks = ["parent", "shouts"] if policy == "trusted" else ["parent", "everybody", "shouts"]
    with wire(tmp_path, policy) as talk:
        said = [talk.run(script) for script in attacks]
        output, _ = talk.process.communicate(timeout=60)
    assert all(text.endswith("tried\n") for text in said[:-1]), "inside walls, a parent's stdout is the script's own"
    assert FORGED in said[-1], "it comes back as the script's output, and only so"
    assert output == ""
    assert [line.get("method") for line in talk.lines] == [None] * len(talk.lines)


@pytest.mark.parametrize("policy", ["standard", "trusted"])
def test_no_script_reads_what_the_client_sends(tmp_path: Path, policy: str) -> None:
    with wire(tmp_path, policy) as talk:
        given = {"skill_name": "demo", "script": "reads"}
        talk.tell({"id": "slow", "method": "tools/call", "params": {"name": "skills_run_script", "arguments": given}})
        assert wait_for(lambda: "finished" in kinds(tmp_path) or anybody_runs("2.125"), 30)
        for _ in range(10):
            talk.ask("ping")
        answer = talk.answer("slow")
    assert answer["content"][0]["text"] == "read\n"


def test_the_same_script_corrupts_a_plain_server(tmp_path: Path) -> None:
    """The positive control."""
    script = tmp_path / "parent.sh"
    script.write_text(TO_PARENT)
    plain = f"import subprocess; subprocess.run(['bash', {str(script)!r}], stdout=subprocess.DEVNULL); print('done')"
    ended = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True, timeout=60)
    assert FORGED in ended.stdout


def test_what_a_library_prints_goes_to_stderr(tmp_path: Path) -> None:
    program = """
import os, sys
from skillkit import TRUSTED, SkillManager
from skillkit.integrations.mcp.server import create_server
from skillkit.integrations.mcp.stdio import serve_stdio
manager = SkillManager(sys.argv[1], "", [], [], policy=TRUSTED)
server = create_server(manager)
listed = server.get_request_handler("tools/list").handler
async def chatty(ctx, params):
    print("printed by a library", flush=True)
    os.write(1, b"written by a library\\n")
    return await listed(ctx, params)
import mcp_types
server.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, chatty)
serve_stdio(server)
print("after serving", flush=True)
"""
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "skills")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as process:
        talk = Wire(process)
        talk.ask("initialize", **HELLO)
        talk.tell({"method": "notifications/initialized"})
        assert len(talk.ask("tools/list")["tools"]) == 4
        output, errors = process.communicate(timeout=60)
    assert output == "after serving\n"
    assert errors.splitlines() == ["printed by a library", "written by a library"]


@pytest.mark.parametrize("ending", ["closed", "terminated"])
def test_no_script_outlives_the_server(tmp_path: Path, ending: str) -> None:
    mark = f"outlives-{os.getpid()}-{ending}"
    with wire(tmp_path, "standard") as talk:
        given = {"skill_name": "demo", "script": "waits", "args": [mark]}
        talk.tell({"id": 77, "method": "tools/call", "params": {"name": "skills_run_script", "arguments": given}})
        assert wait_for(lambda: anybody_runs(mark), 30)
        assert talk.process.stdin is not None
        if ending == "closed":
            talk.process.stdin.close()
        else:
            talk.process.send_signal(signal.SIGTERM)
        assert talk.process.wait(30) == 0
        assert wait_for(lambda: not anybody_runs(mark))
    assert [(each.kind, each.fields.get("cancelled")) for each in records_of(tmp_path)][-1] == ("finished", True)
