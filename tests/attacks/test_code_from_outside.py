"""Code lies where a language looks for some: above the skill, in the workspace, at home; only the skill's own runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.running import made_manager, needs
from support.skill_folders import skill_folder

from skillkit import STANDARD, TRUSTED, ConfigurationError, SandboxUnavailableError, ScriptPolicy, SkillManager

WALLS = replace(STANDARD, sandbox="required")
EVIL_JS, EVIL_PY, EVIL_RB = "console.log('evil')\n", "print('evil')\n", "puts 'evil'\n"
USER_SITES = [f".local/lib/python3.{minor}/site-packages" for minor in range(9, 20)]


@dataclass(frozen=True)
class Plant:
    """A script that asks for a name, and files that would answer, laid into every place around it."""

    interpreter: str
    name: str
    script: str
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """What the caller has set; {here} is the workspace."""


REQUIRE = "try { require('helper') } catch (error) {}\nconsole.log('fine')\n"
BY_PLACE = {
    "a module of node": Plant("node", "run.js", REQUIRE, {"node_modules/helper/index.js": EVIL_JS}),
    "a module of node at home": Plant("node", "run.js", REQUIRE, {".node_modules/helper.js": EVIL_JS}),
    "a library of node at home": Plant("node", "run.js", REQUIRE, {".node_libraries/helper.js": EVIL_JS}),
    "another meaning of the script": Plant(
        "node",
        "run.js",
        "console.log(typeof require === 'undefined' ? 'evil' : 'fine')\n",
        {"package.json": '{"type": "module"}'},
    ),
    "another meaning of an import": Plant(
        "node",
        "run.mjs",
        "await import('#helper').catch(() => {})\nconsole.log('fine')\n",
        {"package.json": '{"imports": {"#helper": "./evil.js"}}', "evil.js": EVIL_JS},
    ),
    "a package that takes the skill's name": Plant(
        "node", "run.js", REQUIRE, {"package.json": '{"name": "helper", "exports": "./evil.js"}', "evil.js": EVIL_JS}
    ),
    "a module that python starts with": Plant(
        "python3", "run.py", "print('fine')\n", {f"{site}/usercustomize.py": EVIL_PY for site in USER_SITES}
    ),
    "a line that python starts with": Plant(
        "python3", "run.py", "print('fine')\n", {f"{site}/a.pth": "import sys; print('evil')" for site in USER_SITES}
    ),
    "a list of gems": Plant(
        "ruby",
        "run.rb",
        "begin\n  require 'bundler/setup'\nrescue Exception\nend\nputs 'fine'\n",
        {"Gemfile": EVIL_RB, "gems.rb": EVIL_RB},
    ),
}


def laid_out(folder: Path, home: Path, plant: Plant) -> Path:
    """A project whose skill lies inside; the plants lie in it, beside the skill, above the project and at home."""
    project = folder / "project"
    skill_folder(project / "skills", "demo", files={f"scripts/{plant.name}": plant.script})
    for place in (folder, project, project / "skills", home):
        for name, content in plant.files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(content)
    return project


def said(folder: Path, home: Path, plant: Plant, policy: ScriptPolicy) -> list[str]:
    """What the script says, with the project as its workspace."""
    needs(plant.interpreter)
    project = laid_out(folder, home, plant)
    state = folder / "state"
    with SkillManager(project / "skills", "", [], [], policy=policy, workspace=project, state_dir=state) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert "fine" in result.stdout or "evil" in result.stdout, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("name", BY_PLACE)
def test_control_without_walls_it_is_found(tmp_path: Path, private_home: Path, name: str) -> None:
    assert "evil" in said(tmp_path, private_home, BY_PLACE[name], TRUSTED)


@pytest.mark.parametrize("name", BY_PLACE)
@pytest.mark.parametrize("start", ["skill", "workspace"])
@pytest.mark.usefixtures("tier")
def test_inside_walls_it_is_not_found(tmp_path: Path, private_home: Path, name: str, start: str) -> None:
    policy = replace(WALLS, working_directory=start)
    assert said(tmp_path, private_home, BY_PLACE[name], policy) == ["fine"]


@pytest.mark.parametrize("name", BY_PLACE)
def test_nor_where_all_around_the_skill_may_be_read_or_the_report_says_so(
    tier: str, tmp_path: Path, private_home: Path, name: str
) -> None:
    plant = BY_PLACE[name]
    needs(plant.interpreter)
    project = laid_out(tmp_path, private_home, plant)
    policy = replace(WALLS, readable_paths=(tmp_path,))
    with SkillManager(
        project / "skills", "", [], [], policy=policy, workspace=project, state_dir=tmp_path / "state"
    ) as manager:
        result = manager.execute_skill_script("demo", "run")
    warned = [each for each in result.isolation.degraded if each.startswith("node also takes modules")]
    assert bool(warned) == (tier == "landlock" and plant.interpreter == "node")
    assert warned or result.stdout == "fine\n"


@pytest.mark.parametrize("tier", ["landlock"], indirect=True)
@pytest.mark.usefixtures("tier")
def test_where_scripts_can_write_above_the_copy_that_runs_node_does_not_start(
    tmp_path: Path, private_home: Path
) -> None:
    plant = BY_PLACE["a module of node"]
    needs("node")
    project = laid_out(tmp_path, private_home, plant)
    with (
        SkillManager(
            project / "skills", "", [], [], policy=WALLS, workspace=project, state_dir=project / "state"
        ) as manager,
        pytest.raises(SandboxUnavailableError, match=r"node looks for code in the folders above .*SKILLKIT_STATE_DIR"),
    ):
        manager.execute_skill_script("demo", "run")


@pytest.mark.parametrize("name", ["bun", "deno", "tsx", "ts-node"])
def test_what_obeys_the_folder_it_starts_in_does_not_start_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    programs, project = tmp_path / "programs", tmp_path / "project"
    for folder in (programs, project):
        folder.mkdir()
    shutil.copy("/bin/true", programs / name)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    files = {"scripts/run.ts": "console.log(1)\n"}
    policy = replace(WALLS, working_directory="workspace", allowed_interpreters=(name,))
    with (
        made_manager(tmp_path, files, policy=policy, workspace=project) as manager,
        pytest.raises(ConfigurationError, match=f"{name} takes settings and code from the folder it starts in"),
    ):
        manager.execute_skill_script("demo", "run")
    with made_manager(
        tmp_path / "other", files, policy=replace(policy, working_directory="skill"), workspace=project
    ) as manager:
        assert manager.execute_skill_script("demo", "run").exit_code == 0


def test_ruby_uses_the_skills_own_list_of_gems(tmp_path: Path) -> None:
    needs("ruby")
    files = {"scripts/run.rb": BY_PLACE["a list of gems"].script, "Gemfile": "puts 'own'\n"}
    with made_manager(tmp_path, files, policy=WALLS) as manager:
        assert "own" in manager.execute_skill_script("demo", "run").stdout


HELPERS = {"helper.js": EVIL_JS, "helper.py": EVIL_PY, "helper.rb": EVIL_RB, "helper.sh": "echo evil\n"}
HELPERS |= {"helper.pm": "print qq(evil\\n); 1;\n"}
PYTHON = Plant("python3", "run.py", "try:\n    import helper\nexcept ImportError: pass\nprint('fine')\n", HELPERS)
RUBY = Plant("ruby", "run.rb", "begin\n  require 'helper'\nrescue LoadError\nend\nputs 'fine'\n", HELPERS)
PERL = Plant("perl", "run.pl", "eval { require helper; };\nprint qq(fine\\n);\n", HELPERS)
BASH = Plant("bash", "run.sh", "echo fine\n", HELPERS)
NODE = Plant("node", "run.js", REQUIRE, HELPERS)
SITE_FILES = {f"lib/python3.{minor}/site-packages/usercustomize.py": EVIL_PY for minor in range(9, 20)}
BY_VARIABLE = {
    "NODE_PATH": replace(NODE, environment={"NODE_PATH": "{here}"}),
    "NODE_OPTIONS": replace(NODE, environment={"NODE_OPTIONS": "--require {here}/helper.js"}),
    "PYTHONPATH": replace(PYTHON, environment={"PYTHONPATH": "{here}"}),
    "PYTHONUSERBASE": replace(PYTHON, files=SITE_FILES, environment={"PYTHONUSERBASE": "{here}"}),
    "PYTHONWARNINGS": replace(
        PYTHON, environment={"PYTHONWARNINGS": "error::helper.Evil", "PYTHONPATH": "{here}"}, script="print('fine')\n"
    ),
    "RUBYLIB": replace(RUBY, environment={"RUBYLIB": "{here}"}),
    "RUBYOPT": replace(RUBY, environment={"RUBYOPT": "-r{here}/helper.rb"}),
    "PERL5LIB": replace(PERL, environment={"PERL5LIB": "{here}"}),
    "PERLLIB": replace(PERL, environment={"PERLLIB": "{here}"}),
    "PERL5OPT": replace(PERL, environment={"PERL5OPT": "-I{here} -Mhelper"}),
    "PERL_USE_UNSAFE_INC": replace(PERL, environment={"PERL_USE_UNSAFE_INC": "1"}),
    "BASH_ENV": replace(BASH, environment={"BASH_ENV": "{here}/helper.sh"}),
    "GEM_PATH": replace(
        RUBY,
        files={
            "gems/helper-1/lib/helper.rb": EVIL_RB,
            "specifications/helper-1.gemspec": "Gem::Specification.new { |s| s.name = 'helper'; s.version = '1' }\n",
        },
        environment={"GEM_PATH": "{here}"},
    ),
    "BUNDLE_GEMFILE": replace(
        RUBY,
        script=BY_PLACE["a list of gems"].script,
        files={"helper.rb": EVIL_RB},
        environment={"BUNDLE_GEMFILE": "{here}/helper.rb"},
    ),
}


def variables(plant: Plant, project: Path) -> dict[str, str]:
    return {name: value.replace("{here}", str(project)) for name, value in plant.environment.items()}


@pytest.mark.parametrize("name", BY_VARIABLE)
def test_control_a_variable_makes_the_language_take_it(tmp_path: Path, private_home: Path, name: str) -> None:
    plant = BY_VARIABLE[name]
    needs(plant.interpreter)
    project = laid_out(tmp_path, private_home, plant)
    ended = subprocess.run(
        [plant.interpreter, project / "skills/demo/scripts" / plant.name],
        env={"PATH": os.environ["PATH"], "HOME": str(private_home), **variables(plant, project)},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "evil" in ended.stdout + ended.stderr


@pytest.mark.parametrize("name", BY_VARIABLE)
@pytest.mark.parametrize("is_named", [True, False], ids=["passed by name", "inherited"])
def test_no_variable_of_the_callers_makes_the_language_take_it(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_named: bool
) -> None:
    plant = BY_VARIABLE[name]
    needs(plant.interpreter)
    names = tuple(plant.environment)
    passing = {"pass_environment": names} if is_named else {"inherit_environment": True}
    policy = replace(WALLS, working_directory="workspace", **passing)
    for each, value in variables(plant, tmp_path / "project").items():
        monkeypatch.setenv(each, value)
    assert said(tmp_path, private_home, plant, policy) == ["fine"]
