"""SkillManager.execute_skill_script: what a caller can rely on, on real scripts."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.running import (
    kinds,
    made_manager,
    needs,
    only_record,
    ordinary_user,
    records_of,
    runnable,
    said_by_user,
)
from support.skill_folders import skill_folder

import skillkit
from skillkit import (
    GUARDED,
    LOCKED,
    STANDARD,
    TRUSTED,
    ApprovalUnavailableError,
    ArgumentSerializationError,
    ArgumentSizeError,
    AuditUnavailableError,
    ConfigurationError,
    InterpreterNotAllowedError,
    InterpreterNotFoundError,
    Limits,
    PathSecurityError,
    SandboxUnavailableError,
    ScriptExecutionResult,
    ScriptNotFoundError,
    ScriptPermissionError,
    ScriptPolicy,
    ScriptRefusedError,
    SkillKitError,
    SkillManager,
    SkillNotFoundError,
    ToolRestrictionError,
)
from skillkit.core.run import tiers, work
from skillkit.core.run.sandbox.base import descriptor

# Each answers with its arguments from stdin, its words, its folder and its skill's name.
ECHOES = {
    "python3": (
        "scripts/extract.py",
        "import json, os, sys\n"
        "print(json.dumps([json.load(sys.stdin), sys.argv[1:], os.getcwd(), os.environ['SKILL_NAME']]))\n",
    ),
    "bash": (
        "scripts/extract.sh",
        'words=$(printf \',"%s"\' "$@")\nprintf \'[%s,[%s],"%s","%s"]\\n\' "$(cat)" "${words:1}" "$PWD" "$SKILL_NAME"\n',
    ),
    "node": (
        "scripts/extract.js",
        "const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        "console.log(JSON.stringify([given, process.argv.slice(2), process.cwd(), process.env.SKILL_NAME]));\n",
    ),
    "ruby": (
        "scripts/extract.rb",
        "require 'json'\nputs JSON.generate([JSON.parse(STDIN.read), ARGV, Dir.pwd, ENV['SKILL_NAME']])\n",
    ),
    "perl": (
        "scripts/extract.pl",
        "use JSON::PP; use Cwd; local $/;\n"
        "print encode_json([decode_json(<STDIN>), [@ARGV], getcwd(), $ENV{SKILL_NAME}]), qq(\\n);\n",
    ),
}

WRITES_A_FILE = 'echo ran > "$1"\n'


@pytest.mark.parametrize("program", ECHOES)
def test_a_script_gets_json_on_stdin_its_words_and_the_skills_folder(tmp_path: Path, program: str) -> None:
    needs(program)
    name, text = ECHOES[program]
    with made_manager(tmp_path, {name: text}) as manager:
        result = manager.execute_skill_script(
            "demo", "extract", {"file_path": "/path/to/doc.pdf"}, argv=["--fast", "a b"]
        )
    base = (tmp_path / "skills" / "demo").resolve()
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == [{"file_path": "/path/to/doc.pdf"}, ["--fast", "a b"], str(base), "demo"]
    assert result.script_path == base / name
    assert result.success
    assert 0 < result.execution_time_ms < 60_000


def test_transformed_data_is_in_stdout(tmp_path: Path) -> None:
    with runnable(
        tmp_path, "import json, sys\nprint(sorted(json.load(sys.stdin)))\n", name="scripts/sort.py"
    ) as manager:
        assert manager.execute_skill_script("demo", "sort", [3, 1, 2]).stdout == "[1, 2, 3]\n"


def test_a_failure_is_a_result_with_what_the_script_said(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo half; echo 'no such table' >&2; exit 3\n") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.stderr, result.exit_code) == ("half\n", "no such table\n", 3)
    assert (result.success, result.timeout, result.signaled, result.cancelled) == (False, False, False, False)


@pytest.mark.parametrize(
    "name", ["scripts/utils/parser.py", "utils/parser.py", "parser.py", "parser", "utils/parser", "./utils//parser.py"]
)
def test_a_nested_script_is_found_by_path_name_or_stem(tmp_path: Path, name: str) -> None:
    with runnable(tmp_path, "print('parsed')\n", name="scripts/utils/parser.py") as manager:
        assert manager.execute_skill_script("demo", name).stdout == "parsed\n"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM"])
def test_death_by_a_signal_is_told_by_name_and_number(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    number = signal.Signals[name].value
    with runnable(tmp_path, f"echo before >&2; kill -{number} $$; sleep 5\n") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.exit_code, result.signal, result.signal_number) == (-number, name, number)
    assert result.stderr == f"before\nSignal: {name}"
    assert (result.signaled, result.success, result.timeout) == (True, False, False)
    (logged,) = [record for record in caplog.records if record.name == "skillkit.run"]
    assert (logged.levelno, logged.getMessage()) == (logging.ERROR, f"demo: scripts/run.sh died of {name}")
    assert only_record(tmp_path, "finished")["signal"] == name


def test_a_segmentation_fault_with_nothing_said_leaves_only_the_signal(tmp_path: Path) -> None:
    with runnable(tmp_path, "import os\nos.kill(os.getpid(), 11)\n", name="scripts/crash.py") as manager:
        result = manager.execute_skill_script("demo", "crash")
    assert (result.exit_code, result.stderr) == (-11, "Signal: SIGSEGV")


def test_an_endless_script_ends_at_its_timeout_with_124(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with runnable(tmp_path, "echo begun; echo warning >&2; while :; do :; done\n") as manager:
        result = manager.execute_skill_script("demo", "run", timeout=1)
    assert (result.exit_code, result.stdout, result.stderr) == (124, "begun\n", "warning\nTimeout")
    assert (result.timed_out, result.timeout, result.success, result.signaled) == (True, True, False, False)
    assert 1000 <= result.execution_time_ms < 3000
    (logged,) = [record for record in caplog.records if record.name == "skillkit.run"]
    assert (logged.levelno, logged.getMessage()) == (logging.WARNING, "demo: scripts/run.sh timed out after 1 s")
    assert only_record(tmp_path, "finished")["timed_out"] is True


def test_a_script_that_ignores_sigterm_times_out_all_the_same(tmp_path: Path) -> None:
    with runnable(tmp_path, "trap '' TERM INT HUP; while :; do sleep 0.05; done\n") as manager:
        assert manager.execute_skill_script("demo", "run", timeout=1).timed_out


def test_the_time_limit_is_the_calls_else_the_managers_else_the_policys(tmp_path: Path) -> None:
    def limits(**settings: Any) -> float:
        manager = SkillManager("", "", [], [], **settings)
        return manager.default_script_timeout

    assert limits() == 30
    assert limits(default_script_timeout=60) == 60
    assert limits(policy=ScriptPolicy(timeout_seconds=300)) == 300
    assert limits(policy=ScriptPolicy(timeout_seconds=300), default_script_timeout=5) == 5
    with runnable(tmp_path, "sleep 20\n", default_script_timeout=1) as manager:
        assert manager.execute_skill_script("demo", "run").timed_out


@pytest.mark.parametrize("seconds", [0, 0.5, 601, -1, float("nan"), float("inf"), "5", True])
def test_a_timeout_out_of_range_is_refused_and_nothing_runs(tmp_path: Path, seconds: Any) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(ConfigurationError, match="1 to 600 seconds"):
        SkillManager("", "", [], [], default_script_timeout=seconds)
    with (
        runnable(tmp_path, WRITES_A_FILE) as manager,
        pytest.raises(ConfigurationError, match="1 to 600 seconds"),
    ):
        manager.execute_skill_script("demo", "run", timeout=seconds, argv=[str(mark)])
    assert not mark.exists()


@pytest.mark.parametrize("tools", ["Bash, Read, Write", "Bash(git:*) Read", "[Read, Bash]"])
def test_a_skill_that_lists_bash_may_run_scripts(tmp_path: Path, tools: str) -> None:
    front = f"name: demo\ndescription: Demo.\nallowed-tools: {tools}\n"
    with runnable(tmp_path, "echo ran\n", frontmatter=front) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


@pytest.mark.parametrize("line", ["", "allowed-tools:\n", "allowed-tools: []\n", 'allowed-tools: ""\n'])
def test_a_skill_that_lists_no_tools_may_run_scripts(tmp_path: Path, line: str) -> None:
    with runnable(tmp_path, "echo ran\n", frontmatter=f"name: demo\ndescription: Demo.\n{line}") as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


def test_a_skill_that_lists_other_tools_only_may_not_and_the_error_says_which(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    front = "name: demo\ndescription: Demo.\nallowed-tools: Read, Write\n"
    with (
        runnable(tmp_path, WRITES_A_FILE, frontmatter=front) as manager,
        pytest.raises(
            ToolRestrictionError, match=r"^Tool 'Bash' not allowed for skill 'demo'\. Allowed tools: Read, Write"
        ) as caught,
    ):
        manager.execute_skill_script("demo", "run", argv=[str(mark)])
    assert (caught.value.skill_name, caught.value.allowed_tools) == ("demo", ("Read", "Write"))
    assert not mark.exists()
    assert kinds(tmp_path) == ["refused"]
    refused = only_record(tmp_path, "refused")
    assert (refused["error"], refused["decision"]) == ("ToolRestrictionError", "deny")


SHOW_ENVIRONMENT = "import json, os\nprint(json.dumps(dict(os.environ)))\n"


def environment_seen(manager: SkillManager, **call: Any) -> dict[str, str]:
    seen: dict[str, str] = json.loads(manager.execute_skill_script("demo", "env", **call).stdout)
    return seen


def test_a_script_knows_its_skill(tmp_path: Path) -> None:
    front = 'name: demo\ndescription: Demo.\nversion: "1.0.0"\n'
    with runnable(tmp_path, SHOW_ENVIRONMENT, name="scripts/env.py", frontmatter=front) as manager:
        seen = environment_seen(manager, workspace=tmp_path)
    base = (tmp_path / "skills" / "demo").resolve()
    assert seen["SKILL_NAME"] == "demo"
    assert seen["SKILL_VERSION"] == "1.0.0"
    assert seen["SKILL_BASE_DIR"] == str(base)
    assert seen["SKILLKIT_VERSION"] == skillkit.__version__
    assert seen["SKILL_WORKSPACE"] == str(tmp_path)
    assert Path(seen["SKILL_WORK_DIR"]).parent.parent == Path(os.environ.get("TMPDIR", "/tmp"))


@pytest.mark.parametrize(
    ("front", "version"),
    [
        pytest.param("version: 2.1\n", "2.1", id="version"),
        pytest.param('metadata:\n  version: "3.0"\n', "3.0", id="in metadata"),
        pytest.param("version: 1.5\nmetadata:\n  version: 9\n", "1.5", id="both"),
        pytest.param("", "0.0.0", id="none"),
    ],
)
def test_the_version_falls_back(tmp_path: Path, front: str, version: str) -> None:
    block = f"name: demo\ndescription: Demo.\n{front}"
    with runnable(tmp_path, SHOW_ENVIRONMENT, name="scripts/env.py", frontmatter=block) as manager:
        assert environment_seen(manager)["SKILL_VERSION"] == version


def test_a_file_of_the_skill_is_read_through_its_base_dir(tmp_path: Path) -> None:
    files = {"scripts/run.sh": 'cat "$SKILL_BASE_DIR/data/config.yaml"', "data/config.yaml": "colour: red\n"}
    with made_manager(tmp_path, files) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "colour: red\n"


def test_scripts_are_found_when_first_asked_for(tmp_path: Path) -> None:
    files = {
        "scripts/extract.py": "",
        "scripts/convert.sh": "",
        "scripts/utils/parser.py": "",
        "data/config.yaml": "a: 1\n",
        "README.md": "# Read me\n",
    }
    with made_manager(tmp_path, files) as manager:
        manager.discover()
        (tmp_path / "skills/demo/scripts/late.rb").write_text("puts 1\n")
        found = {script.path.as_posix(): script.script_type for script in manager.list_scripts("demo")}
    assert found == {
        "scripts/convert.sh": "shell",
        "scripts/extract.py": "python",
        "scripts/late.rb": "ruby",
        "scripts/utils/parser.py": "python",
    }


def test_spaces_and_brackets_in_a_name_are_fine(tmp_path: Path) -> None:
    name = "scripts/my file [1] 'ü' $(x).sh"
    with runnable(tmp_path, "echo ran\n", name=name) as manager:
        assert manager.execute_skill_script("demo", name).stdout == "ran\n"


def test_an_ambiguous_stem_lists_what_fits(tmp_path: Path) -> None:
    with (
        made_manager(tmp_path, {"scripts/run.sh": "", "scripts/run.py": "", "scripts/other.sh": ""}) as manager,
        pytest.raises(ScriptNotFoundError, match=r"'run' fits several .*: scripts/run\.py, scripts/run\.sh") as caught,
    ):
        manager.execute_skill_script("demo", "run")
    assert caught.value.available == ("scripts/run.py", "scripts/run.sh")
    assert kinds(tmp_path) == ["refused"]


def test_a_miss_lists_what_exists(tmp_path: Path) -> None:
    with (
        made_manager(tmp_path, {"scripts/run.sh": "", "scripts/other.sh": ""}) as manager,
        pytest.raises(ScriptNotFoundError, match=r"no script 'rum'.*scripts/other\.sh, scripts/run\.sh") as caught,
    ):
        manager.execute_skill_script("demo", "rum")
    assert (caught.value.skill_name, caught.value.script_name) == ("demo", "rum")
    assert caught.value.available == ("scripts/other.sh", "scripts/run.sh")


def test_an_unknown_skill_is_an_error_and_on_record(tmp_path: Path) -> None:
    with made_manager(tmp_path) as manager, pytest.raises(SkillNotFoundError, match="'nope'"):
        manager.execute_skill_script("nope", "run", {"password": "hunter2"})
    refused = only_record(tmp_path, "refused")
    assert (refused["skill"], refused["script"], refused["error"]) == ("nope", "run", "SkillNotFoundError")
    assert refused["arguments"] == 'arguments {"password":"[masked]"}'


def test_a_script_deleted_since_detection_is_not_found(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        manager.list_scripts("demo")
        (tmp_path / "skills/demo/scripts/run.sh").unlink()
        with pytest.raises(ScriptNotFoundError, match="not there any more"):
            manager.execute_skill_script("demo", "run")
    assert kinds(tmp_path) == ["refused"]


def test_a_script_replaced_since_detection_runs_as_it_is_now(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo old\n") as manager:
        manager.list_scripts("demo")
        (tmp_path / "skills/demo/scripts/run.sh").write_text("#!/usr/bin/env python3\nprint('new')\n")
        assert manager.execute_skill_script("demo", "run").stdout == "new\n"


def test_a_run_without_walls_looks_for_no_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this login has none, to look for one asks the user's systemd for a scope."""
    looked: list[None] = []
    monkeypatch.setattr(tiers, "run_groups", lambda: looked.append(None))
    with runnable(tmp_path, "true\n") as manager:
        assert manager.execute_skill_script("demo", "run.sh").success
    assert not looked


