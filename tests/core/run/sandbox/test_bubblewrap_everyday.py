"""What scripts do every day works inside the bubblewrap walls."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from support.confined_runs import Room, bubblewrap_refusal, open_folder, users

from skillkit.core.run.sandbox.explain import explanation
from skillkit.core.run.sandbox.machine import interpreter_paths
from skillkit.core.values.policy import Limits

pytestmark = pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")

PREPARE = 'set -e; cd "$1"; echo text > a; mkdir -p d/e; echo deep > d/e/f; '
# Name -> a program it needs, and what is run in the work folder; it prints ok.
OPERATIONS = {
    "cp": ("cp", "cp a b; test $(cat b) = text"),
    "cp -p": ("cp", "cp -p a b; test b -nt /etc/passwd -o b -ot /etc/passwd"),
    "cp -r": ("cp", "cp -r d g; test $(cat g/e/f) = deep"),
    "mv": ("mv", "mv a b; test -f b; mv b /tmp/b; mv /tmp/b a"),
    "sed -i": ("sed", "sed -i s/text/other/ a; test $(cat a) = other"),
    "touch": ("touch", "touch -d 2001-01-01 a; test $(date -r a +%Y) = 2001"),
    "tar": ("tar", "tar cf t.tar d; rm -r d; tar xf t.tar; test $(cat d/e/f) = deep"),
    "zip": ("zip", "zip -q t.zip a; rm a; unzip -q t.zip; test $(cat a) = text"),
    "gzip": ("gzip", "gzip a; gunzip a.gz; test $(cat a) = text"),
    "install": ("install", "install -m 640 a b; test $(stat -c %a b) = 640"),
    "chmod +x and run": ("bash", "printf '#!/bin/sh\\necho run' > r; chmod +x r; test $(./r) = run"),
    "mkdir -m": ("mkdir", "mkdir -m 700 m; test $(stat -c %a m) = 700"),
    "mktemp": ("mktemp", 'f=$(mktemp); echo x > "$f"; d=$(mktemp -d); test -d "$d"'),
    "a home folder": ("bash", 'mkdir -p ~/.config/x; echo y > ~/.config/x/y; test "$HOME" != /root'),
    "git": (
        "git",
        "git init -q r; cd r; git config user.name n; git config user.email n; echo x > y; git add y; git commit -qm m",
    ),
    "process substitution": ("bash", 'test "$(cat <(echo one) <(echo two) | wc -l)" = 2'),
    "standard streams by name": ("bash", "echo x > /dev/stdout | cat; echo x > /dev/null; cat < /dev/stdin"),
    "100 pipelines": ("bash", "for i in $(seq 100); do echo $i | sed s/x/y/ | cat > /dev/null; done"),
    "alternatives": ("awk", "echo a b | awk '{print $2}' | grep -q b"),
    "accounts": ("id", 'test "$(id -un)" = skill; id -gn > /dev/null; whoami > /dev/null'),
    "background and wait": ("bash", "sleep 0.1 & wait $!; (trap 'exit 0' TERM; sleep 5 & wait) & kill $!"),
    "links": ("ln", "ln a hard; ln -s a soft; test $(cat soft) = text; test $(readlink soft) = a"),
}
PYTHON_OPERATIONS = {
    "shutil": ("import shutil\nshutil.copy('a', 'b'); shutil.copy2('a', 'c'); shutil.copytree('d', 'g')"),
    "tempfile": "import tempfile; tempfile.NamedTemporaryFile().write(b'x'); tempfile.mkdtemp()",
    "sqlite": "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t(a)'); c.commit()",
    "multiprocessing pool": (
        "import multiprocessing as m\nif __name__ == '__main__':\n"
        "    with m.get_context('fork').Pool(2) as p: assert p.map(abs, [-1, 2]) == [1, 2]"
    ),
    "multiprocessing queue": (
        "import multiprocessing as m\ndef f(q): q.put(7)\nif __name__ == '__main__':\n"
        "    c = m.get_context('spawn'); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start()\n"
        "    assert q.get() == 7; p.join()"
    ),
    "process pool": (
        "import multiprocessing as m, concurrent.futures as f\nif __name__ == '__main__':\n"
        "    with f.ProcessPoolExecutor(2, m.get_context('fork')) as p: assert list(p.map(abs, [-1, 2])) == [1, 2]"
    ),
    "multiprocessing manager": (
        "import multiprocessing as m\nif __name__ == '__main__':\n"
        "    with m.get_context('fork').Manager() as g: assert list(g.list([1])) == [1]"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor as T\n"
        "with T(20) as pool: assert list(pool.map(abs, range(40))) == list(range(40))"
    ),
    "asyncio": "import asyncio; asyncio.run(asyncio.sleep(0.01))",
    "asyncio subprocess": (
        "import asyncio\nasync def f():\n p = await asyncio.create_subprocess_exec('true'); return await p.wait()\n"
        "assert asyncio.run(f()) == 0"
    ),
    "subprocess": "import subprocess; assert subprocess.check_output(['echo', 'x'], text=True) == 'x\\n'",
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory as S\nm = S(create=True, size=9); m.close(); m.unlink()"
    ),
    "venv": (
        "import venv, subprocess\nvenv.create('v', with_pip=False)\nsubprocess.check_call(['v/bin/python', '-c', ''])"
    ),
    "user and home": (
        "import getpass, os\nassert getpass.getuser() == 'skill'\nos.makedirs(os.path.expanduser('~/.cache/x'))"
    ),
    "time zone": "import time, zoneinfo; time.localtime(); zoneinfo.ZoneInfo('Europe/Berlin')",
    "random and hashes": (
        "import secrets, hashlib, ssl\nsecrets.token_hex(); hashlib.sha256(b'x'); ssl.create_default_context()"
    ),
}
# Children that multiprocessing starts read the script again, under another name.
LAST = "if __name__ == '__main__': print('ok')\n"
INTERPRETERS = {
    "python3": ("-c", "import sys; print('ok')"),
    "bash": ("-c", "echo ok"),
    "node": ("-e", "console.log('ok')"),
    "ruby": ("-e", "puts 'ok'"),
    "perl": ("-e", "print qq(ok\\n)"),
}
NODE_FILES = (
    "const fs = require('fs'); fs.copyFileSync('a', 'b'); fs.mkdirSync('x/y', {recursive: true}); "
    "fs.rmSync('x', {recursive: true}); require('child_process').execFileSync('true'); "
    "const cp = require('child_process'); cp.spawn('cat', {stdio: ['pipe', 'pipe', 'pipe']}).stdin.end('x'); "
    "if (process.env.FORKED) { process.send('hi'); process.disconnect(); return; } "
    "cp.fork(__filename, {env: {FORKED: '1'}}).on('message', (m) => { if (m !== 'hi') throw m; }); "
    "require('os').userInfo(); new (require('worker_threads').Worker)('', {eval: true}).on('exit', "
    "() => console.log('ok'));"
)


def require_program(name: str) -> str:
    path = shutil.which(name, path="/usr/bin:/bin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("user", users())
def test_a_shell_script_can(name: str, user: int | None) -> None:
    program, script = OPERATIONS[name]
    require_program(program)
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        whole = f"{PREPARE}{script}; echo ok"
        status, output, errors = room.run("/bin/bash", "-c", whole, "bash", str(room.work))
        assert (status, output.splitlines()[-1:]) == (0, ["ok"]), errors


@pytest.mark.parametrize("name", PYTHON_OPERATIONS)
@pytest.mark.parametrize("user", users())
def test_a_python_script_can(name: str, user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        (room.skill / "script.py").write_text(f"{PYTHON_OPERATIONS[name]}\n{LAST}")
        whole = f"{PREPARE}exec /usr/bin/python3 {room.skill}/script.py"
        status, output, errors = room.run("/bin/bash", "-c", whole, "bash", str(room.work))
        assert (status, output.splitlines()[-1:]) == (0, ["ok"]), errors


@pytest.mark.parametrize("name", sorted(PYTHON_OPERATIONS.keys() - {"multiprocessing manager"}))
def test_beside_the_users_own_files_a_python_script_can(name: str) -> None:
    """There are no unix sockets there, and nearly nothing needs one."""
    with open_folder() as folder:
        room = Room.made(folder).with_walls(workspace=str(folder / "outside"))
        (room.skill / "script.py").write_text(f"{PYTHON_OPERATIONS[name]}\n{LAST}")
        whole = f"{PREPARE}exec /usr/bin/python3 {room.skill}/script.py"
        status, output, errors = room.run("/bin/bash", "-c", whole, "bash", str(room.work))
        assert (status, output.splitlines()[-1:]) == (0, ["ok"]), errors


def test_beside_the_users_own_files_a_manager_of_multiprocessing_is_refused_and_the_script_hears_why() -> None:
    with open_folder() as folder:
        room = Room.made(folder).with_walls(workspace=str(folder / "outside"))
        (room.skill / "script.py").write_text(PYTHON_OPERATIONS["multiprocessing manager"])
        status, _, errors = room.run("/usr/bin/python3", str(room.skill / "script.py"))
    assert status == 1
    assert "Unix sockets are blocked inside the walls" in explanation(errors, room.walls, lambda _: False)


@pytest.mark.parametrize("name", INTERPRETERS)
@pytest.mark.parametrize("user", users())
def test_an_interpreter_starts(name: str, user: int | None) -> None:
    with open_folder() as folder:
        assert Room.made(folder, user=user).run(require_program(name), *INTERPRETERS[name]) == (0, "ok\n", "")


@pytest.mark.parametrize("user", users())
@pytest.mark.parametrize("opened", [False, True], ids=["alone", "beside the user's files"])
def test_a_node_script_can_use_files_processes_and_workers(user: int | None, *, opened: bool) -> None:
    node = require_program("node")
    with open_folder() as folder:
        # From version 24 on each thread sets 512 MB aside for its code, and the kernel counts them.
        limits = Limits(data_megabytes=2048)
        workspace = str(folder / "outside") if opened else None
        room = Room.made(folder, user=user).with_walls(workspace=workspace, limits=limits)
        (room.skill / "script.js").write_text(NODE_FILES)
        whole = f"{PREPARE}exec {node} {room.skill}/script.js"
        assert room.run("/bin/bash", "-c", whole, "bash", str(room.work))[:2] == (0, "ok\n")


def test_the_python_of_a_version_manager_starts_with_its_own_folder() -> None:
    with open_folder() as folder:
        room = Room.made(folder)
        venv = room.outside / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        python = str(venv / "bin/python")
        room = room.with_walls(interpreter=interpreter_paths(python, home="/root"))
        status, output, errors = room.run(python, "-c", "import json, sys; print(sys.prefix)")
        assert (status, output) == (0, f"{venv}\n"), errors
