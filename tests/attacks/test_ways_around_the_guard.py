"""Ways around the guard of names: what leads there, what hides it, what outlasts it, and what a person must not lose."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.running import anybody_runs, ordinary_user, said_by_user, wait_for
from support.skill_folders import skill_folder
from support.workspaces import WALLS, content_below, git, run_in

from skillkit import SkillManager
from skillkit.core.paths.guarded_names import is_guarded_name

TESTS = Path(__file__).parents[1]
EMOJI = "\U0001f600" * 60
# What the person has, what the script does, and what may not be there afterwards.
PLANTED = {
    "so many folders deep": (
        "",
        "for i in $(seq 450); do mkdir a && cd a || exit; done; mkdir .claude; echo evil > .claude/x",
        "*/.claude/*",
    ),
    "below names of many bytes": (
        "",
        f"for i in $(seq 18); do mkdir {EMOJI} && cd {EMOJI} || exit; done; mkdir .claude; echo evil > .claude/x",
        "*/.claude/*",
    ),
    "where a link leads that led nowhere": ("mkdir own; ln -s own/envrc .envrc", "echo evil > own/envrc", "own/envrc"),
    "by a link where a link leads that led nowhere": (
        "mkdir own; ln -s own/envrc .envrc",
        "echo evil > text; ln -s ../text own/envrc",
        "own/envrc",
    ),
    "where git was told to look for hooks": (
        "git init -q; git config core.hooksPath own/hooks; mkdir own",
        "mkdir own/hooks; echo evil > own/hooks/pre-commit",
        "own/hooks/*",
    ),
    "where git was told to look for settings": (
        "git init -q; git config include.path ../own/settings; mkdir own",
        "echo evil > own/settings",
        "own/settings",
    ),
    "by a link in the place of .github": (
        "",
        "mkdir -p x/instructions; echo evil > x/instructions/a.md; ln -s x .github",
        ".github",
    ),
    "by a link in the place of agents": ("", "mkdir x; echo evil > x/a.toml; ln -s x agents", "agents"),
    "by a link in the place of skills": ("", "mkdir -p x/evil; echo evil > x/evil/SKILL.md; ln -s x skills", "skills"),
    "by a link among skills": (
        "mkdir skills",
        "mkdir -p x/evil; echo evil > x/evil/SKILL.md; ln -s ../x/evil skills/evil",
        "skills/evil",
    ),
    "as a repository in two parts": (
        "",
        "mkdir -p one two/objects two/refs; echo 'ref: refs/heads/main' > one/HEAD; echo ../two > one/commondir",
        "one/HEAD",
    ),
}


def found(workspace: Path, pattern: str) -> str:
    return subprocess.run(
        ["find", ".", "-path", f"./{pattern}"], cwd=workspace, capture_output=True, text=True, check=True
    ).stdout


def made_workspace(folder: Path, commands: str = "true") -> Path:
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    subprocess.run(["/bin/bash", "-c", commands or "true"], cwd=workspace, check=True)
    return workspace


@pytest.mark.parametrize("way", PLANTED)
def test_what_is_planted_is_moved_away_and_told(tmp_path: Path, tier: str, way: str) -> None:
    had, script, pattern = PLANTED[way]
    open_to_all = made_workspace(tmp_path / "without", had)
    run_in(open_to_all, script, walls=False)
    assert found(open_to_all, pattern), "without walls it stays"
    workspace = made_workspace(tmp_path / "walls", had)
    before = content_below(workspace)
    result = run_in(workspace, script)
    assert result.isolation.tier == tier
    assert found(workspace, pattern) == ""
    assert "moved to" in result.hint
    assert before.items() <= content_below(workspace).items(), "what the person has is still there"


# What git starts that its configuration names in one of these ways.
NAMED = {
    "in a file that is included": ("[include]\n\tpath = ../own/settings\n", "[core]\n\thooksPath = hooks\n"),
    "on the line of the section": ("[core] hooksPath = hooks # ours\n", ""),
    "in quotes": ('[core]\n\thooksPath = "ho"oks\n', ""),
    "to show differences": ("[diff]\n\texternal = hooks/pre-commit\n", ""),
    "to fetch": ('[remote "x"]\n\tuploadpack = hooks/pre-commit --strict\n', ""),
}


@pytest.mark.parametrize("way", NAMED)
@pytest.mark.usefixtures("tier")
def test_what_git_starts_stays_as_it_is_however_it_is_named(tmp_path: Path, way: str) -> None:
    for is_walled in (False, True):
        workspace = made_workspace(tmp_path / str(is_walled), "mkdir hooks own; echo good > hooks/pre-commit")
        git(workspace, "init", "-q")
        (workspace / "own/settings").write_text(NAMED[way][1])
        with (workspace / ".git/config").open("a") as file:
            file.write(NAMED[way][0])
        run_in(workspace, "echo evil > hooks/pre-commit", walls=is_walled)
        assert (workspace / "hooks/pre-commit").read_text() == ("good\n" if is_walled else "evil\n")


# Each made the look afterwards last for hours, or for ever.
ENDLESS = {
    "spaces in a value": "{ printf '[core]\n path = a'; head -c 200000 /dev/zero | tr '\\0' ' '; echo x; } > .git/config",
    "empty lines": "head -c 250000 /dev/zero | tr '\\0' '\n' > .git/config",
    "links in a circle": "mkdir .git/modules; cd .git/modules; ln -s . a; ln -s . b; ln -s . c",
    "a pipe": "mkfifo .git/config",
}


@pytest.mark.parametrize("way", ENDLESS)
def test_no_repository_that_a_script_makes_holds_up_its_end(tmp_path: Path, way: str) -> None:
    """In a process of its own, since what hangs there cannot be interrupted."""
    workspace = made_workspace(tmp_path)
    script = f"mkdir -p .git; echo 'ref: refs/heads/main' > .git/HEAD; {ENDLESS[way]}"
    code = "import sys, pathlib; from support import workspaces; print(workspaces.run_in(pathlib.Path(sys.argv[1]), sys.argv[2]).hint)"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(workspace), script],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "moved to" in ended.stdout
    assert content_below(workspace) == {}


def test_no_mode_of_a_folder_keeps_what_is_planted_in_it() -> None:
    """As an ordinary user, and with few folders or many: those are looked after in different ways."""
    code = """
        import os, sys
        sys.path.insert(0, "tests")
        from pathlib import Path
        from dataclasses import replace
        from support.workspaces import run_in
        for count in (2, 320):
            for mode in ("000", "100", "300", "400", "500"):
                for walls in (False, True):
                    workspace = Path(f"{count}-{mode}-{walls}/workspace").absolute()
                    for number in range(count):
                        (workspace / f"d{number}/e").mkdir(parents=True)
                    script = f"mkdir d1/e/.claude; echo evil > d1/e/.claude/x; chmod {mode} d1/e"
                    run_in(workspace, script, walls=walls)
                    os.chmod(workspace / "d1/e", 0o700)
                    if (workspace / "d1/e/.claude").exists() == walls:
                        print(count, mode, walls)
    """
    with ordinary_user() as folder:
        shutil.copytree(TESTS / "support", folder / "tests/support", ignore=shutil.ignore_patterns("__pycache__"))
        assert said_by_user(code, folder) == ""


def test_a_file_in_a_folder_that_a_person_closed_is_put_back_by_landlock() -> None:
    """As an ordinary user; these walls let it be changed. Nothing can be made in such a folder, but files be written."""
    code = """
        import os, sys
        sys.path.insert(0, "tests")
        from pathlib import Path
        from support.workspaces import run_in
        from skillkit.core.run import tiers
        from skillkit.core.run.sandbox.choose import Choice
        found = [each.sandbox for each in tiers.machine_tiers() if each.tier == "landlock" and each.sandbox]
        if not found:
            sys.exit(print("no landlock"))
        tiers.this_machines = Choice({"landlock": lambda: found[0]})
        for closed in (["top/sub"], ["top/sub", "top", "."]):
            for walls in (False, True):
                workspace = Path(f"{len(closed)}-{walls}/workspace").absolute()
                (workspace / "top/sub").mkdir(parents=True)
                file = workspace / "top/sub/AGENTS.md"
                file.write_text("mine")
                for each in closed:
                    os.chmod(workspace / each, 0o555)
                run_in(workspace, "echo evil > top/sub/AGENTS.md", walls=walls)
                there = file.read_text() if file.exists() else "nothing"
                modes = {os.stat(workspace / each).st_mode & 0o777 for each in closed if each != "."}
                if (there.strip(), modes) != ("mine" if walls else "evil", {0o555}):
                    print(closed, walls, there, modes)
    """
    with ordinary_user() as folder:
        shutil.copytree(TESTS / "support", folder / "tests/support", ignore=shutil.ignore_patterns("__pycache__"))
        said = said_by_user(code, folder)
        if said == "no landlock\n":
            pytest.skip("no landlock here")
        assert said == ""


def test_a_folder_that_a_person_closed_stays_closed() -> None:
    """As an ordinary user, in whichever walls there are; one that a script closes is not left so."""
    code = """
        import os, sys
        sys.path.insert(0, "tests")
        from pathlib import Path
        from support.workspaces import run_in
        workspace = Path("workspace").absolute()
        modes = {"top/none": 0o000, "top/unlisted": 0o311, "listed": 0o444}
        for name, mode in modes.items():
            (workspace / name).mkdir(parents=True)
            os.chmod(workspace / name, mode)
        (workspace / "free").mkdir()
        run_in(workspace, "mkdir free/own; chmod 000 free/own")
        found = {name: os.stat(workspace / name).st_mode & 0o777 for name in modes}
        left = [each for each in (workspace / "free").iterdir() if not os.access(each, os.R_OK | os.W_OK | os.X_OK)]
        if found != modes or left:
            print(found, left)
    """
    with ordinary_user() as folder:
        shutil.copytree(TESTS / "support", folder / "tests/support", ignore=shutil.ignore_patterns("__pycache__"))
        assert said_by_user(code, folder) == ""


def test_a_folder_of_programs_that_a_script_makes_is_moved_away(
    tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_walled in (False, True):
        workspace = made_workspace(tmp_path / str(is_walled))
        monkeypatch.setenv("PATH", f"{workspace}/bin{os.pathsep}{os.environ['PATH']}")
        result = run_in(workspace, "mkdir bin; echo evil > bin/git", walls=is_walled)
        assert (workspace / "bin/git").exists() != is_walled
        assert result.isolation.tier == (tier if is_walled else "none")


PLANTS_IN_ENVIRONMENT = (
    "rm bin/python; echo evil > bin/python",
    "echo evil > bin/pip",
    "mv bin old; mkdir bin; echo evil > bin/python",
    "echo 'import evil' > lib/python3/site-packages/evil.pth",
    "mv lib old; mkdir -p lib/python3/site-packages; echo 'import evil' > lib/python3/site-packages/evil.pth",
    "ln -sfn evil lib64; mkdir -p evil/python3",
    "echo 'home = /evil' > pyvenv.cfg",
    "rm pyvenv.cfg",
)


def of_environment(workspace: Path) -> dict[str, str]:
    parts = ("bin", "lib", "lib64", "pyvenv.cfg")
    return {name: each for name, each in content_below(workspace).items() if name.startswith(parts)}


@pytest.mark.parametrize("plant", PLANTS_IN_ENVIRONMENT)
def test_a_workspace_that_is_an_environment_keeps_its_programs_and_packages(
    tmp_path: Path, tier: str, plant: str
) -> None:
    """As `python -m venv .` makes it, with the project's own files beside."""
    make = (
        "mkdir -p bin lib/python3/site-packages src; ln -s /usr/bin/python3 bin/python; ln -s lib lib64; "
        "echo 'home = /usr/bin' > pyvenv.cfg"
    )
    for is_walled in (False, True):
        workspace = made_workspace(tmp_path / str(is_walled), make)
        before = of_environment(workspace)
        result = run_in(workspace, f"{plant}\necho free > src/new.txt", walls=is_walled)
        assert (of_environment(workspace) == before) == is_walled
        assert (workspace / "src" / "new.txt").read_text() == "free\n", "what is no part of the environment is free"
        assert result.isolation.tier == (tier if is_walled else "none")