def test_a_skill_folder_reached_through_a_link_runs_in_the_real_one(tmp_path: Path) -> None:
    real = skill_folder(tmp_path / "elsewhere", "demo", files={"scripts/run.sh": "pwd -P; echo $SKILL_BASE_DIR\n"})
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "demo").symlink_to(real)
    with SkillManager(tmp_path / "skills", "", [], [], policy=TRUSTED) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.stdout == f"{real.resolve()}\n" * 2


def test_a_read_only_skill_runs_and_gets_a_writable_work_folder() -> None:
    with ordinary_user() as folder:
        skill_folder(
            folder / "skills",
            "demo",
            files={
                "scripts/run.sh": 'touch here 2>/dev/null || echo closed; touch "$SKILL_WORK_DIR/there" && echo open\n'
            },
        )
        for path, _, names in os.walk(folder / "skills"):
            os.chmod(path, 0o555)
            for name in names:
                os.chmod(os.path.join(path, name), 0o444)
        said = said_by_user(
            """
            from skillkit import SkillManager
            with SkillManager("skills", "", [], [], state_dir="state") as manager:
                result = manager.execute_skill_script("demo", "run")
                print(result.stdout.split(), [str(item.relative_path) for item in result.artifacts], result.stderr)
            """,
            folder,
        )
        assert said == "['closed', 'open'] ['there'] \n"


