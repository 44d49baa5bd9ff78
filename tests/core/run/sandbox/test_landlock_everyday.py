"""Everyday work inside the Landlock tier: what scripts do all the time goes on working."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.landlock_runs import NEEDS_LANDLOCK, PATH, PYTHON, Place, name_of, place, users

pytestmark = NEEDS_LANDLOCK

START = 'cd "$SKILL_WORK" && echo content > file && mkdir folder && echo more > folder/inner && '
COMMIT = "git -c user.name=a -c user.email=a@b commit -q"
SHELL = {
    "copy": "cp file copy && cat copy",
    "copy with its times": "cp -p file copy && cat copy",
    "copy a folder": "cp -r folder copies && cat copies/inner",
    "move": "mv file folder/moved && cat folder/moved",
    "edit in place": "sed -i s/content/changed/ file && cat file",
    "touch": "touch new && ls new",
    "pack and unpack with tar": "tar czf a.tgz folder && mkdir out && tar xzf a.tgz -C out && cat out/folder/inner",
    "pack and unpack with zip": "zip -qr a.zip folder && mkdir out && unzip -q a.zip -d out && cat out/folder/inner",
    "compress": "gzip file && gunzip file.gz && cat file",
    "install": "install -m 644 file folder/installed && cat folder/installed",
    "make a folder with a mode": "mkdir -m 700 private && touch private/x && ls private",
    "make a temporary file": 'name=$(mktemp) && echo ok > "$name" && cat "$name"',
    "make a temporary folder": 'name=$(mktemp -d) && echo ok > "$name/f" && cat "$name/f"',
    "read a document given in place": "cat <<END\ngiven\nEND",
    "substitute a process": "cat <(echo substituted) > >(cat) && sleep 0.1",
    "write to the named output": "(echo named > /dev/stdout && echo err > /dev/stderr) 2>&1 | cat",
    "throw output away": "ls / > /dev/null 2>&1 ; head -c 3 /dev/zero | wc -c",
    "a hundred pipelines": "for i in $(seq 100); do echo $i | cat | tail -n 1; done | wc -l",
    "background helpers": "for i in 1 2 3; do sleep 0.05 & done; wait && echo waited",
    "find and grep": "find . -name inner -exec grep -l more {} +",
    "sort and compare": "printf 'b\\na\\n' | sort > sorted && diff sorted <(printf 'a\\nb\\n') && echo same",
    "list with all that is known": "ls -l file && ls -Z file",
    "copy with attributes": "cp -a folder copies && cat copies/inner",
    "follow a file that grows": "{ (sleep 0.3; echo a) >> file & } && timeout 3 tail -f -n 0 file 2>&1 | grep -m 1 a",
    "a lock": "flock lock echo locked",
    "a named pipe": "mkfifo pipe && (echo through > pipe &) && cat pipe",
    "who and when": "id -u && date +%Y && uname -s",
    "database": "sqlite3 data.db 'create table t(x); insert into t values(5); select x from t'",
    "commit": f"git init -q . && git add file && {COMMIT} -m one && git log --format=%s",
    "clone": f"git init -q . && {COMMIT} --allow-empty -m one && git clone -q . b && git -C b log --format=%s",
}
PYTHON_CODE = {
    "shutil.copy": "shutil.copy('file', 'copy'); print(open('copy').read())",
    "shutil.copy2": "shutil.copy2('file', 'copy'); print(open('copy').read())",
    "shutil.copytree": "shutil.copytree('folder', 'copies'); print(open('copies/inner').read())",
    "shutil.move": "shutil.move('file', 'folder/moved'); print(open('folder/moved').read())",
    "tempfile": "f = tempfile.NamedTemporaryFile(); f.write(b'x'); d = tempfile.TemporaryDirectory(); print(f.name)",
    "sqlite3": "c = sqlite3.connect('d.db'); c.execute('create table t(x)'); c.commit(); print(c.execute('select 1'))",
    "subprocess": "print(subprocess.run(['echo', 'child'], capture_output=True, check=True).stdout)",
    "threads": "import concurrent.futures as f\nwith f.ThreadPoolExecutor(8) as p: print(sum(p.map(abs, range(9))))",
    "asyncio": "import asyncio; print(asyncio.run(asyncio.sleep(0.01, 'slept')))",
    "a child process": (
        "import multiprocessing as m\na, b = m.Pipe()\n"
        "p = m.get_context('fork').Process(target=lambda: b.send('sent')); p.start(); print(a.recv()); p.join()"
    ),
    "a virtual environment": "import venv; venv.create('env', with_pip=False); print(os.path.exists('env/bin/python'))",
    "zip and hash": (
        "import hashlib, zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.write('file')\n"
        "print(hashlib.sha256(open('a.zip', 'rb').read()).hexdigest())"
    ),
    "memory map": (
        "import mmap\nwith open('file', 'r+b') as f: m = mmap.mmap(f.fileno(), 0); m[0:1] = b'C'; m.flush()\n"
        "print(open('file').read())"
    ),
}
INTERPRETERS = {
    "python3": (PYTHON, "-c", "import json, ssl, ctypes; print('hello')"),
    "bash": ("/bin/bash", "-c", "echo hello"),
    "node": ("node", "-e", "require('fs').writeFileSync(process.env.TMPDIR + '/f', 'x'); console.log('hello')"),
    "ruby": ("ruby", "-e", "require 'json'; puts 'hello'"),
    "perl": ("perl", "-e", "use File::Temp; File::Temp->new(); print qq(hello\\n)"),
}


@pytest.fixture(params=users(), ids=name_of)
def here(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place(user=request.param) as made:
        yield made


def shell(here: Place, line: str) -> tuple[int, str, str]:
    ended = here.run("/bin/bash", "-c", f"SKILL_WORK={here.work}; {START}{line}")
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("name", SHELL)
def test_a_shell_can(here: Place, name: str) -> None:
    program = SHELL[name].split(maxsplit=1)[0]
    if program in ("zip", "sqlite3", "git") and shutil.which(program, path=PATH) is None:
        pytest.skip(f"{program} is not installed")
    if program == "zip" and shutil.which("unzip", path=PATH) is None:
        pytest.skip("unzip is not installed")
    code, out, err = shell(here, SHELL[name])
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize("name", PYTHON_CODE)
def test_python_can(here: Place, name: str) -> None:
    (here.work / "folder").mkdir()
    here.give(here.work / "folder")
    for file in ("work/file", "work/folder/inner"):
        here.file(file)
    code = f"import os, shutil, sqlite3, subprocess, tempfile\nos.chdir({str(here.work)!r})\n{PYTHON_CODE[name]}"
    ended = here.run(PYTHON, "-c", code)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


@pytest.mark.parametrize("name", INTERPRETERS)
def test_interpreters_start(here: Place, name: str) -> None:
    program, *rest = INTERPRETERS[name]
    found = shutil.which(program, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed")
    ended = here.run(found, *rest)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "hello\n", "")


def test_node_can_copy_a_file_and_start_a_child(here: Place) -> None:
    node = shutil.which("node", path=PATH)
    if node is None:
        pytest.skip("node is not installed")
    code = (
        f"process.chdir({str(here.work)!r}); const fs = require('fs');"
        "fs.writeFileSync('a', 'x'); fs.copyFileSync('a', 'b');"
        "console.log(fs.readFileSync('b') + require('child_process').execFileSync('/bin/echo', ['child']))"
    )
    ended = here.run(node, "-e", code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "xchild\n\n", "")


def test_node_that_watches_a_file_hears_that_nobody_can(here: Place) -> None:
    node = shutil.which("node", path=PATH)
    if node is None:
        pytest.skip("node is not installed")
    code = (
        f"const fs = require('fs'); try {{ fs.watch({str(here.work)!r}) }} catch (e) {{ console.log(e.code) }}"
        f"fs.watchFile({str(here.work)!r}, () => {{}}); fs.unwatchFile({str(here.work)!r}); console.log('polled')"
    )
    assert here.run(node, "-e", code).stdout == "ENOSYS\npolled\n"


def test_the_one_thing_that_does_not_work_is_to_make_a_file_executable(here: Place) -> None:
    """Answered with success, not done: then the program is not one. Running it by its interpreter works."""
    code, out, err = shell(here, "echo 'echo ran' > program && chmod +x program && bash program && ./program")
    assert (code, out) == (126, "ran\n")
    assert "Permission denied" in err


def test_locks_between_processes_fail_as_the_report_says(here: Place) -> None:
    ended = here.run(PYTHON, "-c", "import multiprocessing; multiprocessing.Lock()")
    assert ended.returncode == 1
    assert "PermissionError" in ended.stderr
    assert any("multiprocessing" in each for each in here.confined(("/bin/true",)).isolation.degraded)