@pytest.mark.usefixtures("tier")
def test_a_workspace_becomes_no_environment_by_a_scripts_mark(tmp_path: Path) -> None:
    """It is moved away, and the folders that would be an environment's stay free for the next script."""
    mark = "echo 'home = /evil' > pyvenv.cfg"
    control, workspace = (made_workspace(tmp_path / name, "mkdir bin lib") for name in ("control", "walled"))
    run_in(control, mark, walls=False)
    assert (control / "pyvenv.cfg").exists()
    run_in(workspace, mark)
    assert not (workspace / "pyvenv.cfg").exists()
    run_in(workspace, "echo built > bin/tool; echo built > lib/part")
    assert [(workspace / each).read_text() for each in ("bin/tool", "lib/part")] == ["built\n"] * 2


@pytest.mark.usefixtures("tier")
def test_a_further_name_of_a_guarded_file_does_not_outlast_the_run(tmp_path: Path) -> None:
    """So many shared files that they are no longer guarded one by one; then the next script writes by the name."""
    first = (
        "ln sub/CLAUDE.md free/notes.md; mkdir h .vscode; for i in $(seq 250); do echo > h/$i; ln h/$i .vscode/$i; done"
    )
    for is_walled in (False, True):
        workspace = made_workspace(tmp_path / str(is_walled), "mkdir sub free; echo good > sub/CLAUDE.md")
        run_in(workspace, first, walls=is_walled)
        run_in(workspace, "echo evil > free/notes.md", walls=is_walled)
        assert (workspace / "sub/CLAUDE.md").read_text() == ("good\n" if is_walled else "evil\n")