def test_an_unwritable_workspace_is_read_and_left_as_it_is() -> None:
    with ordinary_user() as folder:
        text = 'cat "$SKILL_WORKSPACE/data"; touch "$SKILL_WORKSPACE/new" 2>/dev/null || echo closed\n'
        skill_folder(folder / "skills", "demo", files={"scripts/run.sh": text})
        workspace = folder / "workspace"
        workspace.mkdir()
        (workspace / "data").write_text("data\n")
        workspace.chmod(0o555)
        said = said_by_user(
            """
            from skillkit import SkillManager
            with SkillManager("skills", "", [], [], state_dir="state", workspace="workspace") as manager:
                result = manager.execute_skill_script("demo", "run")
                print(result.stdout.split(), result.exit_code, result.stderr)
            """,
            folder,
        )
        assert said == "['data', 'closed'] 0 \n"
        assert [path.name for path in workspace.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"arguments": {"ä": [1, None, True, 1.5]}}, '{"ä": [1, null, true, 1.5]}', id="mapping"),
        pytest.param({"arguments": []}, "[]", id="empty list"),
        pytest.param({"arguments": 0}, "0", id="number"),
        pytest.param({"arguments": "text"}, '"text"', id="text"),
        pytest.param({"arguments": {"half": "\ud800"}}, '{"half": "\\ud800"}', id="half a character"),
        pytest.param({"stdin": "as it is\n"}, "as it is\n", id="stdin text"),
        pytest.param({"stdin": b"by\xc3\xa4tes"}, "byätes", id="stdin bytes"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_arguments_are_json_on_stdin_and_stdin_is_as_it_is(
    tmp_path: Path, given: dict[str, Any], expected: str
) -> None:
    with runnable(tmp_path, "cat\n") as manager:
        assert manager.execute_skill_script("demo", "run", **given).stdout == expected


HUGE = 10**5000  # more digits than Python writes


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def cycle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        pytest.param({"arguments": cycle()}, "cannot be written as JSON", id="cycle"),
        pytest.param({"arguments": {"x": float("nan")}}, "cannot be written as JSON", id="not a number"),
        pytest.param({"arguments": object()}, "cannot be written as JSON", id="object"),
        pytest.param({"arguments": {(1, 2): 3}}, "cannot be written as JSON", id="key"),
        pytest.param({"arguments": {}, "stdin": ""}, "not both", id="both"),
        pytest.param({"stdin": "\ud800"}, "half a character", id="half a character"),
        pytest.param({"stdin": 5}, "'stdin' is int", id="stdin of another kind"),
        pytest.param({"argv": "one text"}, "must be a list", id="argv as text"),
        pytest.param({"argv": None}, "must be a list", id="no argv"),
        pytest.param({"argv": [1]}, "Word 1 of 'argv' is int", id="argv of numbers"),
        pytest.param({"arguments": {"tokens": HUGE}}, "cannot be written as JSON", id="number too long to write"),
        pytest.param({"arguments": {HUGE: 1}}, "cannot be written as JSON", id="key too long to write"),
        pytest.param({"argv": [HUGE]}, "Word 1 of 'argv' is int", id="word too long to write"),
        pytest.param({"argv": [Mute()]}, "Word 1 of 'argv' is Mute", id="word that cannot say what it is"),
        pytest.param({"argv": ["a", "b\0"]}, "Word 2 of 'argv' holds a NUL", id="NUL"),
        pytest.param({"argv": ["\ud800"]}, "half a character", id="surrogate"),
    ],
)
def test_what_cannot_be_passed_is_refused_and_recorded(tmp_path: Path, given: dict[str, Any], rule: str) -> None:
    with runnable(tmp_path, "cat\n") as manager, pytest.raises(ArgumentSerializationError, match=rule):
        manager.execute_skill_script("demo", "run", **given)
    assert kinds(tmp_path) == ["refused"]


