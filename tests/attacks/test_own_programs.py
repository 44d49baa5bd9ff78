"""skillkit lies in the workspace's own environment; a script of one run attacks the programs that put up another's walls."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.skill_folders import skill_folder
from support.workspaces import content_below

import skillkit

# Tries all the while, in every way it knows, to have its own line run by the keeper, the mounter or their python.
CHANGER = """
import ctypes, os, sys, time
workspace, mark, seconds = sys.argv[1:]
os.chdir(workspace)
line = f"open({mark!r}, 'w').close()\\n"
(package,) = [base for base, _, _ in os.walk(".venv") if base.endswith("site-packages/skillkit")]
sandbox = package + "/core/run/sandbox"
libc = ctypes.CDLL(None)

def attempt(step, *words):
    try:
        step(*words)
    except OSError:
        pass

def write(path):
    with open(path, "w") as file:
        file.write(line)

def replace(path):
    write("new")
    os.chmod("new", 0o755)
    os.rename("new", path)

def exchange(path):
    os.makedirs("other/core/run/sandbox", exist_ok=True)
    for name in ("keeper.py", "layers.py", "mounter.py", "__init__.py"):
        write(f"other/core/run/sandbox/{name}")
    if libc.renameat2(-100, b"other", -100, path.encode(), 2) == 0:
        time.sleep(1)

names = ("mounter.py", "keeper.py", "layers.py", "__init__.py", "ctypes.py", "os.py", "json.py")
files = [f"{sandbox}/{name}" for name in names] + [f"{package}/core/run/{name}" for name in ("_json.py", "sandbox.py")]
files += [".venv/bin/python", ".venv/pyvenv.cfg", f"{package}/__init__.py", ".venv/bin/python._pth"]
folders = [sandbox, package, os.path.dirname(package), ".venv/lib", ".venv/bin", ".venv"]
print("attacking", flush=True)
until = time.monotonic() + float(seconds)
while time.monotonic() < until:
    for path in files:
        for step in (write, replace, os.unlink):
            attempt(step, path)
    for path in folders:
        attempt(os.rename, path, path + "-old")
        attempt(exchange, path)
        attempt(os.symlink, os.path.abspath("other"), path)
    attempt(os.makedirs, sandbox + "/__pycache__")
    time.sleep(0.01)
print("done")
"""
RUN = """
import os, sys, threading
from dataclasses import replace
from pathlib import Path
import skillkit
from skillkit import STANDARD, TRUSTED, SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import MAKERS, Choice
place, tier, mark, seconds = Path(sys.argv[1]), *sys.argv[2:]
def say(text):  # two threads speak: one system call for each line, so that none is cut by the other
    os.write(1, (text + "\\n").encode())
say(skillkit.__file__)
if tier != "none":
    tiers.this_machines = Choice({tier: MAKERS["linux"][tier]})
policy = TRUSTED if tier == "none" else replace(STANDARD, sandbox="required")
workspace = place / "workspace"
with SkillManager(place / "skills", "", [], [], workspace=workspace, policy=policy, state_dir=place / "state") as m:
    begun = threading.Event()
    def change():
        result = m.execute_skill_script(
            "demo", "change", argv=[str(workspace), mark, seconds], timeout=60, on_output=lambda *_: begun.set()
        )
        say(f"changer: {result.stdout.split()} {result.stderr}")
    other = threading.Thread(target=change)
    other.start()
    begun.wait(30)
    while other.is_alive():
        say(m.execute_skill_script("demo", "run").stdout.strip())
    other.join()
    say(m.execute_skill_script("demo", "run").stdout.strip())
"""


def attacked(folder: Path, tier: str) -> tuple[dict[str, str], str]:
    """The environment's files that are not as they were, and what was said, after a run in it beside the attack."""
    workspace = folder / "workspace"
    workspace.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=workspace, check=True)
    site = next((workspace / ".venv/lib").glob("python*/site-packages"))
    shutil.copytree(Path(skillkit.__file__).parent, site / "skillkit", ignore=shutil.ignore_patterns("__pycache__"))
    # The keeper leaves its parts compiled; so that nothing of ours changes meanwhile, they are before.
    compileall.compile_dir(site / "skillkit/core/run/sandbox", quiet=1)
    # What skillkit needs lies outside: the attack is on skillkit itself.
    (site / "packages.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    # More guarded places than bubblewrap mounts itself, so that the mounter does it.
    for number in range(15):
        (workspace / f"parts/{number}/.git").mkdir(parents=True)
    files = {"scripts/change.py": CHANGER, "scripts/run.sh": "echo unharmed\n"}
    skill_folder(folder / "skills", "demo", files=files)
    before = content_below(workspace / ".venv")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(
        [workspace / ".venv/bin/python", "-c", RUN, str(folder), tier, str(workspace / "ran"), "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert str(site) in ended.stdout, "it is this copy that runs"
    after = content_below(workspace / ".venv")
    changed = {name: after.get(name, "gone") for name in before | after if after.get(name) != before.get(name)}
    return changed, ended.stdout + ended.stderr


@pytest.mark.slow
def test_control_without_walls_the_programs_are_changed(tmp_path: Path) -> None:
    changed, said = attacked(tmp_path, "none")
    assert changed, said


@pytest.mark.slow
def test_a_script_of_another_run_cannot_change_the_programs_that_put_up_walls(tmp_path: Path, tier: str) -> None:
    changed, said = attacked(tmp_path, tier)
    assert changed == {}
    assert not (tmp_path / "workspace/ran").exists()
    assert "changer: ['attacking', 'done']" in said, said
    assert said.count("unharmed") > 1, said