@pytest.mark.parametrize("is_second_world", [False, True])
@pytest.mark.usefixtures("tier")
def test_what_one_script_plants_is_not_put_back_by_another(tmp_path: Path, is_second_world: bool) -> None:
    """The second begins when it is there, and ends after the first."""
    workspace = made_workspace(tmp_path, "mkdir sub free")
    files = {
        "scripts/first.sh": 'cd "$SKILL_WORKSPACE"; echo evil > sub/CLAUDE.md; until [ -e free/second ]; do sleep 0.05; done\n',
        "scripts/second.sh": 'cd "$SKILL_WORKSPACE"; touch free/second; until [ -e free/over ]; do sleep 0.05; done\n',
    }
    skill_folder(tmp_path / "skills", "demo", files=files)

    def manager() -> SkillManager:
        return SkillManager(
            tmp_path / "skills", "", [], [], workspace=workspace, policy=WALLS, state_dir=tmp_path / "state"
        )

    with manager() as one, manager() as other:
        last = other if is_second_world else one
        first = threading.Thread(target=one.execute_skill_script, args=("demo", "first"))
        second = threading.Thread(target=last.execute_skill_script, args=("demo", "second"))
        first.start()
        assert wait_for((workspace / "sub/CLAUDE.md").exists)
        second.start()
        first.join()
        assert not (workspace / "sub/CLAUDE.md").exists()
        (workspace / "free/over").touch()
        second.join()
    assert content_below(workspace) == {"free/over": "", "free/second": "", "sub": "(folder)"}