def test_words_may_come_from_anything_that_can_be_read_once(tmp_path: Path) -> None:
    with runnable(tmp_path, 'echo "$@"\n') as manager:
        words: Any = (word for word in ("a", "b"))
        assert manager.execute_skill_script("demo", "run", argv=words).stdout == "a b\n"


def test_no_shell_sees_an_argument(tmp_path: Path) -> None:
    words = ["$(touch pwned)", "; rm -rf .", "`id`", "'\"", "*", "-n", "--", "a\nb"]
    with runnable(tmp_path, "import json, sys\nprint(json.dumps(sys.argv[1:]))\n", name="scripts/run.py") as manager:
        assert json.loads(manager.execute_skill_script("demo", "run", argv=words).stdout) == words
    assert not (tmp_path / "skills/demo/pwned").exists()


def test_no_word_of_a_caller_stands_for_a_descriptor(tmp_path: Path) -> None:
    words = [str(descriptor(number)) for number in range(12)]
    with runnable(tmp_path, 'printf "%s\\n" "$@"\n', policy=STANDARD) as manager:
        assert manager.execute_skill_script("demo", "run", argv=words).stdout.splitlines() == words


def test_ten_megabytes_of_json_go_in_and_one_byte_more_does_not(tmp_path: Path) -> None:
    exactly = "x" * (10_000_000 - 2)
    with runnable(tmp_path, "import sys\nprint(len(sys.stdin.buffer.read()))\n", name="scripts/run.py") as manager:
        assert manager.execute_skill_script("demo", "run", exactly).stdout == "10000000\n"
        with pytest.raises(ArgumentSizeError, match="10,000,001 bytes; the limit is 10,000,000") as caught:
            manager.execute_skill_script("demo", "run", exactly + "x")
    assert (caught.value.size, caught.value.limit) == (10_000_001, 10_000_000)
    assert kinds(tmp_path) == ["started", "finished", "refused"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("echo unread\n", id="never read"),
        pytest.param("exec <&-; sleep 0.1; echo unread\n", id="closed"),
        pytest.param("head -c 1 >/dev/null; echo unread\n", id="one byte read"),
    ],
)
def test_input_that_is_not_read_does_no_harm(tmp_path: Path, text: str) -> None:
    with runnable(tmp_path, text) as manager:
        result = manager.execute_skill_script("demo", "run", "x" * 5_000_000)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "unread\n", "")


def test_a_script_that_closes_its_output_early_still_ends_as_it_likes(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo last; exec >&- 2>&-; sleep 0.2; exit 5\n") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.exit_code) == ("last\n", 5)


def test_output_that_is_not_utf8_is_shown_with_replacements(tmp_path: Path) -> None:
    with runnable(tmp_path, r"printf 'a\xff\xc3b'; printf '\xe2\x82' >&2") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.stderr) == ("a\ufffd\ufffdb", "\ufffd")


def test_output_comes_while_the_script_runs(tmp_path: Path) -> None:
    seen: list[tuple[str, bytes]] = []
    go = tmp_path / "go"

    def listen(stream: str, data: bytes) -> None:
        seen.append((stream, data))
        go.touch()

    text = 'echo first; until [ -e "$1" ]; do sleep 0.01; done; echo second >&2\n'
    with runnable(tmp_path, text) as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(go)], on_output=listen, timeout=20)
    assert seen == [("stdout", b"first\n"), ("stderr", b"second\n")]
    assert (result.stdout, result.stderr, result.exit_code) == ("first\n", "second\n", 0)


@pytest.mark.parametrize("error", [OSError("full"), ValueError("wrong"), KeyboardInterrupt(), StopIteration()])
def test_what_on_output_raises_ends_the_run_and_comes_out_unchanged(tmp_path: Path, error: BaseException) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise error

    with runnable(tmp_path, "echo $$; sleep 20\n") as manager:
        with pytest.raises(type(error)) as caught:
            manager.execute_skill_script("demo", "run", on_output=listen)
        assert caught.value is error
    assert kinds(tmp_path) == ["started", "finished"]
    record = only_record(tmp_path, "finished")
    assert record["error"].startswith(type(error).__name__)
    assert (record["exit_code"], record["signal"], record["cancelled"]) == (-9, "SIGKILL", True)
    assert (record["stdout_bytes"] > 1, record["stderr_bytes"], record["isolation"]["tier"]) == (True, 0, "none")
    assert record["duration_us"] > 0


