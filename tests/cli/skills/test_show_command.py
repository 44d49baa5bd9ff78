"""`skillkit show`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples" / "skills"


def show(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", "show", *map(str, words)], capture_output=True, text=True, check=False
    )


def test_a_skill_is_shown_with_its_scripts_and_files() -> None:
    ended = show("csv-report", "--skills", EXAMPLES)
    assert (ended.returncode, ended.stderr) == (0, "")
    for shown in ("csv-report\n", "version  1.2.0", "scripts/report.py", "scripts/lib/columns.py", "assets/sample.csv"):
        assert shown in ended.stdout


def test_text_is_what_an_agent_reads() -> None:
    ended = show("csv-report", "--skills", EXAMPLES, "--text")
    assert ended.stdout.startswith(f"Base directory for this skill: {EXAMPLES / 'csv-report'}\n")
    assert "### Available Scripts" in ended.stdout
    assert "\nname: csv-report" not in ended.stdout


def test_json_holds_scripts_files_and_instructions() -> None:
    structure = json.loads(show("log-digest", "--skills", EXAMPLES, "--json").stdout)
    assert structure["schema_version"] == 1
    assert structure["allowed_tools"] == ["Bash", "Read"]
    assert {script["type"] for script in structure["scripts"]} == {"shell", "javascript"}
    assert structure["instructions"].strip().startswith("#")


def test_an_unknown_skill_gives_127_and_the_nearest_name() -> None:
    ended = show("csv-reprot", "--skills", EXAMPLES)
    assert (ended.returncode, ended.stdout) == (127, "")
    assert ended.stderr == "skillkit: No skill is named 'csv-reprot'. Did you mean 'csv-report'?\n"
