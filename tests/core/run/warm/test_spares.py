"""Spares are few, for one run each, and gone when anything changes or nobody needs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import anybody_runs, made_manager, records_of, wait_for
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import ScriptPolicy, SkillManager
from skillkit.core.run import warm
from skillkit.core.run.warm import spare as one
from skillkit.core.run.warm import spares as module
from skillkit.core.run.warm.spare import Spare, _proportional, _tree
from skillkit.core.run.warm.spares import spares

pytestmark = needs_spares
POLICY = ScriptPolicy(**WARM)


def ready(folder: Path, text: str = "import json\nprint('ran')\n", **settings: Any) -> SkillManager:
    """A manager whose next run of the script finds a spare."""
    manager = made_manager(folder, {"scripts/run.py": text}, policy=POLICY, **settings)
    manager.execute_skill_script("demo", "run")
    assert wait_for_spare()
    return manager


def waiting() -> list[int]:
    """The processes of all spares, as the kernel lists them."""
    return [spare._process.pid for _, spare in spares._kept if spare._process]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_each_serves_one_run_and_another_is_made(tmp_path: Path) -> None:
    with ready(tmp_path) as manager:
        for _ in range(3):
            [pid] = waiting()
            assert manager.execute_skill_script("demo", "run").isolation.start == "warm"
            assert is_gone(pid)
            assert wait_for_spare()
            assert waiting() != [pid]


def test_one_that_is_not_ready_yet_is_taken_over(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.py": "import json\nprint(1)\n"}, policy=POLICY) as manager:
        manager.execute_skill_script("demo", "run")
        assert wait_for(lambda: spares._kept or spares._making)
        result = manager.execute_skill_script("demo", "run")
        assert (result.stdout, result.isolation.start) == ("1\n", "warm")


def test_a_machine_that_let_us_wait_ends_no_run_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready(tmp_path, "import sys\nprint('begun')\nsys.exit(3)\n") as manager:
        monkeypatch.setattr(one, "TAKE_SECONDS", -1.0)  # time is over before anybody could look
        monkeypatch.setattr(one, "LOOK_SECONDS", 10.0)
        result = manager.execute_skill_script("demo", "run")
        assert (result.stdout, result.exit_code, result.isolation.start) == ("begun\n", 3, "warm")


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    manager = ready(tmp_path)
    [pid] = waiting()
    work = spares._kept[0][1].work
    manager.close()
    assert is_gone(pid)
    assert not work.exists()
    assert spares.count() == 0


def test_closing_leaves_nothing_that_is_late_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine one may be in the making for longer than anybody waits for it."""
    monkeypatch.setattr(module, "READY_SECONDS", 0.1)
    ended, goes_on = list[Spare](), threading.Event()
    make, discard = warm.make_spare, Spare.discard

    def make_late(*arguments: Any, **options: Any) -> Spare:
        goes_on.wait(20)
        return make(*arguments, **options)

    def end(spare: Spare) -> None:
        discard(spare)
        ended.append(spare)

    monkeypatch.setattr(warm, "make_spare", make_late)
    monkeypatch.setattr(Spare, "discard", end)
    with made_manager(tmp_path, {"scripts/run.py": "print('ran')\n"}, policy=POLICY) as manager:
        manager.execute_skill_script("demo", "run")
        assert wait_for(lambda: spares._making is not None)
    goes_on.set()
    assert wait_for(lambda: len(ended) == 1)
    assert (spares._kept, spares._wanted) == ([], {})
    assert ended[0]._process is not None
    assert is_gone(ended[0]._process.pid)


def test_a_manager_ends_no_spare_of_another(tmp_path: Path) -> None:
    with ready(tmp_path / "a") as first:
        with ready(tmp_path / "b"):
            assert wait_for_spare(count=2)
            assert len(waiting()) == 2
        assert len(waiting()) == 1
        assert first.execute_skill_script("demo", "run").isolation.start == "warm"


def test_a_minute_is_all_it_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready(tmp_path):
        [pid] = waiting()
        monkeypatch.setattr(module, "LIFE_SECONDS", 0.1)
        spares._nudge()
        assert wait_for(lambda: is_gone(pid))
        assert waiting() == []


def test_none_is_kept_where_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready(tmp_path):
        [pid] = waiting()
        monkeypatch.setattr(module, "_memory_is_short", lambda: True)
        spares._nudge()
        assert wait_for(lambda: is_gone(pid))


def test_memory_is_counted(tmp_path: Path) -> None:
    text = "import json\n"
    with ready(tmp_path, text):
        small = spares._kept[0][1].megabytes
    with ready(tmp_path / "large", "import json, asyncio, unittest.mock, xml.dom.minidom, email.message\n"):
        assert 2 < small < spares._kept[0][1].megabytes - 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_scripts_have_two_spares(tmp_path: Path) -> None:
    files = {f"scripts/s{number}.py": "pass\n" for number in range(200)}
    seen = set()
    with made_manager(tmp_path, files, policy=POLICY) as manager:
        for number in range(200):
            manager.execute_skill_script("demo", f"s{number}")
            seen.update(waiting())
            assert len(waiting()) <= 2
    assert len(seen) <= 4