def test_an_interrupt_that_comes_after_a_run_leaves_its_end_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with runnable(tmp_path, 'touch "$SKILL_WORK_DIR/left"; exit 3\n') as manager:
        for part in ("files_below", "empty_stamp_of"):
            with monkeypatch.context() as late:
                late.setattr(work, part, interrupt)
                with pytest.raises(KeyboardInterrupt):
                    manager.execute_skill_script("demo", "run")
    ends = [record.fields for record in records_of(tmp_path) if record.kind == "finished"]
    assert [(fields["exit_code"], fields["error"]) for fields in ends] == [(3, "KeyboardInterrupt: ")] * 2


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_callers_error_is_recorded_without_its_secrets(tmp_path: Path) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise RuntimeError("cannot send: password=hunter2hunter2")

    with runnable(tmp_path, "echo hello\n") as manager, pytest.raises(RuntimeError, match="cannot send"):
        manager.execute_skill_script("demo", "run", on_output=listen)
    assert only_record(tmp_path, "finished")["error"] == "RuntimeError: cannot send: password=[masked]"


@pytest.mark.slow
def test_a_slow_listener_does_not_stop_the_timeout(tmp_path: Path) -> None:
    held = threading.Event()

    def listen(_stream: str, _data: bytes) -> None:
        held.wait(2.5)

    with runnable(tmp_path, 'echo hello; sleep 1.7; echo late > "$1"\n') as manager:
        result = manager.execute_skill_script("demo", "run", timeout=1, argv=[str(tmp_path / "late")], on_output=listen)
    assert result.timed_out
    assert not (tmp_path / "late").exists()


def test_a_run_inside_on_output_of_another_run_is_fine(tmp_path: Path) -> None:
    inner: list[ScriptExecutionResult] = []
    with runnable(tmp_path, 'echo "$1"\n') as manager:

        def listen(_stream: str, _data: bytes) -> None:
            inner.append(manager.execute_skill_script("demo", "run", argv=["inner"]))

        outer = manager.execute_skill_script("demo", "run", argv=["outer"], on_output=listen)
    assert (outer.stdout, [result.stdout for result in inner]) == ("outer\n", ["inner\n"])
    assert kinds(tmp_path) == ["started", "started", "finished", "finished"]


def test_cancelling_kills_the_script_and_says_so(tmp_path: Path) -> None:
    cancel = threading.Event()
    with runnable(tmp_path, "echo begun; sleep 20\n") as manager:
        result = manager.execute_skill_script("demo", "run", cancel=cancel, on_output=lambda *_: cancel.set())
    assert (result.cancelled, result.success, result.stdout, result.stderr) == (True, False, "begun\n", "Cancelled")
    assert result.execution_time_ms < 10_000
    assert only_record(tmp_path, "finished")["cancelled"] is True


