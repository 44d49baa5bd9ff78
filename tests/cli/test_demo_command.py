"""`skillkit demo` tells its story without a person, a terminal or a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.package_index import serving_index
from support.running import needs


def test_the_demo_succeeds_from_any_folder_and_leaves_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "skillkit", "demo"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "UV_DEFAULT_INDEX": "http://127.0.0.1:9/"},
    )
    refusal = "skillkit: Tool 'Bash' not allowed for skill 'house-style'. Allowed tools: Read\n"
    assert ended.returncode == 0
    assert [line for line in ended.stderr.splitlines(keepends=True) if line.startswith("skillkit:")] == [refusal]
    for shown in ("$ skillkit list", "$ skillkit show csv-report", "6 checked, 0 errors", "# CSV report", "Intact:"):
        assert shown in ended.stdout
    question, _, rest = ended.stdout.partition("$ skillkit approvals answer ")
    assert "Yes in this session" in question
    assert "# CSV report\n" not in question, "it has run before it was approved"
    assert "# CSV report\n" in rest.partition("# And a script that is too curious?")[0]
    assert "yes once by cli" in rest
    if "(left out: this machine has no walls" not in ended.stdout:
        curious = rest.partition("$ skillkit run curious look --yes\n")[2].splitlines()[:4]
        assert [line.endswith(": done") for line in curious] == [False, False, False, True]
    approved, _, unapproved = ended.stdout.partition("# And of one that nobody approved")
    assert '<script_output source="scripts/report.py" arguments="--sample" status="ok" exit_code="0">' in approved
    assert 'arguments="--sample" status="approval_unavailable">' in unapproved
    assert 'status="ok" exit_code' not in unapproved
    assert "(left out: The index 127.0.0.1 does not answer" in ended.stdout or "(left out: packages are" in ended.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("answers", [True, False], ids=["an index", "a silent index"])
def test_the_demo_prepares_a_package_where_an_index_answers(tmp_path: Path, answers: bool) -> None:
    needs("bwrap")
    given = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    with serving_index() as index:
        index.add("tabulate", "1.0", "def tabulate(rows, headers):\n    return f'{len(rows)} rows of {headers[0]}'\n")
        index.hangs = not answers
        given |= {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "UV_DEFAULT_INDEX": index.address}
        words = [sys.executable, "-m", "skillkit", "demo"]
        ended = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path, env=given)
    shown = ended.stdout.partition("# A script may need a package.")[2].partition("# Trust a skill")[0]
    if answers:
        assert "tabulate 1.0, 1 kB, 100 days old, declared in scripts/table.py:2" in shown
        assert "2 rows of tea\n" in shown
        assert "(packages)" in ended.stdout, "it is on record"
    else:
        assert "(left out: The index 127.0.0.1 does not answer: timed out" in shown
    assert list(tmp_path.iterdir()) == []


def test_the_end_names_a_command_that_can_be_typed(tmp_path: Path) -> None:
    command = tmp_path / "own" / "bin" / "skillkit"
    command.parent.mkdir(parents=True)
    command.touch(mode=0o755)
    told = "import sys; sys.executable = sys.argv[1]; from skillkit.cli.demo import command_here; print(command_here())"
    words = [sys.executable, "-c", told, str(command.with_name("python"))]
    typed = {}
    for path in ("/nowhere", str(command.parent)):
        ended = subprocess.run(
            words, capture_output=True, text=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": path}
        )
        typed[path] = ended.stdout
    assert typed == {"/nowhere": "own/bin/skillkit\n", str(command.parent): "skillkit\n"}


def test_the_examples_can_be_copied_and_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    mine = tmp_path / "skills" / "csv-report" / "SKILL.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("my own")
    words = [sys.executable, "-m", "skillkit", "demo", "--copy", "skills"]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ended.stdout == "Copied 5 example skills to skills.\n"
    assert ended.stderr == "Already there, and left as they are: csv-report.\n"
    assert mine.read_text() == "my own"
    check = [sys.executable, "-m", "skillkit", "validate", "skills/text-stats"]
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_a_copy_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "skillkit", "demo", "--copy", "/proc/skills"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 125
    assert ended.stderr.startswith("skillkit: The example skills cannot be copied to /proc/skills: ")