@pytest.mark.usefixtures("tier")
def test_a_workspace_that_another_renames_is_looked_after_all_the_same(tmp_path: Path) -> None:
    """One works in a folder, another in the folder around it, and ends before the first plants anything."""
    outer = made_workspace(tmp_path, "mkdir -p sub/free/deep; echo good > sub/free/deep/AGENTS.md")
    plant = "mkdir .claude; echo evil > .claude/x; echo evil > deep/AGENTS.md"
    files = {
        "scripts/inner.sh": f'cd "$SKILL_WORKSPACE"; touch begun; until [ -e go ]; do sleep 0.05; done; {plant}\n',
        "scripts/outer.sh": 'cd "$SKILL_WORKSPACE"; mv sub old; mkdir sub\n',
    }
    skill_folder(tmp_path / "skills", "demo", files=files)
    inner = outer / "sub/free"

    def manager(workspace: Path) -> SkillManager:
        return SkillManager(
            tmp_path / "skills", "", [], [], workspace=workspace, policy=WALLS, state_dir=tmp_path / "state"
        )

    with manager(inner) as first, manager(outer) as second:
        thread = threading.Thread(target=first.execute_skill_script, args=("demo", "inner"))
        thread.start()
        assert wait_for((inner / "begun").exists)
        second.execute_skill_script("demo", "outer")
        if not (outer / "old").exists():  # the folder above a guarded one stays; then it is the person who renames it
            os.rename(outer / "sub", outer / "old")
        (outer / "old/free/go").touch()
        thread.join()
    assert not (outer / "old/free/.claude").exists()
    assert (outer / "old/free/deep/AGENTS.md").read_text() == "good\n"


KILLED = """
import pathlib, sys
from support import workspaces
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import MAKERS, Choice
tiers.this_machines = Choice({sys.argv[1]: MAKERS["linux"][sys.argv[1]]})
workspaces.run_in(pathlib.Path(sys.argv[2]), sys.argv[3])
"""