def test_a_call_cancelled_beforehand_starts_nothing(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with runnable(tmp_path, WRITES_A_FILE) as manager:
        result = manager.execute_skill_script("demo", "run", cancel=cancel, argv=[str(tmp_path / "ran")])
    assert result.cancelled
    assert not (tmp_path / "ran").exists()


def test_too_much_output_is_cut_marked_and_logged_with_its_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "import sys\nsys.stdout.write('x' * 10_000_001)\nsys.stderr.write('y' * 10_000_000)\n"
    with runnable(tmp_path, text, name="scripts/loud.py") as manager:
        result = manager.execute_skill_script("demo", "loud")
    assert result.stdout == "x" * 10_000_000 + "\n[... output truncated ...]"
    assert result.stderr == "y" * 10_000_000
    assert (result.stdout_truncated, result.stderr_truncated, result.exit_code) == (True, False, 0)
    (logged,) = [record for record in caplog.records if record.name == "skillkit.run"]
    assert (logged.levelno, logged.getMessage()) == (
        logging.WARNING,
        "demo: scripts/loud.py wrote 10000001 bytes to stdout; the first 10000000 are kept",
    )
    assert only_record(tmp_path, "finished")["stdout_bytes"] == 10_000_001


@pytest.mark.parametrize(
    ("program", "name", "text", "hint"),
    [
        ("python3", "run.py", "import nonexistent_thing\n", "The Python module 'nonexistent_thing' is missing"),
        ("node", "run.js", "require('nonexistent-thing')\n", "The Node package 'nonexistent-thing' is missing"),
        ("ruby", "run.rb", "require 'nonexistent_thing'\n", "The Ruby library 'nonexistent_thing' is missing"),
        ("perl", "run.pl", "use Nonexistent::Thing;\n", "The Perl module 'Nonexistent/Thing' is missing"),
        ("bash", "run.sh", "nonexistent-thing\n", "The program 'nonexistent-thing' is missing"),
        ("python3", "run.py", "input('Name? ')\n", "The script reads more from its stdin than it was given"),
        ("bash", "run.sh", "exit 1\n", ""),
        ("bash", "run.sh", "nonexistent-thing; exit 0\n", ""),
    ],
)
def test_a_failure_with_a_known_cause_has_a_hint(tmp_path: Path, program: str, name: str, text: str, hint: str) -> None:
    needs(program)
    with runnable(tmp_path, text, name=f"scripts/{name}") as manager:
        result = manager.execute_skill_script("demo", name)
    assert result.hint.startswith(hint)
    assert bool(result.hint) == bool(hint)


@pytest.mark.parametrize(
    ("word", "is_hinted"), [("sales.csv", True), ("SKILL.md", False), ("other.csv", False), ("/sales.csv", False)]
)
def test_a_file_named_from_where_the_caller_is_gets_a_hint(tmp_path: Path, word: str, is_hinted: bool) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in ("sales.csv", "SKILL.md"):
        (workspace / name).touch()
    with runnable(tmp_path, "exit 1\n") as manager:
        result = manager.execute_skill_script("demo", "run.sh", argv=["--of", word], workspace=workspace)
    assert (f"name it as {workspace / word}," in result.hint) == is_hinted
    assert bool(result.hint) == is_hinted


def test_what_a_script_leaves_is_listed_and_kept_until_the_manager_closes(tmp_path: Path) -> None:
    text = """
        cd "$SKILL_WORK_DIR"; mkdir sub empty; printf 12345 > b.txt; printf 1 > sub/a.txt
        ln -s /etc/passwd link; mkfifo pipe; chmod 000 sub/a.txt; chmod 500 sub empty
    """
    with runnable(tmp_path, text) as manager:
        result = manager.execute_skill_script("demo", "run")
        found = {str(item.relative_path): (item.size, item.path.exists()) for item in result.artifacts}
        assert found == {"b.txt": (5, True), "sub/a.txt": (1, True)}
        root = result.artifacts[0].path.parent
    assert not root.exists()
    assert not root.parent.exists()


def test_each_run_has_a_work_folder_of_its_own(tmp_path: Path) -> None:
    with runnable(tmp_path, 'ls -A "$SKILL_WORK_DIR"; echo x > "$SKILL_WORK_DIR/x"\n') as manager:
        results = [manager.execute_skill_script("demo", "run") for _ in range(2)]
        assert [result.stdout for result in results] == ["", ""]
        assert len({result.artifacts[0].path for result in results}) == 2


def test_the_manager_can_be_used_again_after_close(tmp_path: Path) -> None:
    with runnable(tmp_path, 'echo x > "$SKILL_WORK_DIR/x"\n') as manager:
        manager.execute_skill_script("demo", "run")
        manager.close()
        result = manager.execute_skill_script("demo", "run")
        assert result.artifacts[0].path.exists()


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with runnable(tmp_path, 'mkdir -p "$SKILL_WORK_DIR/a/b"; touch "$SKILL_WORK_DIR/a/b/c"; exit ${1:-0}\n') as manager:
        manager.execute_skill_script("demo", "run")
        manager.execute_skill_script("demo", "run", argv=["3"])
        with pytest.raises(ScriptNotFoundError, match="no script"):
            manager.execute_skill_script("demo", "nope")
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []


def test_without_a_place_for_work_folders_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    mark = tmp_path / "ran"
    with (
        runnable(tmp_path, WRITES_A_FILE) as manager,
        pytest.raises(ScriptPermissionError, match=r"gets no work folder: No such file .*TMPDIR"),
    ):
        manager.execute_skill_script("demo", "run", argv=[str(mark)])
    assert not mark.exists()
    assert kinds(tmp_path) == ["refused"]


def test_an_environment_too_large_for_the_system_is_an_error_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUGE", "x" * 3_000_000)
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", pass_environment=("HUGE",))
    with (
        runnable(tmp_path, "echo ran\n", policy=policy) as manager,
        pytest.raises(ScriptPermissionError, match=r"could not be started: Argument list too long.*environment"),
    ):
        manager.execute_skill_script("demo", "run")
    assert kinds(tmp_path) == ["started", "finished"]
    assert "Argument list too long" in only_record(tmp_path, "finished")["error"]


def test_an_argument_too_large_for_the_system_is_an_error_on_record(tmp_path: Path) -> None:
    with (
        runnable(tmp_path, "echo ran\n") as manager,
        pytest.raises(ScriptPermissionError, match=r"could not be started: Argument list too long"),
    ):
        manager.execute_skill_script("demo", "run", argv=["x" * 2_000_000])
    assert kinds(tmp_path) == ["started", "finished"]


def test_every_attempt_is_on_record_with_what_it_was(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo out; echo error >&2; exit 4\n", session_id="s-1") as manager:
        result = manager.execute_skill_script(
            "demo", "run", {"user": "ann", "token": "abc"}, argv=["--password", "hunter2", "x" * 500]
        )
    started, finished = records_of(tmp_path)
    assert (started.kind, finished.kind) == ("started", "finished")
    fields = dict(started.fields)
    assert (fields["skill"], fields["script"], fields["session"]) == ("demo", "scripts/run.sh", "s-1")
    assert (fields["path"], fields["decision"]) == (str(result.script_path), "allow")
    assert (fields["answer"], fields["channel"]) == (None, None)
    assert len(str(fields["digest"])) == len(str(fields["arguments_digest"])) == 64
    shown = str(fields["arguments"])
    assert "hunter2" not in shown
    assert len(shown) <= 256
    ended = dict(finished.fields)
    assert (ended["started"], ended["exit_code"], ended["signal"], ended["timed_out"]) == (started.seq, 4, None, False)
    assert (ended["stdout_bytes"], ended["stderr_bytes"], ended["leftovers_killed"]) == (4, 6, 0)
    assert ended["duration_us"] == round(result.execution_time_ms * 1000)
    assert ended["isolation"] == {
        "tier": "none",
        "files": "none",
        "network": "none",
        "processes": "session",
        "kill": "best-effort",
        "skill": "folder",
        "status": "exact",
        "limits": [],
        "degraded": [],
        "start": "cold",
    }


def test_what_goes_in_as_plain_stdin_is_on_record_by_digest(tmp_path: Path) -> None:
    with runnable(tmp_path, "cat\n") as manager:
        manager.execute_skill_script("demo", "run", stdin="one")
        manager.execute_skill_script("demo", "run", stdin="two")
        manager.execute_skill_script("demo", "run")
    digests = [record.fields["stdin_digest"] for record in records_of(tmp_path) if record.kind == "started"]
    assert len(set(digests)) == 3
    assert digests[2] is None


@pytest.mark.parametrize("obstacle", ["a folder in place of the file", "a file in place of the folder"])
def test_a_run_that_cannot_be_recorded_does_not_start(tmp_path: Path, obstacle: str) -> None:
    mark = tmp_path / "ran"
    if obstacle.startswith("a folder"):
        (tmp_path / "state" / "state.sqlite3").mkdir(parents=True)
    else:
        (tmp_path / "state").write_text("")
    with runnable(tmp_path, WRITES_A_FILE) as manager:
        with pytest.raises(AuditUnavailableError, match="a run that cannot be recorded does not start") as caught:
            manager.execute_skill_script("demo", "run", argv=[str(mark)])
        assert caught.value.result is None
    assert not mark.exists()


def test_an_unwritable_state_folder_keeps_an_ordinary_user_from_running_anything() -> None:
    with ordinary_user() as folder:
        skill_folder(folder / "skills", "demo", files={"scripts/run.sh": WRITES_A_FILE})
        (folder / "state").mkdir(mode=0o555)
        said = said_by_user(
            f"""
            import os
            from skillkit import AuditUnavailableError, SkillManager
            with SkillManager("skills", "", [], [], state_dir="state") as manager:
                try:
                    manager.execute_skill_script("demo", "run", argv=["{folder}/ran"])
                except AuditUnavailableError:
                    print(os.path.exists("ran"))
            """,
            folder,
        )
        assert said == "False\n"


def test_a_state_folder_deleted_during_a_run_is_made_again(tmp_path: Path) -> None:
    with runnable(tmp_path, 'rm -rf "$1"; echo done\n') as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(tmp_path / "state")])
    assert result.stdout == "done\n"
    assert kinds(tmp_path) == ["finished"]


