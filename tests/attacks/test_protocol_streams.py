"""A program whose stdin and stdout carry a protocol: no script may read the one or write to the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import made_manager, wait_for

# A server that speaks JSON lines: for each line it reads it answers with one.
SERVER = """
import json, sys
from skillkit import TRUSTED, SkillManager
manager = SkillManager(sys.argv[1], "", [], [], policy=TRUSTED, state_dir=sys.argv[2])
for line in sys.stdin:
    result = manager.execute_skill_script("demo", json.loads(line))
    print(json.dumps([result.exit_code, result.stdout, result.stderr]), flush=True)
manager.close()
"""

PLAIN_SERVER = """
import json, subprocess, sys
line = sys.stdin.readline()
subprocess.run(["bash", sys.argv[1]])
print(json.dumps(sys.stdin.readline()), flush=True)
"""

SCRIPTS = {
    "scripts/reads.sh": "head -c 1000; echo read\n",
    "scripts/shouts.sh": "echo '{\"forged\": true}'; echo noise >&2\n",
    "scripts/terminal.sh": "(echo forged > /dev/tty) 2>/dev/null || echo none\n",
}


def served(tmp_path: Path, *requests: str) -> subprocess.CompletedProcess[str]:
    made_manager(tmp_path, SCRIPTS).close()
    return subprocess.run(
        [sys.executable, "-c", SERVER, str(tmp_path / "skills"), str(tmp_path / "state")],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def test_control_with_plain_subprocess_a_script_swallows_the_next_request(tmp_path: Path) -> None:
    (tmp_path / "reads.sh").write_text('touch "$(dirname "$0")/reading"; cat >/dev/null\n')
    with subprocess.Popen(
        [sys.executable, "-u", "-c", PLAIN_SERVER, str(tmp_path / "reads.sh")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        server.stdin.write("first\n")
        server.stdin.flush()
        assert wait_for((tmp_path / "reading").exists)
        server.stdin.write("second\n")
        server.stdin.close()
        assert server.stdout is not None
        assert json.loads(server.stdout.read()) == ""


@pytest.mark.parametrize("name", ["reads.sh", "shouts.sh", "terminal.sh"])
def test_requests_are_not_swallowed_and_answers_not_mixed(tmp_path: Path, name: str) -> None:
    ended = served(tmp_path, name, name)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    expected = {
        "reads.sh": [0, "read\n", ""],
        "shouts.sh": [0, '{"forged": true}\n', "noise\n"],
        "terminal.sh": [0, "none\n", ""],
    }[name]
    assert answers == [expected, expected]
    assert ended.stderr == ""


def test_warnings_of_ours_do_not_go_to_the_programs_streams(tmp_path: Path) -> None:
    made_manager(tmp_path, {"scripts/run.sh": "kill -9 $$\n"}).close()
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            SERVER.replace("policy=TRUSTED, ", ""),
            str(tmp_path / "skills"),
            str(tmp_path / "state"),
        ],
        input='"run"\n',
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert json.loads(ended.stdout) == [-9, "", "Signal: SIGKILL"]
    assert ended.stderr == ""
