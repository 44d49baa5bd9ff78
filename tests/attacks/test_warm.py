"""A sandbox that waits for a run is nobody's: nothing of the skill is in it, nobody reaches it, no run sees another."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.running import kinds, made_manager
from support.warm_runs import WARM, needs_spares, only, wait_for_spare

from skillkit import ApprovalDeclinedError, ScriptPolicy, SkillManager
from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm import python
from skillkit.core.run.warm.spares import spares
from skillkit.core.values.runs import Decision
from skillkit.testing import ScriptedApprover

pytestmark = needs_spares
POLICY = ScriptPolicy(**WARM)


def ready(folder: Path, files: dict[str, str], policy: ScriptPolicy = POLICY, **settings: Any) -> SkillManager:
    """A manager whose next run of `run` finds a spare."""
    manager = made_manager(folder, files, policy=policy, **settings)
    manager.execute_skill_script("demo", "run")
    assert wait_for_spare()
    return manager


def inside(command: str) -> list[str]:
    """What is to be seen in the walls of the spare that waits, told by the kernel from outside."""
    [(_, spare)] = spares._kept
    assert spare._process
    pid = max(_tree(spare._process.pid))
    return sorted(os.listdir(f"/proc/{pid}/root{command}"))


def _tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _tree(int(child)))]


# No line of the skill runs, and nothing of the user's is there, before the run is on record.


def test_nothing_of_skill_workspace_and_home_is_inside_while_it_waits(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "mine.txt").write_text("mine")
    text = "import json, os\nopen(os.path.expanduser('~/kept'), 'w').write('x')\n"
    with ready(tmp_path, {"scripts/run.py": text}, workspace=workspace) as manager:
        skill = str(tmp_path / "skills" / "demo")
        assert inside(skill) == inside(str(workspace)) == inside("/home/skill") == []
        result = manager.execute_skill_script("demo", "run")
        assert (result.isolation.start, result.exit_code) == ("warm", 0)


def test_no_module_of_the_skill_is_imported_ahead(tmp_path: Path) -> None:
    """The trace is a file of the workspace: in a run the module leaves it, as the control shows."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    trace = "open('/tmp/trace', 'w'); import os; open(os.environ['SKILL_WORKSPACE'] + '/trace', 'a').write('x')\n"
    files = {"scripts/run.py": "import json\nimport helper\nimport re\n", "scripts/helper.py": trace}
    with ready(tmp_path, files, workspace=workspace) as manager:
        assert (workspace / "trace").read_text() == "x"  # the control: the first run
        assert spares._kept[0][1].done == 1  # json alone
        assert "trace" not in inside("/tmp")
        assert kinds(tmp_path) == ["started", "finished"]
        manager.execute_skill_script("demo", "run")
        assert (workspace / "trace").read_text() == "xx"
        assert kinds(tmp_path) == ["started", "finished"] * 2


@pytest.mark.parametrize("name", ["json", "re", "sitecustomize", "usercustomize", "argparse", "zipimport", "marshal"])
def test_a_module_beside_the_script_that_has_a_library_s_name_runs_only_in_a_run(tmp_path: Path, name: str) -> None:
    files = {"scripts/run.py": f"import os\nimport {name}\n", f"scripts/{name}.py": "print('of the skill')\n"}
    with made_manager(tmp_path, files, policy=POLICY) as manager:
        cold = manager.execute_skill_script("demo", "run")
        assert wait_for_spare()
        warm = manager.execute_skill_script("demo", "run")
    assert (warm.stdout, warm.stderr) == (cold.stdout, cold.stderr)
    assert warm.isolation.start == "warm"


@pytest.mark.parametrize("start", ["#!/usr/bin/env -S python3 -I", "#!/usr/bin/env -S python3 -E -s"])
def test_a_python_that_reads_no_variables_never_runs_ahead(tmp_path: Path, start: str) -> None:
    """It would not wait. Where options of the first line are obeyed none is made, and else there is nothing to run."""
    text = f"{start}\nimport os\nopen(os.environ['SKILL_WORK_DIR'] + '/ran', 'w')\n"
    with made_manager(tmp_path, {"scripts/run.py": text}, policy=POLICY) as manager:
        for number in range(1, 4):
            manager.execute_skill_script("demo", "run")
            wait_for_spare(1.0)
            assert len(kinds(tmp_path)) == 2 * number


