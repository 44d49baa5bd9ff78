"""What a caller can rely on holds inside each kind of walls too: ends, storms, floods, input, many at once."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.running import STORM, beats_go_on, kinds, made_manager, records_of, runnable

from skillkit import (
    STANDARD,
    ScriptExecutionResult,
    ScriptExecutor,
    ScriptNotFoundError,
    ScriptPermissionError,
    ScriptPolicy,
    SkillManager,
)
from skillkit.testing import ScriptedApprover

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
pytestmark = pytest.mark.usefixtures("tier")


def result_of(folder: Path, text: str, arguments: object = None, **call: object) -> ScriptExecutionResult:
    with runnable(folder, text, policy=REQUIRED) as manager:
        return manager.execute_skill_script("demo", "run", arguments, **call)  # type: ignore[arg-type]  # its own


@pytest.fixture
def beats(tmp_path: Path) -> Iterator[Path]:
    """Where in its workspace a storm beats; whatever happens, it stops at the end."""
    folder = tmp_path / "workspace" / "beats"
    folder.mkdir(parents=True)
    yield folder
    (folder / "stop").touch()


def storming(folder: Path, beats: Path) -> SkillManager:
    return made_manager(folder, {"scripts/storm.py": STORM}, policy=REQUIRED, workspace=beats.parent)


@pytest.mark.slow
def test_a_storm_is_over_after_a_timeout(tmp_path: Path, beats: Path) -> None:
    with storming(tmp_path, beats) as manager:
        result = manager.execute_skill_script("demo", "storm", argv=[str(beats), "60"], timeout=1.5)
    assert (result.stdout, result.timed_out) == ("raging\n", True)
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_a_normal_end(tmp_path: Path, beats: Path) -> None:
    with storming(tmp_path, beats) as manager:
        result = manager.execute_skill_script("demo", "storm", argv=[str(beats), "0"])
    assert (result.stdout, result.exit_code) == ("raging\n", 0)
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_cancellation(tmp_path: Path, beats: Path) -> None:
    cancel = threading.Event()
    with storming(tmp_path, beats) as manager:
        result = manager.execute_skill_script(
            "demo", "storm", argv=[str(beats), "60"], cancel=cancel, on_output=lambda *_: cancel.set()
        )
    assert (result.stdout, result.cancelled) == ("raging\n", True)
    assert not beats_go_on(beats)


def test_a_storm_is_over_when_the_awaited_call_is_cancelled(tmp_path: Path, beats: Path) -> None:
    async def cancelled() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def listen(_stream: str, _data: bytes) -> None:
            loop.call_soon_threadsafe(begun.set)

        call = manager.aexecute_skill_script(
            "demo",
            "storm",
            argv=[str(beats), "60"],
            on_output=listen,
        )
        task = asyncio.create_task(call)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with storming(tmp_path, beats) as manager:
        asyncio.run(cancelled())
    assert len(list(beats.iterdir())) == 3
    assert not beats_go_on(beats)


def test_what_the_listener_raises_leaves_a_record_as_complete_as_any_other(tmp_path: Path, tier: str) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise KeyboardInterrupt

    with runnable(tmp_path, "echo begun; sleep 20\n", policy=REQUIRED) as manager:
        with pytest.raises(KeyboardInterrupt):
            manager.execute_skill_script("demo", "run", on_output=listen)
        manager.execute_skill_script("demo", "run", timeout=1)
    ends: list[Any] = [record.fields for record in records_of(tmp_path) if record.kind == "finished"]
    stopped, timed_out = ends
    assert set(stopped) - {"error"} == set(timed_out)
    assert (stopped["signal"], stopped["stdout_bytes"], stopped["isolation"]["tier"]) == ("SIGKILL", 6, tier)
    assert stopped["duration_us"] > 0


def test_a_script_that_ignores_every_signal_ends_at_its_timeout(tmp_path: Path) -> None:
    result = result_of(tmp_path, "trap '' TERM INT HUP QUIT; echo deaf; while :; do sleep 0.05; done\n", timeout=1)
    assert (result.stdout, result.exit_code, result.timed_out) == ("deaf\n", 124, True)


def test_a_child_that_holds_the_output_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    result = result_of(tmp_path, "sleep 100 & echo over\n")
    assert (result.stdout, result.exit_code, result.timed_out) == ("over\n", 0, False)


def test_a_script_that_closes_its_streams_early_ends_as_it_likes(tmp_path: Path) -> None:
    result = result_of(tmp_path, "echo last; exec <&- >&- 2>&-; sleep 0.2; exit 5\n", "x" * 1_000_000)
    assert (result.stdout, result.exit_code) == ("last\n", 5)


def test_input_that_nobody_reads_does_no_harm(tmp_path: Path) -> None:
    result = result_of(tmp_path, "sleep 0.1; echo unread\n", "x" * 5_000_000)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "unread\n", "")


def test_ten_megabytes_of_json_go_in(tmp_path: Path) -> None:
    assert result_of(tmp_path, "wc -c\n", "x" * 9_999_998).stdout.strip() == "10000000"


def test_output_that_is_not_utf8_is_shown_with_replacements(tmp_path: Path) -> None:
    assert result_of(tmp_path, r"printf 'a\xff\xc3b'").stdout == "a\ufffd\ufffdb"


def test_output_comes_while_the_script_runs(tmp_path: Path) -> None:
    heard: list[bytes] = []
    go = tmp_path / "workspace" / "go"
    go.parent.mkdir()

    def listen(_stream: str, data: bytes) -> None:
        heard.append(data)
        go.touch()

    text = 'echo first; until [ -e "$1" ]; do sleep 0.01; done; echo second\n'
    with runnable(tmp_path, text, policy=REQUIRED, workspace=go.parent) as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(go)], on_output=listen)
    assert (b"".join(heard), len(heard), result.success) == (b"first\nsecond\n", 2, True)


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL"])
def test_a_crash_is_told_as_its_signal(tmp_path: Path, name: str) -> None:
    result = result_of(tmp_path, f"echo before >&2; kill -{name} $$; sleep 5\n")
    assert (result.signal, result.signaled, result.timed_out) == (f"SIG{name}", True, False)
    assert result.stderr == f"before\nSignal: SIG{name}"


def test_a_program_out_of_reach_does_not_hide_the_systems_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the shims of a version manager, which come first on the search path."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "cat").write_text("#!/bin/sh\necho shim\n")
    (shims / "cat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:/usr/bin:/bin")
    assert result_of(tmp_path, "cat\n", "given").stdout == '"given"'


def test_a_timeout_cannot_be_forged(tmp_path: Path) -> None:
    result = result_of(tmp_path, "printf Timeout >&2; exit 124\n")
    assert (result.exit_code, result.timeout, result.timed_out, result.signaled) == (124, False, False, False)


def test_a_code_that_looks_like_a_crash_is_told_apart_or_the_report_says_that_it_is_not(
    tmp_path: Path, tier: str
) -> None:
    result = result_of(tmp_path, "exit 139\n")
    if tier == "landlock":
        assert (result.exit_code, result.signaled, result.isolation.status) == (139, False, "exact")
    else:
        assert (result.exit_code, result.isolation.status) == (-11, "128+N read as signal N for crashes")


def test_a_script_deleted_since_detection_is_not_found(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n", policy=REQUIRED) as manager:
        manager.list_scripts("demo")
        (tmp_path / "skills/demo/scripts/run.sh").unlink()
        with pytest.raises(ScriptNotFoundError):
            manager.execute_skill_script("demo", "run")


def test_a_script_replaced_since_detection_runs_as_it_is_now(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo old\n", policy=REQUIRED) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "old\n"
        (tmp_path / "skills/demo/scripts/run.sh").write_text("echo new\n")
        assert manager.execute_skill_script("demo", "run").stdout == "new\n"


def test_a_skill_folder_reached_through_a_link_runs_in_the_real_one(tmp_path: Path) -> None:
    with runnable(tmp_path / "real", "pwd -P; cat SKILL.md | head -1\n", policy=REQUIRED):
        (tmp_path / "skills").mkdir()
        (tmp_path / "skills/demo").symlink_to(tmp_path / "real/skills/demo")
    with SkillManager(tmp_path / "skills", "", [], [], policy=REQUIRED, state_dir=tmp_path / "state") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.stdout == f"{(tmp_path / 'real/skills/demo').resolve()}\n---\n"


@pytest.mark.parametrize("state", ["home/state", "state"])
def test_a_state_folder_behind_a_link_is_no_obstacle(tmp_path: Path, state: str) -> None:
    """As where a home folder is a link to another disk, or the state folder itself is one."""
    (tmp_path / "disk/state").mkdir(parents=True, mode=0o700)
    (tmp_path / "home").symlink_to("disk")
    (tmp_path / "state").symlink_to("disk/state")
    (tmp_path / "work").mkdir()
    files = {"scripts/run.py": "print('ran')\nopen('AGENTS.md', 'w')\n"}
    policy = ScriptPolicy(allow_scripts=True, sandbox="required", working_directory="workspace")
    given: dict[str, Any] = {"approver": ScriptedApprover("yes_in_session"), "workspace": tmp_path / "work"}
    with made_manager(tmp_path, files, policy=policy, state_dir=tmp_path / state, **given) as manager:
        for _ in range(2):
            result = manager.execute_skill_script("demo", "run")
            assert (result.stdout, result.stderr) == ("ran\n", "")
            assert "AGENTS.md" in result.hint
    assert not (tmp_path / "work/AGENTS.md").exists()


def test_a_read_only_skill_folder_is_no_obstacle(tmp_path: Path) -> None:
    with runnable(tmp_path, 'touch "$SKILL_WORK_DIR/there" && echo open\n', policy=REQUIRED) as manager:
        folders = [tmp_path / "skills/demo/scripts", tmp_path / "skills/demo"]
        for folder in folders:
            folder.chmod(0o555)
        result = manager.execute_skill_script("demo", "run")
        for folder in folders:
            folder.chmod(0o755)
    assert (result.stdout, [item.relative_path.name for item in result.artifacts]) == ("open\n", ["there"])


def test_an_environment_too_large_for_the_system_is_an_error_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUGE", "x" * 3_000_000)
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required", pass_environment=("HUGE",))
    with (
        runnable(tmp_path, "echo ran\n", policy=policy) as manager,
        pytest.raises(ScriptPermissionError, match="Argument list too long"),
    ):
        manager.execute_skill_script("demo", "run")
    assert kinds(tmp_path) == ["started", "finished"]


def test_a_large_environment_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        monkeypatch.setenv(f"LARGE_{number}", str(number) * 100_000)
    names = tuple(f"LARGE_{number}" for number in range(8))
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required", pass_environment=names)
    with runnable(tmp_path, "echo ${#LARGE_0} ${#LARGE_7} ${LARGE_7:99999}\n", policy=policy) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "100000 100000 7\n"


def test_many_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    answers: list[str] = []
    with runnable(tmp_path, 'read -r line; echo "$1 $line"\n', policy=REQUIRED) as manager:

        def run(number: int) -> None:
            result = manager.execute_skill_script("demo", "run", number, argv=[str(number)], timeout=110)
            answers.append(result.stdout)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(110)
    assert sorted(answers) == sorted(f"{number} {number}\n" for number in range(64))
    found = kinds(tmp_path)
    assert (found.count("started"), found.count("finished")) == (64, 64)


def test_threads_that_end_at_once_leave_their_runs_whole(tmp_path: Path) -> None:
    results: list[ScriptExecutionResult] = []
    with runnable(tmp_path, "sleep 0.1; echo ran\n", policy=REQUIRED) as manager:
        for _ in range(4):
            thread = threading.Thread(target=lambda: results.append(manager.execute_skill_script("demo", "run")))
            thread.start()
            thread.join()
    assert [(result.exit_code, result.stdout) for result in results] == [(0, "ran\n")] * 4


@pytest.mark.slow
def test_two_awaited_scripts_of_a_second_take_about_one(tmp_path: Path) -> None:
    async def both() -> list[str]:
        calls = (manager.aexecute_skill_script("demo", "run") for _ in range(2))
        return [result.stdout for result in await asyncio.gather(*calls)]

    with runnable(tmp_path, "sleep 1; echo ran\n", policy=REQUIRED) as manager:
        manager.execute_skill_script("demo", "run")
        before = time.monotonic()
        assert asyncio.run(both()) == ["ran\n", "ran\n"]
        assert time.monotonic() - before < 1.9


def test_an_executor_of_its_own_has_the_same_walls(tmp_path: Path, tier: str) -> None:
    (tmp_path / "secret").write_text("key")
    with made_manager(tmp_path, {"scripts/run.sh": f"cat {tmp_path}/secret; echo ran\n"}) as manager:
        skill = manager.load_skill("demo")
    executor = ScriptExecutor(timeout=5, policy=REQUIRED, state_dir=tmp_path / "state")
    result = executor.execute("scripts/run.sh", None, skill.base_directory, skill.metadata)
    executor.close()
    assert (result.stdout, result.isolation.tier) == ("ran\n", tier)


FLOOD = """
import json, os, sys, threading, time
from skillkit import ScriptPolicy, SkillManager
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