def test_an_end_that_cannot_be_recorded_carries_the_result(tmp_path: Path) -> None:
    with (
        runnable(tmp_path, 'rm -rf "$1"; echo > "$1"; echo done\n') as manager,
        pytest.raises(AuditUnavailableError, match="cannot be written") as caught,
    ):
        manager.execute_skill_script("demo", "run", argv=[str(tmp_path / "state")])
    assert isinstance(caught.value.result, ScriptExecutionResult)
    assert caught.value.result.stdout == "done\n"


def test_an_interrupt_stays_one_when_its_end_cannot_be_recorded(tmp_path: Path) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise KeyboardInterrupt

    script = 'rm -rf "$1"; echo > "$1"; echo ready; sleep 20\n'
    with runnable(tmp_path, script) as manager, pytest.raises(KeyboardInterrupt) as caught:
        manager.execute_skill_script("demo", "run", argv=[str(tmp_path / "state")], on_output=listen)
    (note,) = caught.value.__notes__
    assert note.startswith("Its end could not be recorded: The audit cannot be written")


def test_refusals_are_logged_as_warnings_runs_as_information(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "skillkit.audit")
    with runnable(tmp_path, "exit ${1:-0}\n") as manager:
        manager.execute_skill_script("demo", "run")
        manager.execute_skill_script("demo", "run", argv=["1"])
        with pytest.raises(PathSecurityError, match=r"'\.\./x'"):
            manager.execute_skill_script("demo", "../x")
    levels = [record.levelname for record in caplog.records if record.name == "skillkit.audit"]
    assert levels == ["INFO", "INFO", "INFO", "WARNING", "WARNING"]
    assert [record.levelname for record in caplog.records if record.name == "skillkit.security"] == ["WARNING"]


@pytest.mark.parametrize(
    ("policy", "error", "rule"),
    [
        pytest.param(ScriptPolicy(), ScriptRefusedError, "does not allow scripts", id="bare"),
        pytest.param(LOCKED, ScriptRefusedError, "does not allow scripts", id="locked"),
        pytest.param(GUARDED, ApprovalUnavailableError, "needs a person's approval", id="guarded"),
        pytest.param(
            ScriptPolicy(allow_scripts=True, approval="never", allowed_commands=("other:scripts/*",)),
            ScriptRefusedError,
            "matches none of 'allowed_commands'",
            id="not listed",
        ),
        pytest.param(
            ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", limits=Limits(processes=1)),
            SandboxUnavailableError,
            "limits",
            id="limits",
        ),
        pytest.param(
            ScriptPolicy(allow_scripts=True, approval="never", allowed_interpreters=("python3",)),
            InterpreterNotAllowedError,
            "'bash' may not run scripts here. Allowed: python3",
            id="interpreter",
        ),
    ],
)
def test_what_policy_forbids_never_starts_and_is_recorded(
    tmp_path: Path, policy: ScriptPolicy, error: type[SkillKitError], rule: str
) -> None:
    mark = tmp_path / "ran"
    with runnable(tmp_path, WRITES_A_FILE, policy=policy) as manager, pytest.raises(error, match=rule):
        manager.execute_skill_script("demo", "run", argv=[str(mark)])
    assert not mark.exists()
    assert kinds(tmp_path) == ["refused"]
    assert only_record(tmp_path, "refused")["error"] == error.__name__


def test_a_manager_is_standard_unless_told_otherwise(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n", policy=None) as manager:
        assert manager.policy == STANDARD
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


def test_a_listed_command_may_run(tmp_path: Path) -> None:
    policy = ScriptPolicy(
        allow_scripts=True, approval="never", sandbox="off", allowed_commands=("git", "demo:scripts/r*.sh")
    )
    with runnable(tmp_path, "echo ran\n", policy=policy) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


def test_the_workspace_is_the_working_directory_where_policy_says_so(tmp_path: Path) -> None:
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", working_directory="workspace")
    workspace = tmp_path / "work space"
    workspace.mkdir()
    with runnable(tmp_path, "pwd -P\n", policy=policy) as manager:
        assert manager.execute_skill_script("demo", "run", workspace=workspace).stdout == f"{workspace.resolve()}\n"
        with pytest.raises(ConfigurationError, match="the caller named no workspace"):
            manager.execute_skill_script("demo", "run")
        with pytest.raises(ConfigurationError, match="is not a folder"):
            manager.execute_skill_script("demo", "run", workspace=tmp_path / "gone")


def test_a_missing_interpreter_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        runnable(tmp_path, "puts 1\n", name="scripts/run.rb") as manager,
        pytest.raises(InterpreterNotFoundError, match=r"'ruby' is not on PATH; .*Install it") as caught,
    ):
        manager.execute_skill_script("demo", "run")
    assert caught.value.interpreter == "ruby"
    assert kinds(tmp_path) == ["refused"]


@pytest.mark.parametrize(("bit", "word"), [(0o4755, "setuid"), (0o2755, "setgid"), (0o6755, "setuid and setgid")])
def test_a_script_with_a_set_id_bit_is_refused(tmp_path: Path, bit: int, word: str) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        os.chmod(tmp_path / "skills/demo/scripts/run.sh", bit)
        with pytest.raises(ScriptPermissionError, match=f"has the {word} bit"):
            manager.execute_skill_script("demo", "run")
    assert kinds(tmp_path) == ["refused"]


