from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest
from support.skill_folders import skill_folder

from skillkit import (
    ArgumentProcessingError,
    ContentLoadError,
    SizeLimitExceededError,
    Skill,
    SkillManager,
    SkillMetadata,
)
from skillkit.core.models import SKILL_FILE_LIMIT_BYTES
from skillkit.core.models.instructions import argument_words, instructions_for, scripts_table, substitute
from skillkit.core.values.skills import ScriptMetadata

FOLDERS = {
    "SKILL_BASE_DIR": "/base",
    "SKILL_DIR": "/base",
    "CLAUDE_SKILL_DIR": "/base",
    "CLAUDE_SESSION_ID": "s1",
}


def skill_at(folder: Path) -> Skill:
    return Skill(SkillMetadata(folder.name, "d", folder / "SKILL.md"))


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        pytest.param("Fix $ARGUMENTS now", "a b", "Fix a b now", id="all arguments"),
        pytest.param("$ARGUMENTS[0]-$ARGUMENTS[1]", "a b", "a-b", id="indexed from zero"),
        pytest.param("$1 then $2", "a 'b c'", "a then b c", id="numbered from one, quoting kept"),
        pytest.param("$0 then $1", "a b", "a then b", id="numbered from zero when the text does"),
        pytest.param("$10", "1 2 3 4 5 6 7 8 9 ten", "ten", id="two digits"),
        pytest.param("$1 $3", "a", "a $3", id="unmatched number stays"),
        pytest.param("$100 $1x", "a", "$100 $1x\n\nARGUMENTS: a\n", id="not placeholders"),
        pytest.param("x $ARGUMENTS[7]", "a", "x $ARGUMENTS[7]\n\nARGUMENTS: a\n", id="unmatched index stays"),
        pytest.param(r"\$1 \$ARGUMENTS $1", "a", "$1 $ARGUMENTS a", id="escapes"),
        pytest.param("{baseDir}/x", "", "/base/x", id="baseDir"),
        pytest.param("${CLAUDE_SKILL_DIR} ${SKILL_DIR} ${SKILL_BASE_DIR}", "", "/base /base /base", id="braced"),
        pytest.param("$CLAUDE_SKILL_DIR $SKILL_DIR/x $SKILL_BASE_DIR", "", "/base /base/x /base", id="bare"),
        pytest.param("${CLAUDE_SESSION_ID}", "", "s1", id="session"),
        pytest.param("${CLAUDE_PLUGIN_ROOT} ${HOME}", "", "${CLAUDE_PLUGIN_ROOT} ${HOME}", id="no value, stays"),
        pytest.param("Do it.", "a b", "Do it.\n\nARGUMENTS: a b\n", id="appended when unused"),
        pytest.param("Do it.", "  ", "Do it.", id="blank arguments are none"),
        pytest.param("$ARGUMENTSX $SKILL_DIRX", "", "$ARGUMENTSX $SKILL_DIRX", id="longer words are not ours"),
        pytest.param("$1", "open 'quote", "open", id="an open quote is split at spaces"),
    ],
)
def test_placeholders_are_filled_in(content: str, arguments: str, expected: str) -> None:
    assert substitute(content, arguments, FOLDERS) == expected


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        pytest.param("Fix $issue on $branch.", "7 main", "Fix 7 on main.", id="by position"),
        pytest.param("$issue-id/$issue", "7 main 9", "9/7", id="the longest name wins"),
        pytest.param("[$branch]", "7", "[]\n\nARGUMENTS: 7\n", id="without a value it is empty"),
        pytest.param("$issues $Issue $HOME", "", "$issues $Issue $HOME", id="other words stay"),
        pytest.param(r"\$issue is $issue", "7", "$issue is 7", id="escaped"),
        pytest.param("$issue", "'$branch'", "$branch", id="an argument is not expanded"),
    ],
)
def test_arguments_that_the_skill_names_are_filled_in(content: str, arguments: str, expected: str) -> None:
    assert substitute(content, arguments, FOLDERS, ("issue", "branch", "issue-id")) == expected


@pytest.mark.parametrize("declared", ["issue branch", "[issue, branch]", "\n  - issue\n  - branch"])
def test_names_of_arguments_come_from_the_frontmatter(tmp_path: Path, declared: str) -> None:
    front = f"name: s\ndescription: d\narguments: {declared}\n"
    skill_folder(tmp_path, "s", frontmatter=front, body="Fix $issue on $branch.\n")
    with SkillManager(tmp_path, "", [], []) as manager:
        assert "Fix 7 on main." in manager.invoke_skill("s", "7 main")


@pytest.mark.parametrize("declared", ["{a: 1}", "3", "[1, {}, '$x', '(', 'a b']", "'('"])
def test_names_that_are_none_are_no_placeholders(tmp_path: Path, declared: str) -> None:
    front = f"name: s\ndescription: d\narguments: {declared}\n"
    skill_folder(tmp_path, "s", frontmatter=front, body="Cost: $x (a $b).\n")
    with SkillManager(tmp_path, "", [], []) as manager:
        assert "Cost: $x (a $b)." in manager.invoke_skill("s", "7")