def test_a_script_that_is_there_already_never_starts_where_python_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Walls without mounts: Python would go on to the script where what makes it wait cannot be loaded."""
    text = "import os\nopen(os.path.expanduser('~/trace'), 'a').write('x')\n"
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"no archive")
    (tmp_path / "control.py").write_text(text)
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(broken)}
    subprocess.run([sys.executable, str(tmp_path / "control.py")], env=home, check=True)
    assert (tmp_path / "trace").read_text() == "x"  # the control: it goes on
    (tmp_path / "trace").unlink()
    monkeypatch.setattr(python, "hook", lambda: Hook(broken.read_bytes(), ""))
    with only("landlock"), made_manager(tmp_path, {"scripts/run.py": text}, policy=POLICY) as manager:
        for number in (1, 2, 3):
            assert manager.execute_skill_script("demo", "run").isolation.start == "cold"
            assert not wait_for_spare(1.0)
            assert [each.read_text() for each in tmp_path.rglob("trace")] == ["x" * number]
            assert kinds(tmp_path) == ["started", "finished"] * number


LEAVE_WITHOUT_NAMESPACES = """
import json, os, sys, subprocess, tempfile
seen = [sorted(os.listdir(place)) for place in (tempfile.gettempdir(), os.environ["SKILL_WORK_DIR"])]
seen += [getattr(json, "left", None), os.environ.get("LEFT"), sorted(os.listdir("/proc/self/fd"))]
for place in (tempfile.gettempdir(), os.environ["SKILL_WORK_DIR"]):
    open(os.path.join(place, "left"), "w").write("x")
json.left = os.environ["LEFT"] = "x"
subprocess.Popen(["sleep", "30"], start_new_session=True)
print(seen)
"""


def test_two_warm_runs_without_namespaces_share_nothing(tmp_path: Path) -> None:
    with only("landlock"), ready(tmp_path, {"scripts/run.py": LEAVE_WITHOUT_NAMESPACES}) as manager:
        results = []
        for _ in range(2):
            results.append(manager.execute_skill_script("demo", "run"))
            assert wait_for_spare()
    assert [(each.isolation.start, each.isolation.tier) for each in results] == [("warm", "landlock")] * 2
    assert results[0].stdout == results[1].stdout
    assert "left" not in results[1].stdout


def test_without_mounts_a_run_with_a_workspace_or_a_granted_folder_is_cold(tmp_path: Path) -> None:
    """What these walls open cannot be opened later, and nothing of the user's is open while somebody waits."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with only("landlock"), made_manager(tmp_path, {"scripts/run.py": "pass\n"}, policy=POLICY) as manager:
        for _ in range(2):
            assert manager.execute_skill_script("demo", "run", workspace=workspace).isolation.start == "cold"
            assert not wait_for_spare(0.5)


# After a change it is never used, and gone with the next decision.


def gone_after(manager: SkillManager) -> tuple[str, bool]:
    """How the next run starts, and whether the spare that waited was dead when it was decided."""
    [(_, spare)] = spares._kept
    assert spare._process
    pid = spare._process.pid
    prepared = manager.prepare_skill_script("demo", "run")
    is_dead = not Path(f"/proc/{pid}").exists()
    return manager.complete_skill_script(prepared).isolation.start, is_dead


def test_control_without_a_change_it_is_still_there(tmp_path: Path) -> None:
    with ready(tmp_path, {"scripts/run.py": "import json\n"}) as manager:
        assert gone_after(manager) == ("warm", False)


@pytest.mark.parametrize("changed", ["scripts/run.py", "scripts/other.py", "SKILL.md"])
def test_a_changed_file(tmp_path: Path, changed: str) -> None:
    with ready(tmp_path, {"scripts/run.py": "import json\n", "scripts/other.py": "\n"}) as manager:
        file = tmp_path / "skills/demo" / changed
        file.write_text(file.read_text() + "\n# changed\n")
        assert gone_after(manager) == ("cold", True)


def test_a_variable_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready(tmp_path, {"scripts/run.py": "import json\n"}) as manager:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        assert gone_after(manager) == ("cold", True)


