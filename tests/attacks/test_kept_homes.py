"""A script that uses the home it keeps: to be started unasked, to reach what is outside, or another skill's."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from support.running import made_manager, needs, ordinary_user, said_by_user
from support.skill_folders import skill_folder

from skillkit import STANDARD, SkillManager
from skillkit.core.store.homes import Homes

KEPT = replace(STANDARD, sandbox="required")
MARK = "planted code ran"

# What a first run leaves in its home, and a second one that would start it without asking for it.
PLANTED: dict[str, tuple[str, dict[str, str], str, str]] = {
    "python site": (
        "python3",
        {".local/lib/python{version}/site-packages/usercustomize.py": f"print({MARK!r})"},
        "scripts/use.py",
        "print('done')",
    ),
    "bash over the network": (
        "bash",
        {".bashrc": f"echo {MARK}"},
        "scripts/use.py",
        "import subprocess; subprocess.run(['bash', '-c', 'echo done'])",
    ),
    "bash profile": (
        "bash",
        {".profile": f"echo {MARK}", ".bash_profile": f"echo {MARK}", ".bash_login": f"echo {MARK}"},
        "scripts/use.sh",
        "bash -c 'echo done'",
    ),
    "git": (
        "git",
        {".gitconfig": f"[alias]\n x = !echo {MARK}", ".config/git/config": f"[alias]\n x = !echo {MARK}"},
        "scripts/use.sh",
        "git x; echo done",
    ),
    "npm": (
        "npm",
        {".npmrc": "script-shell=${HOME}/shell", "shell": f"#!/bin/sh\necho {MARK}"},
        "scripts/use.sh",
        'cd "$SKILL_WORK_DIR"; echo \'{"scripts": {"x": "true"}}\' > package.json; npm run x; echo done',
    ),
    "node modules": (
        "node",
        {".node_modules/zebra/index.js": f"console.log({MARK!r})"},
        "scripts/use.js",
        "try { require('zebra') } catch (error) {} console.log('done')",
    ),
    "node modules of old": (
        "node",
        {".node_libraries/zebra.js": f"console.log({MARK!r})"},
        "scripts/use.cjs",
        "try { require('zebra') } catch (error) {} console.log('done')",
    ),
    "ruby gems": (
        "ruby",
        {
            ".gem/ruby/{ruby}/specifications/zebra-1.gemspec": "Gem::Specification.new { |s| s.name = 'zebra'; "
            "s.version = '1'; s.summary = 's'; s.authors = ['a']; s.files = ['lib/zebra.rb'] }",
            ".gem/ruby/{ruby}/gems/zebra-1/lib/zebra.rb": f"puts {MARK!r}",
        },
        "scripts/use.rb",
        "begin; require 'zebra'; rescue LoadError; end; puts 'done'",
    ),
}


def version_of(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@cache
def versions() -> dict[str, str]:
    python = ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    ruby = ["ruby", "-e", "puts RbConfig::CONFIG['ruby_version']"]
    return {"version": version_of(*python), "ruby": version_of(*ruby) if shutil.which("ruby") else "3"}


def plant(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = home / name.replace("{version}", versions()["version"]).replace("{ruby}", versions()["ruby"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        file.chmod(0o755)


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("kind", PLANTED)
def test_nothing_in_the_home_is_started_unasked(kind: str, tmp_path: Path) -> None:
    program, files, name, text = PLANTED[kind]
    needs(program)
    policy = replace(KEPT, pass_environment=("SSH_CLIENT",))
    with made_manager(tmp_path, {name: text, "scripts/first.sh": "true"}, policy=policy) as manager:
        manager.execute_skill_script("demo", "first")
        home = Homes(tmp_path / "state").find("demo", tmp_path / "skills/demo")
        assert home is not None
        plant(home.path, files)
        result = manager.execute_skill_script("demo", name)
    assert "done" in result.stdout, result.stderr
    assert MARK not in result.stdout + result.stderr


@pytest.mark.parametrize("kind", [kind for kind in PLANTED if kind != "bash profile"])
def test_control_in_an_ordinary_home_it_is_started(kind: str, tmp_path: Path) -> None:
    program, files, name, text = PLANTED[kind]
    needs(program)
    plant(tmp_path, files)
    script = tmp_path / Path(name).name
    script.write_text(text)
    runs = {".py": "python3", ".sh": "bash", ".js": "node", ".cjs": "node", ".rb": "ruby"}
    ended = subprocess.run(
        [runs[script.suffix], str(script)],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SSH_CLIENT": "1", "SKILL_WORK_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert MARK in ended.stdout + ended.stderr


@pytest.mark.usefixtures("tier")
def test_a_link_on_the_way_to_such_code_goes_too(tmp_path: Path) -> None:
    needs("ruby")
    _, files, name, text = PLANTED["ruby gems"]
    moved = {key.replace(".gem/", "elsewhere/gem/"): value for key, value in files.items()}
    with made_manager(tmp_path, {name: text, "scripts/first.sh": "true"}, policy=KEPT) as manager:
        manager.execute_skill_script("demo", "first")
        home = Homes(tmp_path / "state").find("demo", tmp_path / "skills/demo")
        assert home is not None
        plant(home.path, moved)
        (home.path / ".local").mkdir()
        (home.path / ".local/share").symlink_to("../elsewhere")
        result = manager.execute_skill_script("demo", "use")
    assert "done" in result.stdout
    assert MARK not in result.stdout
    assert any("~/.local/share" in note for note in result.isolation.degraded)


def two_skills(folder: Path, files: dict[str, str]) -> SkillManager:
    manager = made_manager(folder, files, policy=KEPT)
    skill_folder(folder / "skills", "other", files={"scripts/run.sh": "echo secret > ~/secret"})
    return manager


@pytest.mark.usefixtures("tier")
def test_the_home_of_another_skill_is_out_of_reach(tmp_path: Path) -> None:
    """The control is the other skill itself, which finds its file."""
    look = """
    cat "$1/secret" && echo FOUND
    echo changed > "$1/secret" && echo WRITTEN
    ls "$1" && echo LISTED
    find / -name secret -path '*homes*' 2>/dev/null -exec cat {} + | grep . && echo FOUND
    true
    """
    with two_skills(tmp_path, {"scripts/run.sh": textwrap.dedent(look)}) as manager:
        manager.execute_skill_script("other", "run")
        home = Homes(tmp_path / "state").find("other", tmp_path / "skills/other")
        assert home is not None
        assert (home.path / "secret").read_text() == "secret\n"
        result = manager.execute_skill_script("demo", "run", argv=[str(home.path)])
    assert "FOUND" not in result.stdout
    assert "WRITTEN" not in result.stdout
    assert "LISTED" not in result.stdout
    assert (home.path / "secret").read_text() == "secret\n"


@pytest.mark.usefixtures("tier")
def test_links_and_pipes_in_the_home_lead_skillkit_nowhere(tmp_path: Path) -> None:
    """It measures, sets aside and clears; what lies outside is neither read, counted nor removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x" * 2_000_000)
    planting = """
    ln -s "$1" ~/.gem; ln -s "$1" ~/.config; ln -s "$1" ~/link; ln -s "$1/precious" ~/.gitconfig
    mkfifo ~/pipe ~/.pdbrc; ln -s .. ~/up; mkdir -p ~/.local/share; ln -s / ~/.local/share/gem
    """
    with made_manager(tmp_path, {"scripts/run.sh": textwrap.dedent(planting)}, policy=KEPT) as manager:
        for _ in range(2):
            result = manager.execute_skill_script("demo", "run", argv=[str(outside)])
            assert not result.hint
        homes, skill = Homes(tmp_path / "state"), tmp_path / "skills/demo"
        home = homes.find("demo", skill)
        assert home is not None
        assert homes.measure(home.path).bytes < 100_000
        homes.clear("demo", skill)
    assert (outside / "precious").stat().st_size == 2_000_000
    assert os.listdir(tmp_path / "state/homes") == []