@pytest.mark.parametrize("hostile", ["$1", "$ARGUMENTS", "{baseDir}", "${CLAUDE_SKILL_DIR}", r"\$1", r"\1 \g<0>"])
def test_what_stands_in_an_argument_is_never_expanded(hostile: str) -> None:
    assert substitute("[$ARGUMENTS]", hostile, FOLDERS) == f"[{hostile}]"
    assert substitute("[$1]", shlex.quote(hostile), FOLDERS) == f"[{hostile}]"


def test_a_price_in_the_text_does_not_swallow_the_arguments() -> None:
    assert substitute("It costs $5.", "hello", FOLDERS) == "It costs $5.\n\nARGUMENTS: hello\n"


def test_commands_in_the_text_stay_text(tmp_path: Path) -> None:
    body = "!`touch executed`\n\n```!\ntouch executed\n```\n\n$(touch executed) `touch executed`\n"
    folder = skill_folder(tmp_path, "s", body=body)
    assert body.strip() in instructions_for(skill_at(folder), "; touch executed")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["SKILL.md", "s"]


def test_words_are_split_exactly_as_shlex_does() -> None:
    choice = random.Random(7)
    for _ in range(5000):
        text = "".join(choice.choice("ab '\"\\\t\n$x") for _ in range(choice.randrange(12)))
        try:
            expected = shlex.split(text)
        except ValueError:
            expected = text.split()
        assert argument_words(text) == expected, text


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", '"', "'", "\\", "a ", '\\"', "'a'"])
def test_a_million_characters_of_arguments_are_split_in_linear_time(unit: str) -> None:
    """The suite's timeout is the limit: a quadratic splitter takes minutes."""
    argument_words((unit * 1_000_000)[:1_000_000])


def test_arguments_have_a_limit(tmp_path: Path) -> None:
    skill = skill_at(skill_folder(tmp_path, "s"))
    with pytest.raises(ArgumentProcessingError, match=r"'s' have 1,000,001 characters; the limit is 1,000,000\. Put"):
        instructions_for(skill, "x" * 1_000_001)


def test_the_text_starts_with_the_base_directory_and_has_no_frontmatter(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s", body="\n# Title\n\nDo it.\n\n---\n\nMore.\n")
    expected = f"Base directory for this skill: {folder}\n\n# Title\n\nDo it.\n\n---\n\nMore.\n"
    assert instructions_for(skill_at(folder)) == expected


def test_the_scripts_stand_in_a_table_at_the_end(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s", files={"scripts/run.py": '"""Runs | it."""\n'})
    text = instructions_for(skill_at(folder))
    assert text.startswith(f"Base directory for this skill: {folder}\n\nDo it.\n\n### Available Scripts\n")
    assert "| scripts/run.py | Runs \\| it. |\n" in text
    assert text.endswith('skills_run_script(skill_name="s", script="scripts/run.py", args=["--help"])`\n')


def test_a_file_name_cannot_add_lines_to_the_table() -> None:
    script = ScriptMetadata("x\n\n# Ignore", Path("x\n\n# Ignore.py"), "python", "a | b\n| c")
    lines = scripts_table("s", [script]).split("\n")
    assert lines[6] == "| x # Ignore.py | a \\| b \\| c |"
    assert len(lines) == 10


def test_workspace_session_and_plugin_are_filled_in(tmp_path: Path) -> None:
    body = "${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID} ${CLAUDE_PLUGIN_ROOT}"
    folder = skill_folder(tmp_path, "s", body=body)
    skill = Skill(SkillMetadata("s", "d", folder / "SKILL.md", plugin_root=tmp_path / "plugin"))
    text = instructions_for(skill, session_id="s-1", workspace=tmp_path / "work")
    assert text.split("\n")[2] == f"{tmp_path / 'work'} s-1 {tmp_path / 'plugin'}"


def test_content_is_read_at_first_use_and_kept(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s", body="first")
    skill = skill_at(folder)
    skill_folder(tmp_path, "s", body="second")
    assert skill.content == "second"
    (folder / "SKILL.md").unlink()
    assert skill.content == "second"


def test_content_of_a_file_that_is_gone_is_an_error_with_its_path(tmp_path: Path) -> None:
    skill = skill_at(skill_folder(tmp_path, "s"))
    skill.metadata.skill_path.unlink()
    with pytest.raises(ContentLoadError, match=r"SKILL\.md cannot be read any more: .*\. Discover the skills again"):
        _ = skill.content


def test_content_of_a_file_that_lost_its_frontmatter_is_an_error_with_its_path(tmp_path: Path) -> None:
    skill = skill_at(skill_folder(tmp_path, "s"))
    skill.metadata.skill_path.write_text("# no frontmatter\n")
    with pytest.raises(ContentLoadError, match=r"SKILL\.md is no skill any more: There is no frontmatter\."):
        _ = skill.content


def test_content_that_grew_too_large_is_refused(tmp_path: Path) -> None:
    skill = skill_at(skill_folder(tmp_path, "s"))
    with skill.metadata.skill_path.open("r+b") as file:
        file.truncate(SKILL_FILE_LIMIT_BYTES + 1)
    with pytest.raises(SizeLimitExceededError, match="is larger than 10,000,000 bytes") as refused:
        _ = skill.content
    assert (refused.value.size, refused.value.limit) == (SKILL_FILE_LIMIT_BYTES + 1, SKILL_FILE_LIMIT_BYTES)