def test_another_workspace(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with ready(
        tmp_path, {"scripts/run.py": "import os; print(os.environ['SKILL_WORKSPACE'])\n"}, workspace=first
    ) as manager:
        result = manager.execute_skill_script("demo", "run", workspace=second)
        assert (result.isolation.start, result.stdout) == ("cold", f"{second}\n")


def test_a_workspace_that_was_replaced(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with made_manager(tmp_path, {"scripts/run.py": "import os; print(os.listdir('..'))\n"}, policy=POLICY) as manager:
        manager.execute_skill_script("demo", "run", workspace=workspace)
        assert wait_for_spare()
        workspace.rename(tmp_path / "before")
        workspace.mkdir()
        assert manager.execute_skill_script("demo", "run", workspace=workspace).isolation.start == "cold"


def test_a_revoked_approval(tmp_path: Path) -> None:
    asking = ScriptPolicy(**{**WARM, "approval": "first_run"})
    files = {"scripts/run.py": "import json\n"}
    with made_manager(tmp_path, files, policy=asking, approver=ScriptedApprover("yes_in_session", "no")) as manager:
        for start in ("cold", "cold", "warm"):  # the first is asked about
            assert manager.execute_skill_script("demo", "run", session_id="s").isolation.start == start
            wait_for_spare(20.0 if start != "cold" or spares._kinds else 0.2)
        [(_, spare)] = spares._kept
        assert spare._process
        manager.flow.approvals.standing.end_in_sessions(session_id="s")
        prepared = manager.prepare_skill_script("demo", "run", session_id="s")
        assert not Path(f"/proc/{spare._process.pid}").exists()
        assert prepared.decision is Decision.ASK
        with pytest.raises(ApprovalDeclinedError):
            manager.execute_skill_script("demo", "run", session_id="s")


@pytest.mark.parametrize("kind", ["variables", "read"])
def test_a_grant_that_was_taken_back(tmp_path: Path, kind: str) -> None:
    (tmp_path / "notes").mkdir()
    policy = ScriptPolicy(**{**WARM, "grantable": ("variable", "read")})
    with made_manager(tmp_path, {"scripts/run.py": "import json\n"}, policy=policy) as manager:
        manager.grant("demo", variables=["TEAM_NAME"]) if kind == "variables" else None
        manager.grant("demo", read=[tmp_path / "notes"]) if kind == "read" else None
        manager.execute_skill_script("demo", "run")
        assert wait_for_spare()
        manager.revoke("demo")
        assert gone_after(manager) == ("cold", True)


def test_a_run_that_is_asked_about_each_time_has_none(tmp_path: Path) -> None:
    asking = ScriptPolicy(**{**WARM, "approval": "always"})
    files = {"scripts/run.py": "import json\n"}
    with made_manager(tmp_path, files, policy=asking, approver=ScriptedApprover(*["yes_once"] * 3)) as manager:
        for _ in range(3):
            assert manager.execute_skill_script("demo", "run").isolation.start == "cold"
            assert not wait_for_spare(0.5)


# A secret is told to the run, not to who waits for it.

SECRET = "warm-secret-4711"
TELL = {
    "run.py": "import json, packaging, os\nprint(os.environ['WARM_API_KEY'], list(os.environ)[-6:], open('/proc/self/environ').read().count('KEY='))\n",
    "run.js": "const fs = require('fs');\nconsole.log(process.env.WARM_API_KEY, Object.keys(process.env).slice(-6), fs.readFileSync('/proc/self/environ').toString().split('KEY=').length)\n",
    "run.sh": "echo $WARM_API_KEY; env | cut -d= -f1 | grep -v '^_$'; tr '\\0' '\\n' < /proc/$$/environ | grep -c KEY=\n",
}


def readable_of_all_inside() -> bytes:
    """Environment, command line and memory of every process of the spare that waits."""
    [(_, spare)] = spares._kept
    assert spare._process
    found = []
    for pid in _tree(spare._process.pid):
        folder = Path(f"/proc/{pid}")
        found += [(folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()]
        with (folder / "mem").open("rb", 0) as memory:
            for line in (folder / "maps").read_text().splitlines():
                places, mode, *_ = line.split()
                begin, end = (int(each, 16) for each in places.split("-"))
                if "rw" in mode and end - begin < 1 << 26:
                    memory.seek(begin)
                    with suppress(OSError):
                        found.append(memory.read(end - begin))
    return b"".join(found)


@pytest.mark.parametrize("name", TELL)
def test_a_secret_comes_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("WARM_API_KEY", SECRET)
    monkeypatch.setenv("WARM_CONTROL", "warm-control-4712")
    policy = ScriptPolicy(**{**WARM, "grantable": ("secret", "variable")})
    with made_manager(tmp_path, {f"scripts/{name}": TELL[name]}, policy=policy) as manager:
        manager.grant("demo", secrets=["WARM_API_KEY"], variables=["WARM_CONTROL"])
        cold = manager.execute_skill_script("demo", name)
        if "No module named 'packaging'" in cold.stderr:
            pytest.skip("the python3 of scripts has no library beside its own")
        assert wait_for_spare()
        seen = readable_of_all_inside()
        assert b"warm-control-4712" in seen  # so that a secret would be found
        assert SECRET.encode() not in seen
        assert spares._kept[0][1].done <= 1  # the standard library's, and nobody else's
        warm = manager.execute_skill_script("demo", name)
        assert (warm.isolation.start, cold.isolation.start) == ("warm", "cold")
        assert warm.stdout.startswith(SECRET)
        assert (warm.stdout, warm.stderr) == (cold.stdout, cold.stderr)
        monkeypatch.setenv("WARM_API_KEY", "another")
        wait_for_spare()
        assert manager.execute_skill_script("demo", name).stdout.startswith("another")


# Two runs share nothing, and nobody reaches one that waits.

LEAVE = """
import json, os, sys, socket, subprocess, ctypes
word = sys.argv[1]
seen = []
for place in ("/tmp", "/dev/shm", "/run", "/var/tmp", os.environ["SKILL_WORK_DIR"], "/proc/self/fd"):
    if os.path.isdir(place):
        seen.append((place == os.environ["SKILL_WORK_DIR"] or place, sorted(os.listdir(place))))
        try:
            open(os.path.join(place, "left"), "w").write(word)
        except OSError:
            pass
shm = ctypes.CDLL(None, use_errno=True).shmget(0x5eed, 4096, 0o666)
seen.append(shm)
ctypes.CDLL(None).shmget(0x5eed, 4096, 0o1666)
try:
    held = socket.create_connection(("127.0.0.1", 45671), 0.2)
    seen.append(held.recv(10))
except OSError as error:
    seen.append(type(error).__name__)
listener = socket.create_server(("127.0.0.1", 45671))
json.left = sys.left = getattr(json, "left", "nothing")
seen.append(json.left)
json.left = word
os.environ["LEFT"] = seen.append(os.environ.get("LEFT")) or word
subprocess.Popen(["sleep", "30"], start_new_session=True)
seen.append(sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())[:3])
print(seen)
"""


LEAVE_IN_NODE = """
const fs = require('fs'), { spawn, execFileSync } = require('child_process');
const word = process.argv[2] || 'first', seen = [];
for (const place of ['/tmp', '/dev/shm', '/run', '/var/tmp', process.env.SKILL_WORK_DIR, '/proc/self/fd']) {
  if (!fs.existsSync(place)) continue;
  seen.push([place === process.env.SKILL_WORK_DIR || place, fs.readdirSync(place).sort()]);
  try { fs.writeFileSync(place + '/left', word); } catch {}
}
seen.push(process.env.LEFT, globalThis.left, fs.left, Object.keys(require.cache));
process.env.LEFT = globalThis.left = fs.left = word;
seen.push(execFileSync('/bin/sh', ['-c', 'ipcs -m 2>&1 | wc -l; ipcmk -M 100 >/dev/null 2>&1; cat /proc/net/tcp | wc -l']).toString());
seen.push(fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).slice(0, 2));
spawn('sleep', ['30'], { detached: true, stdio: 'ignore' }).unref();
console.log(JSON.stringify(seen));
"""
LEAVE_IN_BASH = """
word=${1:-first}
for place in /tmp /dev/shm /run /var/tmp "$SKILL_WORK_DIR" "/proc/$$/fd"; do
  [ -d "$place" ] && { case "$place" in "$SKILL_WORK_DIR") ;; *) echo "${place/$$/}" ;; esac; ls -A "$place"; echo "$word" > "$place/left"; } 2>&1
done
processes=(/proc/[0-9]*)
echo "${LEFT-nothing} $(type -t left) $(alias) $(hash 2>&1) $(ipcs -m 2>&1 | wc -l) ${#processes[@]}"
ipcmk -M 100 >/dev/null 2>&1
export LEFT=$word; left() { :; }; export -f left; alias left=x
setsid sleep 30 >/dev/null 2>&1 </dev/null &
"""


@pytest.mark.parametrize("name", ["run.js", "run.sh"])
def test_two_warm_runs_of_other_languages_share_nothing(tmp_path: Path, name: str) -> None:
    text = LEAVE_IN_NODE if name == "run.js" else LEAVE_IN_BASH
    with made_manager(tmp_path, {f"scripts/{name}": text}, policy=POLICY) as manager:
        manager.execute_skill_script("demo", name)
        results = []
        for word in ("second", "third"):
            assert wait_for_spare()
            results.append(manager.execute_skill_script("demo", name, argv=[word]))
    assert [each.isolation.start for each in results] == ["warm", "warm"]
    assert results[0].stdout
    assert results[0].stdout == results[1].stdout.replace("third", "second")
    assert not {"first", "second"} & set(results[1].stdout.split())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.js", "const fs = require('fs');\nconst beside = require('./beside');\nconsole.log('served');\n"),
        ("run.mjs", "import fs from 'fs';\nimport './beside.js';\nconsole.log('served');\n"),
        ("run.sh", '. "${BASH_SOURCE[0]%/*}/beside.sh"\necho served\n'),
    ],
)
def test_nothing_of_a_skill_in_another_language_is_inside_while_it_waits(tmp_path: Path, name: str, text: str) -> None:
    """What stands beside the script leaves a trace in the workspace, once for each run that is on record."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    files = {
        f"scripts/{name}": text,
        "scripts/beside.js": "require('fs').appendFileSync(process.env.SKILL_WORKSPACE + '/trace', 'x');\n",
        "scripts/beside.sh": 'printf x >> "$SKILL_WORKSPACE/trace"\n',
        "scripts/fs.js": "require('./beside');\n",
        "scripts/package.json": '{"imports": {}, "main": "beside.js"}',
    }
    with made_manager(tmp_path, files, policy=POLICY, workspace=workspace) as manager:
        manager.execute_skill_script("demo", name)
        assert wait_for_spare()
        assert (workspace / "trace").read_text() == "x"
        place = "/skill" if not name.endswith(".sh") else str(tmp_path / "skills" / "demo")
        assert [each for each in inside(place) if each != "demo"] == []
        assert inside(str(workspace)) == inside("/home/skill") == []
        result = manager.execute_skill_script("demo", name)
        assert (result.isolation.start, result.stdout) == ("warm", "served\n")
        assert (workspace / "trace").read_text() == "xx"
        assert kinds(tmp_path) == ["started", "finished"] * 2


@pytest.mark.parametrize("name", ["run.sh", "run.js", "run.py"])
def test_names_and_words_are_never_taken_for_commands(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "it's $(touch trace)`touch trace`; \n touch trace"
    workspace.mkdir()
    texts = {
        "run.sh": 'pwd; printf "[%s]" "$@"; ls\n',
        "run.js": "console.log(process.cwd(), process.argv.slice(2), require('fs').readdirSync('.'));\n",
        "run.py": "import os, sys\nprint(os.getcwd(), sys.argv[1:], os.listdir('.'))\n",
    }
    words = ["'; touch trace; '", "$(touch trace)", "\n touch trace\n", "\\", "`touch trace`", "-n", "--"]
    policy = ScriptPolicy(**{**WARM, "working_directory": "workspace"})
    with made_manager(tmp_path, {f"scripts/{name}": texts[name]}, policy=policy, workspace=workspace) as manager:
        cold = manager.execute_skill_script("demo", name, argv=words)
        assert wait_for_spare()
        warm = manager.execute_skill_script("demo", name, argv=words)
    assert (warm.isolation.start, warm.stdout, warm.stderr) == ("warm", cold.stdout, cold.stderr)
    assert list(workspace.iterdir()) == []


def test_two_warm_runs_share_nothing(tmp_path: Path) -> None:
    with ready(tmp_path, {"scripts/run.py": LEAVE.replace("sys.argv[1]", "(sys.argv + ['first'])[1]")}) as manager:
        results = []
        for word in ("second", "third"):
            results.append(manager.execute_skill_script("demo", "run", argv=[word]))
            assert wait_for_spare()
    assert [each.isolation.start for each in results] == ["warm", "warm"]
    assert results[0].stdout == results[1].stdout
    assert "left" not in results[1].stdout.replace("'LEFT'", "")


LOOK_FOR_OTHERS = """
import os, signal, json
found = [name for name in os.listdir("/proc") if name.isdecimal()]
print(len(found), [open(f"/proc/{pid}/comm").read() for pid in found])
for pid in range(1, 40000):
    if str(pid) not in found and pid != os.getpid():
        try:
            os.kill(pid, signal.SIGTERM)
            print("reached", pid)
        except ProcessLookupError:
            pass
"""


def test_another_script_neither_sees_nor_signals_one_that_waits(tmp_path: Path) -> None:
    """As many processes are seen from inside as when none waits; and afterwards it still serves its run."""
    files = {"scripts/run.py": "import json\nprint('served')\n", "scripts/other.py": LOOK_FOR_OTHERS}
    with made_manager(tmp_path, files, policy=POLICY) as manager:
        alone = manager.execute_skill_script("demo", "other")
        manager.execute_skill_script("demo", "run")
        assert wait_for_spare(count=2)
        beside = manager.execute_skill_script("demo", "other")
        assert beside.stdout == alone.stdout
        assert "reached" not in beside.stdout
        served = manager.execute_skill_script("demo", "run")
        assert (served.stdout, served.isolation.start) == ("served\n", "warm")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "run.sh",
            "ls -l /proc/$$/fd > /tmp/open; tail -n +2 /tmp/open | while read -r _ _ _ _ _ _ _ _ n _ to; do echo $n ${to%%:*}; done\n",
        ),
        (
            "run.js",
            "const fs = require('fs'); for (const name of ['0', '1', '2', '200', '220', '221']) try { console.log(name, fs.readlinkSync('/proc/self/fd/' + name).split(':')[0]); } catch {}\n",
        ),
    ],
)
def test_what_was_handed_over_to_another_language_leaves_no_way_back(tmp_path: Path, name: str, text: str) -> None:
    with made_manager(tmp_path, {f"scripts/{name}": text}, policy=POLICY) as manager:
        manager.execute_skill_script("demo", name)
        assert wait_for_spare()
        warm = manager.execute_skill_script("demo", name)
    assert warm.isolation.start == "warm"
    found = dict(line.split(maxsplit=1) for line in warm.stdout.splitlines())
    found.pop("255", None)  # the script itself
    assert found == {"0": "/dev/null", "1": "pipe", "2": "pipe", "200": "pipe"}


def test_what_was_handed_over_leaves_no_way_back(tmp_path: Path) -> None:
    """No descriptor but its streams and the one that every run has; none of them is a socket or another pipe."""
    text = "import os\nprint({name: os.readlink(f'/proc/self/fd/{name}').split(':')[0] for name in os.listdir('/proc/self/fd') if int(name) != 3})\n"
    with ready(tmp_path, {"scripts/run.py": text}) as manager:
        warm = manager.execute_skill_script("demo", "run")
        assert warm.isolation.start == "warm"
        assert eval(warm.stdout) == {"0": "/dev/null", "1": "pipe", "2": "pipe", "200": "pipe"}


def test_a_guard_that_came_after_the_walls_holds(tmp_path: Path) -> None:
    """What is guarded is looked for when a run begins, not when its walls are put up."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    text = "import json\nfor name in ('.git/hooks/post-commit', 'CLAUDE.md', 'plain.txt'):\n    try:\n        open(name, 'w').write('x'); print('wrote', name)\n    except OSError as error:\n        print(error)\n"
    policy = ScriptPolicy(**{**WARM, "working_directory": "workspace"})
    with ready(tmp_path, {"scripts/run.py": text}, policy=policy, workspace=workspace) as manager:
        (workspace / ".git/hooks").mkdir(parents=True)
        (workspace / "CLAUDE.md").unlink(missing_ok=True)
        (workspace / "CLAUDE.md").write_text("mine")
        result = manager.execute_skill_script("demo", "run")
    assert result.isolation.start == "warm"
    assert result.stdout.count("wrote") == 1
    assert "wrote plain.txt" in result.stdout
    assert (workspace / "CLAUDE.md").read_text() == "mine"
    assert not (workspace / ".git/hooks/post-commit").exists()