sandbox = next(each.sandbox for each in machine_tiers() if each.tier == sys.argv[3])
tiers.this_machines = Choice({sys.argv[3]: lambda: sandbox})
policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
with SkillManager(sys.argv[1], "", [], [], policy=policy, state_dir=sys.argv[2]) as manager:
    manager.execute_skill_script("demo", "idle")
    idle = peak = resident()
    over = threading.Event()
    def watch():
        global peak
        while not over.is_set():
            peak = max(peak, resident())
            time.sleep(0.002)
    watcher = threading.Thread(target=watch)
    watcher.start()
    result = manager.execute_skill_script("demo", "flood", timeout=2)
    over.set()
    watcher.join()
    print(json.dumps([peak - idle, len(result.stdout), result.exit_code, result.stdout_truncated]))
"""


@pytest.mark.slow
def test_endless_output_ends_at_the_timeout_in_little_memory(tmp_path: Path, tier: str) -> None:
    endless = 'import os\nblock = b"x" * 65536\nwhile True:\n    os.write(1, block)\n'
    made_manager(tmp_path, {"scripts/idle.sh": "", "scripts/flood.py": endless}).close()
    said = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path / "skills"), str(tmp_path / "state"), tier],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    grown, size, exit_code, truncated = json.loads(said)
    assert grown < 64_000_000
    assert (size, exit_code, truncated) == (10_000_000 + len("\n[... output truncated ...]"), 124, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.py", "import pathlib, os\npathlib.Path(os.environ['SKILL_WORK_DIR'], 'new').touch()\n"),
        ("run.sh", 'touch "$SKILL_WORK_DIR/new"\n'),
        ("run.rb", "require 'fileutils'\nFileUtils.touch(ENV['SKILL_WORK_DIR'] + '/new')\n"),
        (
            "run.pl",
            'open(my $f, \'>>\', "$ENV{SKILL_WORK_DIR}/new"); utime(undef, undef, "$ENV{SKILL_WORK_DIR}/new");\n',
        ),
    ],
)
def test_a_file_that_is_touched_is_there(tmp_path: Path, tier: str, name: str, text: str) -> None:
    with made_manager(tmp_path, {f"scripts/{name}": text}, policy=STANDARD) as manager:
        if name.endswith(".rb") and shutil.which("ruby") is None:
            pytest.skip("no ruby here")
        result = manager.execute_skill_script("demo", "run")
        assert result.isolation.tier == tier
        assert [item.relative_path.name for item in result.artifacts] == ["new"], result.stderr
