"""What holds for every command: how it fails, and how it is listed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from support.skill_folders import skill_folder

from skillkit.cli.main import COMMANDS, SECTIONS, exit_code_of

MISSING = [("approvals", "show", "3f2a"), ("trust", "remove", "nope"), ("audit", "show", "99")]


@pytest.mark.parametrize("words", MISSING, ids=" ".join)
def test_what_is_not_there_is_told_like_every_failure(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--state-dir", str(tmp_path)]
    assert exit_code_of([*words, *place]) == 127
    told = capsys.readouterr()
    assert (told.out, told.err.startswith("skillkit: ")) == ("", True)
    assert exit_code_of([*words, *place, "--json"]) == 127
    told = capsys.readouterr()
    assert (json.loads(told.out)["error"]["type"], told.err) == ("MissingError", "")


def test_a_failure_of_its_own_is_not_called_a_refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo ran"})
    monkeypatch.chdir(tmp_path)
    words = ["run", "demo", "run", "--policy", "locked", "--skills", "skills", "--state-dir", "state", "--json"]
    assert exit_code_of(words) == 126
    assert json.loads(capsys.readouterr().out)["status"] == "refused"
    Path("skillkit.toml").write_text("profile = 3")
    assert exit_code_of(words) == 125
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["exit_code"]) == ("failed", 125)


def test_doctor_tells_of_settings_that_stop_every_other_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["list", "--state-dir", "state"]) == 0
    Path("skillkit.toml").write_text("profile = 3")
    assert exit_code_of(["list", "--state-dir", "state"]) == 125
    capsys.readouterr()
    assert exit_code_of(["doctor", "--state-dir", "state"]) == 1
    assert "skillkit.toml:1: 'profile' is 3;" in " ".join(capsys.readouterr().out.split())
    assert exit_code_of(["doctor", "--state-dir", "state", "--json"]) == 1
    assert "'profile' is 3" in json.loads(capsys.readouterr().out)["settings"]["problem"]


@pytest.mark.parametrize(
    "group", [(), ("approvals",), ("config",), ("trust",)], ids=lambda words: " ".join(words) or "skillkit"
)
def test_a_list_of_commands_cuts_no_sentence(group: tuple[str, ...]) -> None:
    words = [sys.executable, "-m", "skillkit", *group, "--help"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.partition("--help ")[2]
    sentences = re.findall(r"^  \w+ +(.+)$", listed, re.MULTILINE)
    assert len(sentences) > 1
    assert [sentence for sentence in sentences if sentence.endswith("...")] == []


def test_every_command_is_listed_once_under_what_it_is_for() -> None:
    told = subprocess.run([sys.executable, "-m", "skillkit"], capture_output=True, text=True, check=False).stderr
    listed = re.findall(r"^  (\w+) +[A-Z].*\.$", told, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert listed[: len(SECTIONS["Skills"])] == list(SECTIONS["Skills"])
    assert all(f"\n{title}:\n" in told for title in SECTIONS)


def test_who_cannot_be_asked_about_a_run_is_told_the_ways_to_approve_it(tmp_path: Path) -> None:
    skills = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "true\n"}).parent
    words = ["run", "demo", "run", "--skills", str(skills), "--state-dir", str(tmp_path / "state")]
    alone = ["setsid", "--wait", sys.executable, "-m", "skillkit", *words]
    ended = subprocess.run(alone, capture_output=True, text=True, check=False)
    assert ended.returncode == 126
    typed = re.search(r"trust the skill \(skillkit (.*)\), or add --wait", ended.stderr.splitlines()[-1])
    assert typed is not None
    trust = [sys.executable, "-m", "skillkit", *shlex.split(typed[1]), "--yes"]
    assert subprocess.run(trust, capture_output=True, check=False).returncode == 0
    assert subprocess.run(alone, capture_output=True, check=False).returncode == 0, "what it says works when typed"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run demo echo --done", "skillkit run demo echo -- --done"),
        ("run --timeout 3 demo echo a --done=1 b", "skillkit run --timeout 3 demo echo a -- --done=1 b"),
        ("check demo echo --done", "skillkit check demo echo -- --done"),
        ("run --done demo echo", "skillkit run SKILL SCRIPT -- --done"),
    ],
)
def test_an_option_of_the_script_is_told_its_place(capsys: pytest.CaptureFixture[str], words: str, told: str) -> None:
    assert exit_code_of(words.split()) == 2
    assert capsys.readouterr().err.endswith(f"The script's own options go after '--': {told}\n")


def test_control_other_commands_have_no_options_of_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["list", "--done"]) == 2
    assert "after '--'" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show",), "Missing argument 'SKILL'. There are: demo, other."),
        (("run", "demo"), "Missing argument 'SCRIPT'. There are: load, save."),
        (("run", "nope"), "Missing argument 'SCRIPT'."),
    ],
)
def test_who_leaves_a_name_out_sees_which_there_are(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/load.sh": "true\n", "scripts/save.py": "pass\n"})
    skill_folder(tmp_path / "skills", "other")
    command = [sys.executable, "-m", "skillkit", *words, "--skills", str(tmp_path / "skills")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (2, f"Error: {told}")


def test_check_is_as_wide_as_the_terminal(tmp_path: Path) -> None:
    skills = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "true\n"}).parent
    words = ["-m", "skillkit", "check", "demo", "run", "--skills", str(skills), "--state-dir", str(tmp_path / "state")]
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    child = pexpect.spawn(sys.executable, words, dimensions=(40, 72), encoding="utf-8", timeout=60, env=kept)
    seen = child.read().splitlines()
    child.close()
    piped = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout.splitlines()
    sentences, copied = seen[:-3], seen[-3:]
    assert max(map(len, sentences)) <= 72 < max(map(len, piped[:-3]))
    assert "".join("".join(sentences).split()) == "".join("".join(piped[:-3]).split()), "the same words"
    assert copied == piped[-3:]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_one_that_nobody_reads(tmp_path: Path, closed: str) -> None:
    skills = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo out; echo err >&2; exit 3\n"})
    words = f"run demo run --yes --skills {skills.parent} --state-dir {tmp_path / 'state'}"
    shell = ["sh", "-c", f'exec "$0" -m skillkit {words} {closed}', sys.executable]
    ended = subprocess.run(shell, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 3
    assert ended.stdout == ("" if " >&-" in f" {closed}" else "out\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_output_that_cannot_be_written_is_told_without_a_traceback(tmp_path: Path) -> None:
    skills = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo out\n"}).parent
    where = ["--skills", str(skills), "--state-dir", str(tmp_path / "state")]
    for words in (["list", "--skills", str(skills)], ["run", "demo", "run", "--yes", *where]):
        with open("/dev/full", "w") as full:
            ended = subprocess.run(
                [sys.executable, "-m", "skillkit", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert ended.returncode == 125
        assert ended.stderr.splitlines()[-1].startswith("skillkit: The output cannot be written: No space left")
        assert "Traceback" not in ended.stderr
    seen = [sys.executable, "-m", "skillkit", "audit", "tail", "--json", "--state-dir", str(tmp_path / "state")]
    told = subprocess.run(seen, capture_output=True, text=True, check=True).stdout
    assert [kind for kind in ("started", "finished") if f'"{kind}"' in told] == ["started", "finished"]


@pytest.mark.parametrize(
    ("option", "near"), [("--timout", "'--timeout'"), ("--workspace", ""), ("--bogus", ""), ("--hsot", "'--host'")]
)
def test_only_an_option_that_is_near_is_advised(capsys: pytest.CaptureFixture[str], option: str, near: str) -> None:
    assert exit_code_of(["run", "demo", "run", option, "x"]) == 2
    told = capsys.readouterr().err
    assert f"No such option '{option}'" in told or f"No such option: {option}" in told
    assert ("mean" in told, near in told) == (bool(near), True)