def test_a_fork_of_the_caller_neither_uses_nor_ends_them(tmp_path: Path) -> None:
    with ready(tmp_path) as manager:
        [pid] = waiting()
        child = os.fork()  # noqa: TID251 - what a caller may do
        if child == 0:
            try:
                start = manager.execute_skill_script("demo", "run").isolation.start
                manager.close()
                os._exit(0 if start == "cold" and spares.count() == 0 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert waiting() == [pid]
        assert not is_gone(pid)
        assert manager.execute_skill_script("demo", "run").isolation.start == "warm"


def test_a_run_from_a_thread_that_ends_outlives_the_thread_that_made_the_spare(tmp_path: Path) -> None:
    with ready(tmp_path, "import time\ntime.sleep(0.3)\nprint('whole')\n") as manager:
        results = []
        thread = threading.Thread(target=lambda: results.append(manager.execute_skill_script("demo", "run")))
        thread.start()
        thread.join()
        assert [(each.stdout, each.isolation.start) for each in results] == [("whole\n", "warm")]


OWNER = """
    import sys, time
    sys.path[:0] = {path!r}
    from pathlib import Path
    from support.running import made_manager
    from support.warm_runs import WARM, wait_for_spare
    from skillkit import ScriptPolicy
    manager = made_manager(Path({folder!r}), {{"scripts/run.py": "import json\\n"}}, policy=ScriptPolicy(**WARM))
    {body}
"""


def owner(folder: Path, body: str) -> subprocess.Popen[str]:
    """A process of its own that holds spares."""
    text = textwrap.dedent(OWNER).format(path=sys.path, folder=str(folder), body=body)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


HOLD = (
    'manager.execute_skill_script("demo", "run"); assert wait_for_spare(); '
    "from skillkit.core.run.process.survivors import own_mark; print(own_mark(), flush=True); time.sleep(60)"
)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_owner_leaves_nothing(tmp_path: Path, number: int) -> None:
    with owner(tmp_path, HOLD) as process:
        assert process.stdout
        mark = process.stdout.readline().strip()
        assert mark
        assert anybody_runs(mark)
        process.send_signal(number)
        process.wait()
    assert wait_for(lambda: not anybody_runs(mark))
    assert wait_for(lambda: not helpers_of(process.pid))


def test_an_owner_that_ends_leaves_nothing(tmp_path: Path) -> None:
    body = HOLD.replace("time.sleep(60)", "sys.exit(0)")
    with owner(tmp_path, body) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert wait_for(lambda: not anybody_runs(said.strip()))
    assert wait_for(lambda: not helpers_of(process.pid))


def test_a_process_that_ends_after_one_run_makes_none(tmp_path: Path) -> None:
    body = 'manager.execute_skill_script("demo", "run"); from skillkit.core.run.warm.spares import spares; print(len(spares._kept))'
    with owner(tmp_path, body) as process:
        said, _ = process.communicate(timeout=60)
    assert said.split() == ["0"]


def helpers_of(caller: int) -> list[str]:
    """Attachers whose command line says that they are this process's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.endswith(b"attacher.py") for word in words) and str(caller).encode() in words:
                found.append(entry.name)
    return found


def test_runs_at_once_each_get_their_own(tmp_path: Path) -> None:
    text = "import json, os, sys, time\nprint(os.environ['SKILL_WORK_DIR'])\ntime.sleep(0.05)\n"
    with ready(tmp_path, text) as manager:
        results = []

        def run() -> None:
            results.extend([manager.execute_skill_script("demo", "run") for _ in range(4)])

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 16
    assert all(each.success and each.stdout.startswith("/") for each in results)
    assert "warm" in {each.isolation.start for each in results}


def test_a_library_that_prints_or_fails_is_left_to_the_run(tmp_path: Path) -> None:
    """`this` prints when it is imported, and there is no module of the second name."""
    for text, done in (("import json, this, re\n", 1), ("import json\nimport no_such_module_anywhere\n", 1)):
        folder = tmp_path / text.split()[-1]
        with made_manager(folder, {"scripts/run.py": text}, policy=POLICY) as manager:
            cold = manager.execute_skill_script("demo", "run")
            assert wait_for_spare()
            assert spares._kept[0][1].done <= done
            warm = manager.execute_skill_script("demo", "run")
            assert (warm.stdout, warm.stderr, warm.exit_code) == (cold.stdout, cold.stderr, cold.exit_code)
            assert warm.isolation.start == "warm"


def test_a_run_is_cold_where_arguments_open_a_path(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("mine")
    with ready(tmp_path, "import sys\nprint(open(sys.argv[1]).read() if sys.argv[1:] else '')\n") as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(tmp_path / "input.txt")])
        assert (result.stdout, result.isolation.start) == ("mine\n", "cold")


def test_time_runs_from_the_request(tmp_path: Path) -> None:
    with ready(tmp_path, "import time, sys\ntime.sleep(float(sys.argv[1]) if sys.argv[1:] else 0)\n") as manager:
        time.sleep(1.2)
        assert manager.execute_skill_script("demo", "run", argv=["0.1"], timeout=1).isolation.start == "warm"
        assert wait_for_spare()
        slow = manager.execute_skill_script("demo", "run", argv=["20"], timeout=1)
        assert (slow.timed_out, slow.isolation.start) == (True, "warm")
        assert 900 < slow.execution_time_ms < 5000


def test_a_cancelled_run_dies(tmp_path: Path) -> None:
    with ready(tmp_path, "import time, sys\ntime.sleep(float(sys.argv[1]) if sys.argv[1:] else 0)\n") as manager:
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
        result = manager.execute_skill_script("demo", "run", argv=["20"], cancel=cancel)
        assert (result.cancelled, result.isolation.start) == (True, "warm")


class Interrupting(threading.Event):
    """Asked whether to stop, it is as if a person pressed the keys, as soon as the script has begun."""

    def __init__(self, trace: Path) -> None:
        super().__init__()
        self._trace = trace

    def is_set(self) -> bool:
        wait_for(self._trace.exists)
        raise KeyboardInterrupt


def test_an_interrupt_while_a_run_is_handed_over_ends_it_and_is_on_record(tmp_path: Path) -> None:
    """The script has begun, and nobody was told yet: it is gone, and the record says how it ended."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    text = "import json, os, time\nopen(os.environ['SKILL_WORKSPACE'] + '/began', 'w')\ntime.sleep(float(open('/dev/stdin').read() or 0))\n"
    with made_manager(tmp_path, {"scripts/run.py": text}, policy=POLICY, workspace=workspace) as manager:
        manager.execute_skill_script("demo", "run", stdin="0")
        assert wait_for_spare()
        [pid] = waiting()
        (workspace / "began").unlink()
        with pytest.raises(KeyboardInterrupt):
            manager.execute_skill_script("demo", "run", stdin="30", cancel=Interrupting(workspace / "began"))
        assert is_gone(pid)
    last = records_of(tmp_path)[-1]
    fields: Any = last.fields
    assert last.kind == "finished"
    assert (fields["signal"], fields["isolation"]["start"]) == ("SIGKILL", "warm")


def test_memory_of_those_who_attach_is_counted(tmp_path: Path) -> None:
    with ready(tmp_path):
        [(_, spare)] = spares._kept
        [helper] = [int(each) for each in helpers_of(os.getpid()) if int(each) != spare._attacher]
        assert str(spare._attacher) in helpers_of(os.getpid())
        assert spare._attacher > 0
        assert spare.helper_megabytes == pytest.approx(_proportional(helper) / 1024, abs=2)
        assert spare.megabytes > sum(map(_proportional, _tree(waiting()[0]))) / 1024


def test_no_more_memory_is_kept_than_policy_says(tmp_path: Path) -> None:
    """Two do not fit: the one that ran last stays. Of one that is too large by itself nothing does."""
    files = {"scripts/run.py": "import json\n", "scripts/second.py": "import json\n"}
    with made_manager(tmp_path, files, policy=POLICY) as manager:
        manager.execute_skill_script("demo", "run")
        manager.execute_skill_script("demo", "second")
        assert wait_for_spare(count=2)
        least = max(spare.megabytes + spare.helper_megabytes for _, spare in spares._kept)
        for megabytes, left in ((int(least) + 2, ["second"]), (1, [])):
            spares._kept = [(recipe._replace(megabytes=megabytes), spare) for recipe, spare in spares._kept]
            spares._nudge()
            wait_for(lambda left=left: len(spares._kept) == len(left))  # type: ignore[misc]
            assert [Path(spare.command.script_name).stem for _, spare in spares._kept] == left


def test_who_makes_room_for_another_is_ended_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice, its work folder would be given to two runs."""
    ended: list[Spare] = []
    discard = Spare.discard

    def note(spare: Spare) -> None:
        ended.append(spare)
        discard(spare)

    monkeypatch.setattr(Spare, "discard", note)
    scripts = {f"scripts/run{number}.py": "import json\nprint('ran')\n" for number in range(3)}
    policy = replace(POLICY, limits=replace(POLICY.limits, warm_sandboxes=1))
    with made_manager(tmp_path, scripts, policy=policy) as manager:
        for number in (0, 1, 2):
            for _ in range(2):
                manager.execute_skill_script("demo", f"run{number}")
                assert wait_for_spare()
            assert wait_for(lambda: len(ended) >= number), "there was no room to make"  # noqa: B023 - called at once
        assert wait_for_spare()
    assert len(ended) == len(set(ended))
