"""Of other languages the walls stand ahead; what their scripts see and say is the same, byte for byte."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.running import made_manager
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import ScriptPolicy

pytestmark = needs_spares

SCRIPTS = {
    "names and words": (
        "run.sh",
        'echo "$0 ${BASH_SOURCE[0]} $# $- $SHLVL"; printf "[%s]" "$@"; echo; caller; shopt -s; set -o',
    ),
    "the kernel's command line": ("run.sh", "tr '\\0' '|' < /proc/$$/cmdline; cat /proc/$$/comm"),
    "the kernel's environment": (
        "run.sh",
        "tr '\\0' '\\n' < /proc/$$/environ | grep -v '^SKILL_WORK_DIR\\|^SKILLKIT_RUN'",
    ),
    "environment": (
        "run.sh",
        "env | grep -v '^SKILL_WORK_DIR\\|^SKILLKIT_RUN'; echo ${SKILL_WORK_DIR:+there}; pwd; declare -p | grep -c .",
    ),
    "descriptors": ("run.sh", 'for each in /proc/$$/fd/*; do echo "${each##*/}"; done'),
    "limits": ("run.sh", "ulimit -a; ulimit -H -a"),
    "who it is": (
        "run.sh",
        # Read by the shell itself: while it starts a program, signals are blocked for a moment.
        'while read -r line; do [[ $line =~ ^(Uid|Gid|Cap|NoNew|Seccomp|Sig|Umask) ]] && echo "$line"; done '
        "</proc/self/status; echo $$ $PPID; trap -p; umask",
    ),
    "files": ("run.sh", "ls -a / /tmp /run /home ~ . 2>&1"),
    "mounts": ("run.sh", "cut -d' ' -f2-4 /proc/$$/mounts | sed 's|/tmp/skillkit[^ ]*|WORK|' | sort"),
    "input": ("run.sh", "cat; read -r line; echo $?"),
    "a failure": ("run.sh", "set -e; false; echo never"),
    "a number": ("run.sh", "exit 7"),
    "a signal": ("run.sh", "echo x; kill -SEGV $$"),
    "a child that stays": ("run.sh", "sleep 30 & echo $!"),
    "no such command": ("run.sh", "no-such-command-anywhere"),
    "a syntax error": ("run.sh", "if then"),
    "node": (
        "run.js",
        "console.log(process.argv, process.execArgv, process.cwd(), __filename, require.main === module, process.stdin.isTTY);"
        "const fs = require('fs'); console.log(fs.readFileSync('/proc/self/cmdline', 'latin1'), process.title);"
        "console.log(Object.entries(process.env).filter(([name]) => !/WORK_DIR|SKILLKIT_RUN/.test(name)));"
        "console.log(fs.readFileSync(0, 'utf8'));",
    ),
    "node, a throw": ("run.js", "function inner() { throw new Error('x'); }\ninner();"),
    "node, a module": (
        "run.mjs",
        "import fs from 'node:fs'; console.log(import.meta.url, process.argv, typeof fs.statSync);",
    ),
    "perl": ("run.pl", 'print "$0 @ARGV $^X\\n"; print STDERR "err\\n"; exit 3;'),
}


@pytest.mark.parametrize("what", SCRIPTS)
@pytest.mark.parametrize("stdin", [None, b"line\nand more"])
def test_it_sees_and_says_the_same(tmp_path: Path, what: str, stdin: bytes | None) -> None:
    name, text = SCRIPTS[what]
    if (name.endswith("js") and not shutil.which("node")) or (name.endswith("pl") and not shutil.which("perl")):
        pytest.skip("not installed")
    policy = ScriptPolicy(**WARM)
    words = ["one", "two words", "ü", "", "'$(id)'", "a\nb", "-n", "X=1"]
    with made_manager(tmp_path, {f"scripts/{name}": text}, policy=policy) as manager:
        cold = manager.execute_skill_script("demo", name, argv=words, stdin=stdin)
        assert wait_for_spare()
        warm = manager.execute_skill_script("demo", name, argv=words, stdin=stdin)
    assert (cold.isolation.start, warm.isolation.start) == ("cold", "warm")
    assert said(warm) == said(cold)


def said(result: object) -> str:
    text = f"{result.exit_code}\n{result.stdout}\n{result.stderr}"  # type: ignore[attr-defined]
    return re.sub(r"/tmp/skillkit-work[^/]*/[^/'\" ]*", "WORK", text)