@pytest.mark.parametrize("name", ["scripts/x.py", "x.py"])
def test_a_pipe_named_like_a_script_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        os.mkfifo(tmp_path / "skills/demo/scripts/x.py")
        with pytest.raises(ScriptPermissionError, match="not a regular file"):
            manager.execute_skill_script("demo", name)
    assert kinds(tmp_path) == ["refused"]


def test_a_script_that_becomes_a_pipe_after_detection_is_refused_at_once(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        manager.list_scripts("demo")
        script = tmp_path / "skills/demo/scripts/run.sh"
        script.unlink()
        os.mkfifo(script)
        with pytest.raises(ScriptPermissionError, match="not a regular file"):
            manager.execute_skill_script("demo", "run")


def test_ten_thousand_files_in_a_skill_do_not_stop_it(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        for folder in range(10):
            place = tmp_path / "skills/demo/data" / str(folder)
            place.mkdir(parents=True)
            for number in range(1000):
                (place / str(number)).touch()
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


def test_a_hostile_name_cannot_write_lines_into_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = "scripts/a\n\x1b[31mERROR root logged in\u202e.sh"
    with runnable(tmp_path, "kill -9 $$\n", name=name) as manager:
        manager.execute_skill_script("demo", name)
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert "\x1b" not in record.getMessage()
    assert only_record(tmp_path, "started")["script"] == name


def test_a_skill_whose_names_are_not_utf8_runs_and_is_recorded(tmp_path: Path) -> None:
    with runnable(tmp_path, 'echo ran; touch "$SKILL_WORK_DIR/$(printf "\\xff")"\n') as manager:
        os.rename(tmp_path / "skills/demo/scripts/run.sh", tmp_path / "skills/demo/scripts/\udcff.sh")
        result = manager.execute_skill_script("demo", "\udcff.sh")
        assert (result.stdout, result.artifacts[0].path.name) == ("ran\n", "\udcff")
    assert kinds(tmp_path) == ["started", "finished"]


def test_a_skill_name_the_system_cannot_take_is_an_error_on_record(tmp_path: Path) -> None:
    front = 'name: "half \\uD800"\ndescription: Demo.\n'
    with runnable(tmp_path, "echo ran\n", frontmatter=front) as manager:
        (name,) = [skill.name for skill in manager.list_skills()]
        if name.isprintable():
            assert manager.execute_skill_script(name, "run").stdout == "ran\n"
        else:
            with pytest.raises(ScriptPermissionError, match="could not be started"):
                manager.execute_skill_script(name, "run")


def test_a_script_started_in_a_deleted_folder_of_the_caller_runs(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    before = os.getcwd()
    with runnable(tmp_path, "echo ran\n") as manager:
        os.chdir(gone)
        gone.rmdir()
        try:
            assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
        finally:
            os.chdir(before)


def test_closing_the_manager_during_a_run_loses_neither_result_nor_record(tmp_path: Path) -> None:
    results: list[ScriptExecutionResult] = []
    begun = threading.Event()
    text = 'echo begun; until [ -e "$1" ]; do sleep 0.01; done; echo ended\n'
    with runnable(tmp_path, text) as manager:
        thread = threading.Thread(
            target=lambda: results.append(
                manager.execute_skill_script(
                    "demo", "run", argv=[str(tmp_path / "go")], on_output=lambda *_: begun.set()
                )
            )
        )
        thread.start()
        assert begun.wait(10)
        manager.close()
        (tmp_path / "go").touch()
        thread.join(20)
    assert [result.stdout for result in results] == ["begun\nended\n"]
    assert kinds(tmp_path) == ["started", "finished"]


def test_two_hundred_and_fifty_six_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    answers: list[str] = []
    with runnable(tmp_path, 'read -r line; echo "$1 $line"\n') as manager:

        def run(number: int) -> None:
            result = manager.execute_skill_script("demo", "run", number, argv=[str(number)], timeout=110)
            answers.append(result.stdout)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(256)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(110)
    assert sorted(answers) == sorted(f"{number} {number}\n" for number in range(256))
    found = kinds(tmp_path)
    assert (found.count("started"), found.count("finished")) == (256, 256)


def test_threads_that_end_at_once_leave_their_runs_whole(tmp_path: Path) -> None:
    results: list[ScriptExecutionResult] = []
    with runnable(tmp_path, "sleep 0.1; echo ran\n") as manager:
        for _ in range(8):
            thread = threading.Thread(target=lambda: results.append(manager.execute_skill_script("demo", "run")))
            thread.start()
            thread.join()
    assert [(result.exit_code, result.stdout) for result in results] == [(0, "ran\n")] * 8


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_of_the_caller_during_a_run_is_left_alone(tmp_path: Path) -> None:
    children: list[int] = []

    def listen(_stream: str, _data: bytes) -> None:
        if not children:
            child = os.fork()  # noqa: TID251 - the caller's own
            if child == 0:
                time.sleep(30)
                os._exit(0)
            children.append(child)

    with runnable(tmp_path, "cat; sleep 0.2; echo ended\n") as manager:
        result = manager.execute_skill_script("demo", "run", {"a": 1}, on_output=listen)
    pid, _ = os.waitpid(children[0], os.WNOHANG)
    os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    assert (result.stdout, pid) == ('{"a": 1}ended\n', 0)


def test_the_callers_stdin_is_never_the_scripts(tmp_path: Path) -> None:
    with runnable(tmp_path, "readlink /proc/self/fd/0; cat\n") as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "/dev/null\n"


def test_the_result_says_what_was_in_force(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with runnable(tmp_path, "echo ran\n", policy=STANDARD) as manager:
        isolation = manager.execute_skill_script("demo", "run").isolation
    warned = [record.levelname for record in caplog.records if record.name == "skillkit.run"]
    assert (isolation.tier == "none") == (warned == ["WARNING"])
    assert only_record(tmp_path, "finished")["isolation"]["degraded"] == list(isolation.degraded)


def test_a_left_over_child_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    with runnable(tmp_path, "sleep 60 & echo done\n") as manager:
        result = manager.execute_skill_script("demo", "run", timeout=30)
    assert (result.stdout, result.exit_code, result.timed_out) == ("done\n", 0, False)
    assert result.execution_time_ms < 15_000
    assert only_record(tmp_path, "finished")["leftovers_killed"] == 1