def test_after_a_kill_everything_is_as_it_was(tmp_path: Path, tier: str) -> None:
    """The script ends with its caller; a folder loses only what makes it guarded; a guarded file is put back."""
    workspace = made_workspace(tmp_path, "mkdir src sub; echo mine > src/main.py; echo good > sub/AGENTS.md")
    script = "echo evil > src/pyvenv.cfg; echo evil > sub/AGENTS.md; while :; do echo . >> src/beats; sleep 0.02; done"
    caller = subprocess.Popen(
        [sys.executable, "-c", KILLED, tier, str(workspace), script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))},
    )
    assert wait_for((workspace / "src/beats").exists)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert wait_for(lambda: not anybody_runs(str(tmp_path / "skills")))
    assert (workspace / "src/pyvenv.cfg").exists(), "nobody has looked yet"
    assert (tier == "landlock") == ("evil" in (workspace / "sub/AGENTS.md").read_text())
    assert "src/pyvenv.cfg" in run_in(workspace, "rm src/beats").hint
    assert content_below(workspace) == {"src/main.py": "mine\n", "sub/AGENTS.md": "good\n"}


def test_what_a_person_saves_during_a_run_is_not_lost(tmp_path: Path, tier: str) -> None:
    """Editors put a new file in the old one's place. Where the script could write it then, it is kept aside."""
    workspace = made_workspace(tmp_path, "mkdir sub; echo old | tee CLAUDE.md sub/AGENTS.md")
    names = ("CLAUDE.md", "sub/AGENTS.md")

    def save() -> None:
        assert wait_for((workspace / "sub/begun").exists)
        for name in names:
            (workspace / "sub/draft").write_text("mine\n")
            os.replace(workspace / "sub/draft", workspace / name)
        (workspace / "sub/saved").touch()

    person = threading.Thread(target=save)
    person.start()
    result = run_in(workspace, "touch sub/begun; until [ -e sub/saved ]; do sleep 0.05; done")
    person.join()
    aside = list((tmp_path / "state/set-aside").rglob("*.md"))
    there = {name: (workspace / name).read_text() for name in names if (workspace / name).exists()}
    if tier == "landlock":
        assert there == {"CLAUDE.md": "mine\n", "sub/AGENTS.md": "old\n"}
        assert [path.read_text() for path in aside] == ["mine\n"]
    else:
        assert there == {}
        assert [path.read_text() for path in aside] == ["mine\n"] * 2
    assert "moved to" in result.hint


def test_what_a_script_writes_after_a_person_saved_is_not_left_in_place(tmp_path: Path, tier: str) -> None:
    workspace = made_workspace(tmp_path, "mkdir free; echo old > CLAUDE.md")

    def save() -> None:
        assert wait_for((workspace / "free/begun").exists)
        (workspace / "free/draft").write_text("mine\n")
        os.replace(workspace / "free/draft", workspace / "CLAUDE.md")
        (workspace / "free/saved").touch()

    person = threading.Thread(target=save)
    person.start()
    run_in(workspace, "touch free/begun; until [ -e free/saved ]; do sleep 0.05; done; echo evil > CLAUDE.md")
    person.join()
    there = content_below(workspace).get("CLAUDE.md")
    assert there == ("mine\n" if tier == "landlock" else None)


@pytest.mark.parametrize("name", [".GIT", ".g\u200cit", "\u017fkillkit.toml", "CLAUDE.M\u200dD", "s\u212aills.lock"])
def test_a_name_is_guarded_however_a_file_system_compares_it(name: str) -> None:
    assert is_guarded_name(name)


@pytest.mark.usefixtures("tier")
def test_ordinary_work_is_left_alone(tmp_path: Path) -> None:
    """Packages with links, a further name, renamed and deleted folders, a file beside a guarded one."""
    workspace = made_workspace(tmp_path, "mkdir -p app/skills/web old gone; echo good > app/AGENTS.md; echo 1 > old/a")
    script = """
        cd app/skills/web; mkdir -p node_modules/.bin node_modules/tool; echo run > node_modules/tool/run
        ln -s ../tool/run node_modules/.bin/run; ln -s tool node_modules/alias; cd ../..
        mkdir build; echo text > build/notes.md; ln build/notes.md build/same.md; ln -s build latest; cd ..
        mv old new; rm -r gone; for i in $(seq 400); do mkdir app/build/$i; echo $i > app/build/$i/f; done
    """
    result = run_in(workspace, script)
    assert (result.exit_code, result.hint) == (0, "")
    there = content_below(workspace)
    assert there["app/skills/web/node_modules/.bin/run"] == "-> ../tool/run"
    assert there["app/skills/web/node_modules/alias"] == "-> tool"
    assert (there["app/latest"], there["new/a"], there["app/build/400/f"]) == ("-> build", "1\n", "400\n")
    assert "gone" not in there
    assert run_in(workspace, "echo more >> app/build/notes.md; rm -r app/build/1").exit_code == 0
