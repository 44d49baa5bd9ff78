"""Scripts outside `scripts/` that the instructions write as a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_folders import skill_folder

from skillkit import SkillManager
from skillkit.core.models.detect.commanded import MOST_PATHS, commanded_paths

FILES = {
    "lib/cli.js": "// Does it.\n",
    "tools/deep/run.sh": "echo run\n",
    "scripts/x.py": "print()\n",
    "docs/a.txt": "",
}


def listed(folder: Path, body: str, files: dict[str, str] | None = None) -> list[str]:
    skill_folder(folder, "demo", body=body, files={**FILES, **(files or {})})
    with SkillManager(folder, "") as manager:
        return [script.path.as_posix() for script in manager.list_scripts("demo")]


def fenced(line: str, label: str = "bash") -> str:
    return f"Do it:\n\n```{label}\n{line}\n```\n"


@pytest.mark.parametrize(
    "body",
    [
        fenced("node lib/cli.js go"),
        fenced("lib/cli.js"),
        fenced("$ ./lib/cli.js", "console"),
        fenced("./lib/cli.js", ""),
        fenced("node {baseDir}/lib/cli.js"),
        fenced("node $SKILL_DIR/lib/cli.js"),
        fenced("node ${CLAUDE_SKILL_DIR}/lib/cli.js"),
        fenced("node <skill-path>/lib/cli.js"),
        fenced("node ~/.claude/skills/demo/lib/cli.js"),
        fenced("npx tsx --no-warnings lib/cli.js"),
        fenced("cd {baseDir} && node 'lib/cli.js' a"),
        "Run `node lib/cli.js --all`.",
        "Use `lib/cli.js go`.",
    ],
)
def test_a_file_that_is_written_as_a_command_is_listed(tmp_path: Path, body: str) -> None:
    assert listed(tmp_path, body) == ["lib/cli.js", "scripts/x.py"]


@pytest.mark.parametrize(
    "body",
    [
        "See `lib/cli.js`.",
        "The file lib/cli.js holds the rules.",
        fenced("lib/cli.js\ntools/deep/run.sh", "text"),
        fenced("cat lib/cli.js"),
        fenced("node lib/gone.js"),
        fenced("node ../demo/../other/lib/cli.js"),
        fenced("node /lib/cli.js"),
        fenced("curl https://host.test/lib/cli.js"),
        fenced("python docs/a.txt"),
    ],
)
def test_what_is_only_mentioned_or_not_there_is_not(tmp_path: Path, body: str) -> None:
    assert listed(tmp_path, body) == ["scripts/x.py"]


def test_what_is_listed_says_of_itself_what_it_is_and_can_be_run(tmp_path: Path) -> None:
    skill_folder(tmp_path, "demo", body=fenced("bash tools/deep/run.sh"), files=FILES)
    with SkillManager(tmp_path, "") as manager:
        script = manager.list_scripts("demo")[1]
        assert (script.name, script.script_type) == ("run", "shell")
        assert manager.execute_skill_script("demo", "run").stdout == "run\n"


def test_a_script_of_another_skill_below_and_one_outside_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "outside.sh").write_text("echo outside\n")
    body = fenced("bash inner/lib/run.sh\nbash lib/link.sh\nbash node_modules/x/run.sh\nbash .hidden/run.sh")
    files = {
        "inner/SKILL.md": "---\nname: inner\ndescription: x\n---\n",
        **dict.fromkeys(("inner/lib/run.sh", "node_modules/x/run.sh", ".hidden/run.sh"), "echo\n"),
    }
    folder = skill_folder(tmp_path / "skills", "demo", body=body, files=files)
    (folder / "lib").mkdir()
    (folder / "lib/link.sh").symlink_to(tmp_path / "outside.sh")
    with SkillManager(tmp_path / "skills", "") as manager:
        assert manager.list_scripts("demo") == []


def test_without_instructions_the_folder_still_tells_its_scripts(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "demo", files=FILES)
    with SkillManager(tmp_path, "") as manager:
        skill = manager.load_skill("demo")
        (folder / "SKILL.md").unlink()
        assert [script.path.as_posix() for script in skill.scripts] == ["scripts/x.py"]


@pytest.mark.parametrize("text", ["a/", "a/b.py ", "`a/b.py`", "bash ", "skills/", "<skill", "```\n", "-x "])
def test_no_text_makes_it_slow(text: str) -> None:
    for body in (text * 50_000, f"```bash\nbash {text * 50_000}x/y.py\n```"):
        assert len(commanded_paths(body)) <= 2 * MOST_PATHS
