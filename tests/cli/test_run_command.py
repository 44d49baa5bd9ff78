"""`skillkit run`, run as a user runs it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.running import STORM, beats_go_on, kinds, only_record, wait_for
from support.skill_folders import skill_folder

from skillkit.core.run.tiers import machine_tiers

SCRIPTS = {
    "scripts/echo.sh": 'cat; echo "$@"\n',
    "scripts/fail.sh": "echo half; echo broken >&2; exit 7\n",
    "scripts/slow.sh": "echo begun; sleep 30\n",
    "scripts/crash.sh": "kill -SEGV $$\n",
    "scripts/leaves.sh": 'mkdir "$SKILL_WORK_DIR/sub"; printf 123 > "$SKILL_WORK_DIR/sub/out.txt"\n',
    "scripts/waits.sh": 'echo first; until [ -e "$1" ]; do sleep 0.01; done; echo second\n',
    "scripts/storm.py": STORM,
    "scripts/where.sh": 'echo "${SKILL_WORKSPACE:-none}"\n',
    "scripts/flood.sh": "head -c 10000001 /dev/zero\n",
    "scripts/endless.sh": "while :; do echo line; done\n",
}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    front = "name: closed\ndescription: Closed.\nallowed-tools: Read\n"
    skill_folder(tmp_path / "skills", "closed", frontmatter=front, files={"scripts/run.sh": "echo ran\n"})
    return tmp_path / "skills"


def words_for(skills: Path, *words: str) -> list[str]:
    """Without walls, unless a policy is named: these are facts about the command, not about walls."""
    options = ["--skills", str(skills), "--state-dir", str(skills.parent / "state")]
    options += [] if "--policy" in words else ["--policy", "trusted"]
    split = words.index("--") if "--" in words else len(words)
    return [sys.executable, "-m", "skillkit", "run", *words[:split], *options, *words[split:]]


def run(skills: Path, *words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words_for(skills, *words), capture_output=True, text=True, check=False, timeout=60, **settings
    )


def started(skills: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words_for(skills, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_output_and_exit_code_are_the_scripts_own(skills: Path) -> None:
    ended = run(skills, "demo", "echo", "--", "--flag", "a b", "-x")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "--flag a b -x\n", "")
    ended = run(skills, "demo", "fail")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "half\n", "broken\n")


def test_a_timeout_is_124(skills: Path) -> None:
    ended = run(skills, "demo", "slow", "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (124, "begun\n")
    assert ended.stderr.startswith("skillkit: timed out after 1.")


def test_death_by_a_signal_is_128_and_its_number(skills: Path) -> None:
    ended = run(skills, "demo", "crash")
    assert (ended.returncode, ended.stderr) == (139, "skillkit: ended by SIGSEGV\n")


@pytest.mark.parametrize("words", [("nope", "run"), ("demo", "nope")])
def test_what_does_not_exist_is_127(skills: Path, words: tuple[str, str]) -> None:
    ended = run(skills, *words)
    assert (ended.returncode, ended.stdout) == (127, "")
    assert "nope" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(("closed", "run"), "Tool 'Bash' not allowed", id="tools"),
        pytest.param(("demo", "../../outside.sh"), "may not be used", id="path"),
        pytest.param(("demo", "echo", "--policy", "locked"), "does not allow scripts", id="locked"),
        pytest.param(("demo", "echo", "--policy", "guarded"), "needs a person's approval", id="guarded"),
    ],
)
def test_a_refusal_is_126_and_on_record(skills: Path, words: tuple[str, ...], reason: str) -> None:
    ended = run(skills, *words)
    assert (ended.returncode, ended.stdout) == (126, "")
    assert reason in ended.stderr
    assert kinds(skills.parent) == ["refused"]


def test_a_failure_of_ours_is_125_and_nothing_runs(skills: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    ended = run(skills, "demo", "waits", "--", str(tmp_path / "go"))
    assert (ended.returncode, ended.stdout) == (125, "")
    assert "a run that cannot be recorded does not start" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [("demo",), (), ("demo", "echo", "--nope")])
def test_wrong_usage_is_2(skills: Path, words: tuple[str, ...]) -> None:
    assert run(skills, *words).returncode == 2


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "601", "nan", "inf"])
def test_a_timeout_out_of_range_is_wrong_usage(skills: Path, seconds: str) -> None:
    ended = run(skills, "demo", "echo", "--timeout", seconds)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--timeout" in ended.stderr


@pytest.mark.parametrize("form", ["text", "file", "stdin"])
def test_input_comes_from_the_command_line_a_file_or_stdin(skills: Path, tmp_path: Path, form: str) -> None:
    text = '{"a": ["ä", 1]}'
    (tmp_path / "in.json").write_text(text, encoding="utf-8")
    given = {"text": text, "file": f"@{tmp_path}/in.json", "stdin": "-"}[form]
    ended = run(skills, "demo", "echo", "--input", given, input=text if form == "stdin" else "")
    assert (ended.returncode, ended.stdout) == (0, f"{text}\n")


def test_without_input_our_stdin_stays_ours(skills: Path) -> None:
    assert run(skills, "demo", "echo", input="not for the script").stdout == "\n"


@pytest.mark.parametrize("given", ["{", "@/nonexistent", "NaN", "[" * 100_000])
def test_input_that_is_no_json_is_an_error_and_no_traceback(skills: Path, given: str) -> None:
    ended = run(skills, "demo", "echo", "--input", given)
    assert (ended.returncode, ended.stdout) == (125, "")
    assert "JSON" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("form", ["file", "stdin"])
def test_plain_text_is_given_as_it_is(skills: Path, tmp_path: Path, form: str) -> None:
    text = "no JSON {\nä\n"
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    given = {"file": f"{tmp_path}/in.txt", "stdin": "-"}[form]
    ended = run(skills, "demo", "echo", "--stdin", given, input=text if form == "stdin" else "")
    assert (ended.returncode, ended.stdout) == (0, f"{text}\n"), ended.stderr


def test_json_and_plain_text_exclude_each_other(skills: Path) -> None:
    ended = run(skills, "demo", "echo", "--stdin", "-", "--input", "1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--input and --stdin both give the script its stdin" in ended.stderr


def test_plain_text_that_cannot_be_read_or_is_too_much_is_an_error(skills: Path) -> None:
    ended = run(skills, "demo", "echo", "--stdin", "/nonexistent")
    assert (ended.returncode, ended.stdout) == (125, "")
    assert "--stdin: '/nonexistent' cannot be read: No such file or directory." in ended.stderr
    ended = run(skills, "demo", "echo", "--stdin", "/dev/zero")
    assert (ended.returncode, ended.stdout) == (125, "")
    assert "the limit is 10,000,000" in ended.stderr


def test_output_is_shown_as_it_comes(skills: Path, tmp_path: Path) -> None:
    with started(skills, "demo", "waits", "--", str(tmp_path / "go")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        assert process.poll() is None
        (tmp_path / "go").touch()
        assert process.stdout.read() == "second\n"
    assert process.returncode == 0


def test_json_holds_the_whole_result(skills: Path) -> None:
    ended = run(skills, "demo", "fail", "--json")
    structure = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert structure["schema_version"] == 1
    assert {name: structure[name] for name in ("success", "stdout", "stderr", "exit_code", "timed_out", "signal")} == {
        "success": False,
        "stdout": "half\n",
        "stderr": "broken\n",
        "exit_code": 7,
        "timed_out": False,
        "signal": None,
    }
    assert structure["script_path"] == str((skills / "demo/scripts/fail.sh").resolve())
    assert structure["artifacts"] == structure["kept"] == []


def test_a_refusal_is_json_too(skills: Path) -> None:
    ended = run(skills, "closed", "run", "--json")
    assert ended.returncode == 126
    assert json.loads(ended.stdout)["error"]["type"] == "ToolRestrictionError"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("closed", "run"), "refused", 126),
        (("demo", "run-it", "--policy", "locked"), "not_found", 127),
        (("demo", "echo", "--policy", "locked"), "refused", 126),
        (("nowhere", "run"), "not_found", 127),
        (("demo", "echo", "--policy", "guarded"), "approval_unavailable", 126),
        (("demo", "echo"), "ok", 0),
        (("demo", "fail"), "failed", 7),
        (("demo", "slow", "--timeout", "1"), "timeout", 124),
    ],
)
def test_json_says_in_one_word_how_it_ended(skills: Path, words: tuple[str, ...], status: str, code: int) -> None:
    ended = run(skills, *words, "--json", start_new_session=True)
    structure = json.loads(ended.stdout)
    assert (structure["status"], structure["exit_code"], ended.returncode) == (status, code, code)


def test_a_pipe_of_the_shell_is_read(skills: Path) -> None:
    words = shlex.join(words_for(skills, "demo", "echo", "--input"))
    command = f"{words.replace('--input', '--input @<(echo 5)')}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "5\n"), ended.stderr


def test_a_link_to_a_key_of_yours_is_not_given_to_a_script(skills: Path, tmp_path: Path, private_home: Path) -> None:
    (private_home / ".aws").mkdir()
    (private_home / ".aws" / "token.json").write_text('{"key": "secret"}')
    (tmp_path / "own.json").write_text('{"key": "mine"}')
    for name, target in (("planted.json", private_home / ".aws/token.json"), ("linked.json", tmp_path / "own.json")):
        (tmp_path / name).symlink_to(target)
    refused = run(skills, "demo", "echo", "--input", f"@{tmp_path}/planted.json")
    assert "which no script is given" in refused.stderr
    assert "secret" not in refused.stdout + refused.stderr
    refused = run(skills, "demo", "echo", "--stdin", f"{tmp_path}/planted.json")
    assert "which no script is given" in refused.stderr
    assert "secret" not in refused.stdout + refused.stderr
    given = [run(skills, "demo", "echo", "--input", f"@{tmp_path}/linked.json").stdout]
    given += [run(skills, "demo", "echo", "--input", f"@{private_home}/.aws/token.json").stdout]
    assert ["mine" in given[0], "secret" in given[1]] == [True, True], "what a person names is what they mean"


def test_what_the_script_left_is_kept_where_asked(skills: Path, tmp_path: Path) -> None:
    ended = run(skills, "demo", "leaves", "--keep", str(tmp_path / "out"))
    assert (tmp_path / "out/sub/out.txt").read_text() == "123"
    assert (ended.returncode, ended.stderr) == (0, f"skillkit: kept {tmp_path}/out/sub/out.txt\n")
    ended = run(skills, "demo", "leaves")
    assert ended.stderr == "skillkit: 1 file left in the work folder; --keep DIR saves them\n"


def test_output_that_was_cut_is_told_with_the_limit_and_what_to_do(skills: Path) -> None:
    ended = run(skills, "demo", "flood")
    assert len(ended.stdout) == 10_000_000
    assert "skillkit: stdout cut at the limit of 10 MB; a script can leave more as a file, for --keep\n" in ended.stderr


def test_a_file_that_is_already_there_is_never_overwritten(skills: Path, tmp_path: Path) -> None:
    (tmp_path / "out/sub").mkdir(parents=True)
    (tmp_path / "out/sub/out.txt").write_text("mine")
    ended = run(skills, "demo", "leaves", "--keep", str(tmp_path / "out"))
    assert (tmp_path / "out/sub/out.txt").read_text() == "mine"
    assert ended.returncode == 125
    assert f"What the script left is in {tmp_path}/out-2 instead" in ended.stderr
    assert (tmp_path / "out-2/sub/out.txt").read_text() == "123", "the result is not lost"
    run(skills, "demo", "leaves", "--keep", str(tmp_path / "out"))
    assert (tmp_path / "out-3/sub/out.txt").read_text() == "123"
    ended = run(skills, "demo", "leaves", "--keep", ".", cwd=tmp_path / "out")
    assert (tmp_path / "out/kept-2/sub/out.txt").read_text() == "123", ended.stderr


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_runs(skills: Path, tmp_path: Path) -> None:
    ended = run(skills, "demo", "leaves", "--keep", "/proc/out")
    assert ended.returncode == 125
    assert "--keep: /proc/out cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "state").exists()


def test_a_folder_to_keep_things_in_is_not_left_behind_empty(skills: Path, tmp_path: Path) -> None:
    assert run(skills, "demo", "echo", "--keep", str(tmp_path / "out")).returncode == 0
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    assert run(skills, "demo", "echo", "--keep", str(tmp_path / "mine")).returncode == 0
    assert (tmp_path / "mine").is_dir()


def test_a_file_whose_name_is_not_utf8_is_shown_in_json(skills: Path, tmp_path: Path) -> None:
    (skills / "demo/scripts/odd.sh").write_text('touch "$SKILL_WORK_DIR/$(printf "\\377")"\n')
    ended = run(skills, "demo", "odd", "--json", "--keep", str(tmp_path / "out"))
    structure = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert Path(structure["artifacts"][0]["path"]).name == "\ufffd"
    assert Path(structure["kept"][0]).name == "\ufffd"
    assert os.listdir(os.fsencode(tmp_path / "out")) == [b"\xff"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_from_outside_kills_the_tree_and_is_on_record(
    skills: Path, tmp_path: Path, number: signal.Signals
) -> None:
    beats = tmp_path / "beats"
    beats.mkdir()
    with started(skills, "demo", "storm", "--", str(beats), "60") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "raging\n"
        process.send_signal(number)
        _, stderr = process.communicate(timeout=20)
    alive = beats_go_on(beats)
    (beats / "stop").touch()
    assert not alive
    assert process.returncode == 128 + number
    assert "Traceback" not in stderr
    assert kinds(tmp_path) == ["started", "finished"]
    record = only_record(tmp_path, "finished")
    assert record["error"].startswith(("KeyboardInterrupt", "SystemExit"))
    assert (record["signal"], record["stdout_bytes"], record["isolation"]["tier"]) == ("SIGKILL", 7, "none")
    assert record["duration_us"] > 0


def test_a_reader_that_has_seen_enough_ends_the_script_quietly(skills: Path) -> None:
    with started(skills, "demo", "endless", "--timeout", "30") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        began = time.monotonic()
        process.stdout.close()
        assert process.stderr is not None
        stderr = process.stderr.read()
        process.wait(20)
    assert time.monotonic() - began < 15
    assert "could not be started" not in stderr
    assert "Traceback" not in stderr


def test_the_workspace_is_the_current_folder_but_not_home_or_root(skills: Path, tmp_path: Path) -> None:
    home = tmp_path / "real-home"
    home.mkdir()
    (tmp_path / "home-link").symlink_to(home)
    environment = {**os.environ, "HOME": str(tmp_path / "home-link"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def where(cwd: Path) -> str:
        return run(skills, "demo", "where", cwd=cwd, env=environment).stdout.strip()

    (home / "project").mkdir()
    assert where(home / "project") == str(home / "project")
    assert where(home) == "none"
    assert where(tmp_path) == "none", "it holds the home folder"
    assert where(Path("/")) == "none"


def test_a_deleted_current_folder_is_no_obstacle(skills: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, subprocess, sys\nos.chdir(sys.argv[1])\nos.rmdir(sys.argv[1])\n"
        "sys.exit(subprocess.run(sys.argv[2:]).returncode)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(gone), *words_for(skills, "demo", "where")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    assert (ended.returncode, ended.stdout) == (0, "none\n"), ended.stderr


def test_hostile_names_are_shown_and_not_obeyed(skills: Path) -> None:
    ended = run(skills, "demo", "\x1b[31mred\u202e")
    assert ended.returncode == 127
    assert "\x1b" not in ended.stderr
    assert "\u202e" not in ended.stderr


def test_nothing_is_left_in_the_temporary_folder(skills: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    for words in (("demo", "leaves"), ("demo", "fail"), ("demo", "nope"), ("demo", "slow", "--timeout", "1")):
        run(skills, *words, env=environment)
    assert wait_for(lambda: list(temporary.iterdir()) == [], 1)


def walled(skills: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    skill_folder(skills, "demo", files={"scripts/reach.sh": text})
    if not any(attempt.sandbox for attempt in machine_tiers()):
        pytest.skip("no walls here")
    return run(skills, "demo", "reach", "--policy", "standard", *words, cwd=skills.parent)


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_a_path_that_is_not_there_is_no_silent_grant(skills: Path, option: str) -> None:
    mistyped = run(skills, "demo", "hello", option, "/nope")
    assert mistyped.returncode == 2
    assert "'/nope' does not exist" in mistyped.stderr


def test_a_hidden_file_is_explained_with_the_option_that_shows_it(skills: Path) -> None:
    hidden = skills.parent.parent / f"hidden-{skills.parent.name}"
    hidden.write_text("key\n")
    closed = walled(skills, f"cat {hidden}\n")
    opened = walled(skills, f"cat {hidden}\n", "--read", str(hidden))
    hidden.unlink()
    assert (closed.returncode, closed.stdout) == (1, "")
    (remark,) = [line for line in closed.stderr.splitlines() if line.startswith("skillkit: ")]
    assert f"--read {hidden}" in remark
    assert (opened.returncode, opened.stdout) == (0, "key\n")


def test_a_refused_write_is_explained_with_the_option_that_allows_it(skills: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    closed = walled(skills, f"echo text > {outside}/file\n", "--read", str(outside))
    assert (closed.returncode, (outside / "file").exists()) == (1, False)
    (remark,) = [line for line in closed.stderr.splitlines() if line.startswith("skillkit: ")]
    assert "--write" in remark
    opened = walled(skills, f"echo text > {outside}/file\n", "--write", str(outside))
    assert (opened.returncode, (outside / "file").read_text()) == (0, "text\n")


def test_a_blocked_connection_is_explained_with_the_option_that_allows_it(skills: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo connected\n"
        closed, opened = walled(skills, text), walled(skills, text, "--network")
    assert (closed.returncode, closed.stdout) == (1, "")
    (remark,) = [line for line in closed.stderr.splitlines() if line.startswith("skillkit: ")]
    assert "--network" in remark
    assert (opened.returncode, opened.stdout) == (0, "connected\n")
