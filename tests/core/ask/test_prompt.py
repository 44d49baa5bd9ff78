from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.skill_folders import skill_folder

from skillkit import ContentChangedError
from skillkit.core.ask.prompt import pretty_json, prompt_for, source_text, stdin_text
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.questions import FileChange, Prompt, PromptCommand, RiskFlag
from skillkit.core.values.runs import ScriptCommand

SOURCE = "import os\nos.remove('x')\n"


def made(tmp_path: Path, files: dict[str, str] | None = None) -> Path:
    return skill_folder(tmp_path, "demo", files={"scripts/run.py": SOURCE, **(files or {})})


def command(folder: Path, **changes: object) -> ScriptCommand:
    name = str(changes.get("script_name", "scripts/run.py"))
    plain = ScriptCommand(
        skill_name="demo",
        digest=manifest_of(folder).digest,
        base_directory=folder,
        script_path=folder / name,
        script_name=name,
        interpreter="python3",
        allowed_tools=(),
        argv=("/usr/bin/python3", str(folder / name), "--to", "a b"),
        cwd=str(folder),
        environment={},
        stdin=b'{"a":[1,2]}',
        timeout=30,
        output_limit=100,
        arguments=None,
        script_arguments=("--to", "a b"),
        session_id=None,
        workspace=None,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # any field


def prompt(folder: Path, *commands: ScriptCommand, approved: Path | None = None) -> Prompt:
    return prompt_for(
        commands or (command(folder),),
        origin="/skills/demo",
        reasons=["First run."],
        manifest=manifest_of(folder),
        source_folder=folder,
        approved_folder=approved,
        walls=("It cannot use the network.",),
    )


def test_a_prompt_joins_what_would_run_with_what_is_known_of_it(tmp_path: Path) -> None:
    folder = made(tmp_path)
    shown = prompt(folder)
    assert (shown.skill, shown.origin, shown.reasons) == ("demo", "/skills/demo", ("First run.",))
    assert [(flag.kind, flag.path, flag.line) for flag in shown.risks] == [("delete", "scripts/run.py", 2)]
    assert shown.changes is None
    assert shown.commands == (
        PromptCommand("scripts/run.py", ("--to", "a b"), '{\n  "a": [\n    1,\n    2\n  ]\n}', SOURCE, "python3"),
    )
    assert (shown.walls, shown.digest) == (("It cannot use the network.",), manifest_of(folder).digest)
    assert Prompt.from_context(shown.to_context()) == shown


def test_changes_since_the_last_approval_are_shown(tmp_path: Path) -> None:
    approved = made(tmp_path / "approved")
    folder = made(tmp_path, {"new.txt": "hello\n"})
    assert prompt(folder, approved=approved).changes == (
        FileChange("added", "new.txt", "@@ -0,0 +1,1 @@\n+hello", added=1),
    )
    assert prompt(folder, approved=folder).changes == ()


def test_several_commands_of_one_skill_share_a_prompt(tmp_path: Path) -> None:
    folder = made(tmp_path, {"b.sh": "rm x\n"})
    shown = prompt(folder, command(folder, script_name="b.sh", stdin=b""), command(folder))
    assert [each.script for each in shown.commands] == ["b.sh", "scripts/run.py"]
    assert [flag.path for flag in shown.risks] == ["b.sh", "scripts/run.py"]


def test_commands_of_two_skills_do_not(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with pytest.raises(ValueError, match="of one skill"):
        prompt(folder, command(folder), command(folder, skill_name="other"))


def test_commands_of_two_versions_of_a_skill_do_not(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with pytest.raises(ValueError, match="all of the same digest"):
        prompt(folder, command(folder), command(folder, digest="0" * 64))


def test_a_script_that_changed_since_it_was_hashed_is_not_shown(tmp_path: Path) -> None:
    folder = made(tmp_path)
    manifest, given_command = manifest_of(folder), command(folder)
    (folder / "scripts/run.py").write_text("print('other')\n")
    with pytest.raises(ContentChangedError, match=r"scripts/run.py changed after it was looked at"):
        prompt_for(
            [given_command],
            origin="",
            reasons=(),
            manifest=manifest,
            source_folder=folder,
            approved_folder=None,
            walls=(),
        )


def test_a_command_of_another_digest_is_not_shown(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with pytest.raises(ContentChangedError, match="demo changed") as caught:
        prompt(folder, command(folder, digest="0" * 64))
    assert caught.value.reasons == ("demo changed after it was looked at",)


@pytest.mark.parametrize("swap", ["link", "gone", "pipe", "folder"])
def test_a_script_that_is_no_file_any_more_is_not_shown(tmp_path: Path, swap: str) -> None:
    folder = made(tmp_path)
    manifest, given_command = manifest_of(folder), command(folder)
    script = folder / "scripts/run.py"
    script.rename(tmp_path / "away.py")
    if swap == "link":
        os.symlink(tmp_path / "away.py", script)
    elif swap == "pipe":
        os.mkfifo(script)
    elif swap == "folder":
        script.mkdir()
    with pytest.raises(ContentChangedError, match=r"run.py changed"):
        prompt_for(
            [given_command],
            origin="",
            reasons=(),
            manifest=manifest,
            source_folder=folder,
            approved_folder=None,
            walls=(),
        )


def test_an_empty_script_that_is_gone_is_not_shown_as_empty(tmp_path: Path) -> None:
    folder = made(tmp_path, {"empty.py": ""})
    manifest = manifest_of(folder)
    assert source_text(folder, "empty.py", manifest) == ""
    (folder / "empty.py").unlink()
    with pytest.raises(ContentChangedError, match=r"empty.py changed"):
        source_text(folder, "empty.py", manifest)


def test_a_name_that_no_file_can_have_is_not_shown(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with pytest.raises(ContentChangedError, match="changed after it was looked at"):
        source_text(folder, "scripts/\0.py", manifest_of(folder))


def test_a_long_source_is_cut_with_a_mark_and_still_checked_as_a_whole(tmp_path: Path) -> None:
    folder = made(tmp_path, {"scripts/long.py": "#" * 250_000})
    (shown,) = prompt(folder, command(folder, script_name="scripts/long.py")).commands
    assert shown.source == "#" * 200_000 + "\n[... 50,000 more bytes ...]"


@pytest.mark.parametrize(("source", "stdin"), [(200_001, 0), (0, 20_001), (200_000, 20_000)])
def test_what_is_not_shown_is_the_first_of_the_risks(tmp_path: Path, source: int, stdin: int) -> None:
    folder = made(tmp_path, {"scripts/long.sh": "#" * source})
    risks = prompt(folder, command(folder, script_name="scripts/long.sh", stdin=b"x" * stdin)).risks
    told = [risk.message for risk in risks if risk.message.endswith("shown.")]
    expected = ["Of its 200,001 bytes only the first 200,000 are shown."] if source > 200_000 else []
    expected += ["Of its input only the first 20,000 characters are shown."] if stdin > 20_000 else []
    assert told == expected
    assert [risk.message for risk in risks[: len(told)]] == told


def test_a_binary_source_is_said_to_be_binary(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "scripts/run.py").write_bytes(b"\0\1")
    assert prompt(folder).commands[0].source == "[a binary file of 2 bytes, which cannot be shown]"


@pytest.mark.parametrize(("before", "is_binary"), [(8_191, True), (8_192, False)])
def test_only_the_start_of_a_source_says_whether_it_is_binary(tmp_path: Path, before: int, is_binary: bool) -> None:
    folder = made(tmp_path)
    (folder / "scripts/run.py").write_bytes(b"#" * before + b"\0")
    assert prompt(folder).commands[0].source.startswith("[a binary file") is is_binary


def test_bytes_of_a_source_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "scripts/run.py").write_bytes(b"# \xff\n")
    assert prompt(folder).commands[0].source == "# \ufffd\n"


@pytest.mark.parametrize(
    ("stdin", "text"),
    [
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"plain text", "plain text", id="no JSON"),
        pytest.param(b"[1]", "[\n  1\n]", id="JSON"),
        pytest.param('{"a":"\u00fc"}'.encode(), '{\n  "a": "\u00fc"\n}', id="letters stay letters"),
        pytest.param(b'{"a":1,"a":2}', '{"a":1,"a":2}', id="a name twice"),
        pytest.param(b'{"a":{"b":1,"b":2}}', '{"a":{"b":1,"b":2}}', id="a name twice inside"),
        pytest.param(b"[1.00000000000000000001]", "[1.00000000000000000001]", id="a number that would be rounded"),
        pytest.param(b"[1e999]", "[1e999]", id="a number too large"),
        pytest.param(b"[NaN]", "[NaN]", id="no number"),
        pytest.param(b"[1.5]", "[\n  1.5\n]", id="a number that is not rounded"),
        pytest.param(b"[-0]", "[-0]", id="a sign"),
        pytest.param(b'["\\ud800"]', '["\\ud800"]', id="half a surrogate pair"),
        pytest.param(b"\xff\x00", "\\xff\x00", id="bytes"),
        pytest.param(b"[" * 100_000, "[" * 20_000 + "\n[... 80,000 more characters ...]", id="deep"),
        pytest.param(b"x" * 20_000, "x" * 20_000, id="as long as is shown"),
        pytest.param(b"x" * 20_001, "x" * 20_000 + "\n[... 1 more characters ...]", id="long"),
    ],
)
def test_stdin_as_it_is_shown(stdin: bytes, text: str) -> None:
    assert stdin_text(stdin) == text


@pytest.mark.parametrize(("length", "start"), [(200_000, "[\n"), (200_001, '["')])
def test_json_too_large_to_be_read_again_is_shown_as_it_is(length: int, start: str) -> None:
    assert stdin_text(b'["' + b"x" * (length - 4) + b'"]').startswith(start)


def test_what_is_no_json_has_no_pretty_form() -> None:
    assert pretty_json("plain text") == ""


# Of few letters: all that there are take longer to draw from than the whole test.
TEXT = st.text('a0 "\\\n\u00fc\U0001f600', max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(value=JSON)
def test_pretty_json_means_the_same(value: object) -> None:
    import json

    text = json.dumps(value)
    pretty = pretty_json(text)
    assert pretty == "" or json.loads(pretty) == json.loads(text) == value


def test_words_that_are_no_text_can_be_kept(tmp_path: Path) -> None:
    folder = made(tmp_path)
    shown = prompt(folder, command(folder, script_arguments=(os.fsdecode(b"\xff"),)))
    assert shown.commands[0].argv == ("\\xff",)


def test_the_script_about_to_run_is_the_first_change(tmp_path: Path) -> None:
    """Not the alphabetically first file, which may be a picture."""
    approved = made(tmp_path / "approved", {"a.png": "old", "b.py": "x\n", "SKILL.md": "one\n"})
    folder = made(tmp_path, {"a.png": "\0new", "b.py": "x\ny\n", "SKILL.md": "two\n"})
    (folder / "scripts/run.py").write_text(SOURCE + "print(1)\n")
    changes = prompt(folder, approved=approved).changes
    assert changes is not None
    assert [change.path for change in changes] == ["scripts/run.py", "b.py", "SKILL.md", "a.png"]
    assert [change.added for change in changes] == [1, 1, 1, 0]


def test_what_is_too_many_to_show_is_counted_all_the_same(tmp_path: Path) -> None:
    approved = made(tmp_path / "approved", {"gone.txt": "x\n"})
    folder = made(tmp_path, {f"{number}.txt": "a\nb\n" for number in range(250)})
    shown = prompt(folder, approved=approved)
    assert shown.change_counts == {"added": 250, "removed": 1}
    assert sum(change.added for change in shown.changes or ()) == 500
    assert Prompt.from_context(json.loads(json.dumps(shown.to_context()))) == shown


def test_the_heaviest_risks_come_first_and_what_the_walls_stop_last(tmp_path: Path) -> None:
    folder = made(tmp_path)
    near, far = RiskFlag("process", "", "scripts/run.py", 1, 20), RiskFlag("process", "", "b.sh", 1, 20)
    stopped, worst = RiskFlag("network", "", "b.sh", 2, 60, True), RiskFlag("delete", "", "b.sh", 3, 95)
    shown = replace(prompt(folder), risks=(far, stopped, near, worst))
    assert shown.risks_by_weight == (worst, near, far, stopped)