@pytest.mark.usefixtures("tier")
def test_what_a_script_does_to_its_home_itself_does_not_stop_the_next_run(tmp_path: Path) -> None:
    spoiling = "mkdir ~/x; touch ~/x/y; chmod 500 ~/x; chmod 000 ~ || true; rm -rf ~ 2>/dev/null; exit 0"
    with made_manager(tmp_path, {"scripts/run.sh": spoiling}, policy=KEPT) as manager:
        for _ in range(3):
            assert manager.execute_skill_script("demo", "run").success


def test_nor_as_an_ordinary_user_whom_modes_stop() -> None:
    code = """
    from dataclasses import replace
    from pathlib import Path
    from skillkit import STANDARD, SkillManager
    skill = Path("skills/demo").resolve()
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\\nname: demo\\ndescription: A demo.\\n---\\n")
    (skill / "scripts/run.sh").write_text(
        "echo x >> ~/n; wc -l < ~/n; mkdir -p ~/.config/d; chmod 000 ~/.config/d ~/.config; chmod 000 ~; exit 0"
    )
    policy = replace(STANDARD, sandbox="required")
    with SkillManager(skill.parent, "", [], [], policy=policy, state_dir=Path("state").resolve()) as manager:
        for _ in range(3):
            result = manager.execute_skill_script("demo", "run")
            print(result.stdout.strip(), result.hint)
    """
    with ordinary_user() as folder:
        assert said_by_user(code, folder).split() == ["1", "2", "3"]


@pytest.mark.usefixtures("tier")
def test_git_and_pip_settings_of_one_run_work_while_it_lasts(tmp_path: Path) -> None:
    needs("git")
    script = "git config --global user.name Ada; git config --global user.name; ls -a ~"
    with made_manager(tmp_path, {"scripts/run.sh": script}, policy=KEPT) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.stdout.split() == ["Ada", ".", ".."]
