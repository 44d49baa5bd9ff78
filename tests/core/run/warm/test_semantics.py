"""A script cannot tell whether it was started ahead: what it sees and says is the same, byte for byte."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest
from support.running import made_manager
from support.warm_runs import WARM, can_wait_under_landlock, cold_and_warm, needs_spares, only

from skillkit import ScriptPolicy
from skillkit.core.run.warm.spares import spares

pytestmark = needs_spares

LOOK = {
    "main and its names": """
        import sys
        print(__name__, __file__, __spec__, __package__, __doc__, __builtins__, list(globals()))
        print(sys.modules["__main__"].__dict__ is globals(), type(__loader__).__name__, __loader__.path)
        """,
    "words": "import sys; print(sys.argv, sys.orig_argv, type(sys.argv), sys.executable, sys.flags, sys.warnoptions)",
    "the kernel's command line": """
        print(open("/proc/self/cmdline", "rb").read())
        print(open("/proc/self/comm", "rb").read())
        """,
    "the kernel's environment": """
        import os
        shown = open("/proc/self/environ", "rb").read()
        print([line for line in shown.split(b"\\0") if not line.startswith((b"SKILL_WORK_DIR", b"SKILLKIT_RUN"))])
        """,
    "environment": """
        import os
        print([(name, value) for name, value in os.environ.items() if name not in ("SKILL_WORK_DIR", "SKILLKIT_RUN")])
        print("SKILL_WORK_DIR" in os.environ, os.environ["PWD"] == os.getcwd())
        """,
    "environment of a child": """
        import subprocess
        lines = subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout.splitlines()
        print([line for line in lines if not line.startswith(("SKILL_WORK_DIR", "SKILLKIT_RUN"))])
        """,
    "where modules come from": """
        import sys
        print(sys.path, sorted(sys.path_importer_cache), sys.meta_path, sys.path_hooks)
        print("sitecustomize" in sys.modules, "usercustomize" in sys.modules, "zipimport" in sys.modules)
        import zipimport
        print(zipimport._zip_directory_cache)
        """,
    "modules": "import sys; print(sorted(sys.modules))",
    "descriptors": """
        import os
        print(sorted(os.listdir("/proc/self/fd")), os.open("/dev/null", os.O_RDONLY))
        """,
    "files": """
        import os
        for place in ("/", "/tmp", "/run", "/home", "/dev", os.path.expanduser("~"), os.environ["SKILL_WORK_DIR"], "."):
            print(place.startswith("/tmp/skillkit") or place, sorted(os.listdir(place)) if os.path.isdir(place) else None)
        """,
    "mounts": """
        import re
        lines = [line.split() for line in open("/proc/self/mounts")]
        print(sorted(re.sub("/tmp/skillkit[^ ]*", "WORK", " ".join(line[1:4])) for line in lines))
        """,
    "a file beside it": """
        import helper
        print(helper.__file__, helper.WORD, helper.__cached__)
        """,
    "a file beside it with the name of a library": "import json, argparse; import calendar; print(calendar.__file__)",
    "a traceback": """
        import json
        def inner(text):
            return json.loads(text)
        inner("{")
        """,
    "a syntax error": "import json\nprint('never'\n",
    "a traceback's frames": """
        import sys, traceback
        frame, depth = sys._getframe(), 0
        while frame:
            frame, depth = frame.f_back, depth + 1
        print(depth, traceback.format_stack())
        """,
    "its own source": """
        import inspect
        def told():
            "Words."
        print(inspect.getsource(told), inspect.getsourcefile(told), inspect.getmodule(told))
        """,
    "atexit and what is not flushed": """
        import atexit, sys
        atexit.register(lambda: print("at the end"))
        sys.stdout.write("not flushed; ")
        """,
    "no flush at os._exit": "import os, sys; sys.stdout.write('lost'); os._exit(3)",
    "exit with a number": "import sys; sys.exit(7)",
    "exit with a text": "import sys; sys.exit('because')",
    "exit by a signal": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGSEGV)",
    "exit by SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "signals": """
        import signal
        print([(number, str(signal.getsignal(number))) for number in sorted(signal.valid_signals())])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        """,
    "input": "import sys; print(sys.stdin.read(), sys.stdin.encoding, sys.stdin.buffer.seekable(), sys.stdin.closed)",
    "streams": """
        import sys, os, stat
        for each in (sys.stdin, sys.stdout, sys.stderr):
            print(each, each.line_buffering, each.errors, each.isatty(), each.fileno(), stat.S_IFMT(os.fstat(each.fileno()).st_mode))
        """,
    "processes by fork": """
        import multiprocessing as m, os
        def work(n): return n * 2
        if __name__ == "__main__":
            with m.get_context("fork").Pool(2) as pool:
                print(pool.map(work, range(5)))
        """,
    "processes by spawn": """
        import multiprocessing as m, sys
        def work(n): return n * 2, sys.argv[1:]
        if __name__ == "__main__":
            with m.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, range(2)))
        """,
    "a fork of its own": """
        import os
        pid = os.fork()
        if pid == 0:
            print("child", flush=True); os._exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "threads": "import threading; print(threading.enumerate(), threading.active_count(), threading.main_thread())",
    "time zone and locale": """
        import locale, time, sys
        print(time.tzname, time.timezone, locale.getlocale(), locale.getpreferredencoding(), sys.getfilesystemencoding())
        """,
    "warnings": """
        import warnings
        warnings.warn("take care", DeprecationWarning)
        warnings.warn("and more")
        print(warnings.filters)
        """,
    "logging": """
        import logging
        logging.warning("heard")
        print(logging.getLogger().handlers, logging.root.level, sorted(logging.root.manager.loggerDict))
        """,
    "limits": """
        import resource
        for name in sorted(vars(resource)):
            if name.startswith("RLIMIT_"):
                print(name, resource.getrlimit(getattr(resource, name)))
        """,
    "who it is": """
        import os
        print(os.getuid(), os.getgid(), os.getgroups(), os.getsid(0) == os.getpgid(0), os.umask(0), os.nice(0))
        lines = open("/proc/self/status").read().splitlines()
        print([line for line in lines if line.startswith(("Uid", "Gid", "Cap", "NoNewPrivs", "Seccomp", "Groups", "Sig", "Umask"))])
        print(len(os.listdir("/proc/self/task")), os.getpid(), os.getppid())
        """,
    "C beside Python": """
        import ctypes
        print(ctypes.CDLL(None).getppid, ctypes.c_int(5), ctypes.sizeof(ctypes.c_long))
        print(ctypes.string_at(b"abc"), ctypes.CDLL(None).abs(-3))
        """,
    "garbage": """
        import gc
        print(gc.isenabled(), gc.get_threshold(), gc.garbage, gc.get_freeze_count(), gc.callbacks)
        """,
    "hooks": """
        import sys
        print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.gettrace(), sys.getprofile())
        print(sys.stdout is sys.__stdout__, hasattr(sys, "last_value"), sys.getrecursionlimit(), sys.exc_info())
        """,
    "a library that shares a name with a file beside it": "import json\nimport plistlib\nprint(plistlib.__file__)",
    "modules by hand": """
        import importlib, sys
        sys.path.insert(0, "/nowhere")
        print(importlib.import_module("helper").WORD, importlib.util.find_spec("helper").origin)
        """,
    "code after a main guard": "import json\nif __name__ == '__main__':\n    print(json.dumps({'is': 'main'}))\n",
}
BESIDE = {
    "scripts/helper.py": "WORD = 'beside'\n",
    "scripts/calendar.py": "print('of the skill')\n",
    "scripts/xml.py": "print('in the way')\n",
}


@pytest.mark.parametrize("what", LOOK)
@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
def test_it_sees_and_says_the_same(tmp_path: Path, what: str, tier: str) -> None:
    with only(tier):
        cold, warm = cold_and_warm(tmp_path, LOOK[what], BESIDE, argv=["one", "two words", "ü", ""])
    assert warm.isolation.tier == tier
    assert warm.isolation.start == "warm"
    assert said(warm) == said(cold)


AT_THE_END = """
import atexit, json, logging, os, sys, tempfile, weakref
class Last:
    def __init__(self, name):
        self.name, self.itself = name, self
    def __del__(self):
        os.write(1, f"{self.name} goes\\n".encode())
Last("at once, in a circle")
kept = Last("kept")
json.kept_by_a_library = Last("kept by a library")
weakref.finalize(kept, os.write, 1, b"finalized\\n")
atexit.register(os.write, 1, b"at exit\\n")
around = [open(os.dup(1), "w")]
around.append(around)
around[0].write("written and not flushed, in a circle\\n")
logging.getLogger().addHandler(logging.StreamHandler(open(os.dup(2), "w")))
logging.warning("logged")
tempfile.NamedTemporaryFile("w").write("x")
"""


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
def test_everything_of_the_script_goes_at_the_end(tmp_path: Path, tier: str) -> None:
    """When circles go is for Python to choose; that they go is not."""
    with only(tier):
        cold, warm = cold_and_warm(tmp_path, AT_THE_END, {})
    assert warm.isolation.start == "warm"
    assert sorted(warm.stdout.splitlines()) == sorted(cold.stdout.splitlines())
    assert len(warm.stdout.splitlines()) == 6
    assert warm.stderr == cold.stderr


@pytest.mark.parametrize(
    "call", [{"arguments": {"a": 1}}, {"stdin": b"\0\xff" * 100_000}, {"argv": ["x" * 100_000]}, {}]
)
def test_input_and_words_of_any_size_arrive(tmp_path: Path, call: dict[str, object]) -> None:
    text = """
        import sys, hashlib
        print(sys.stdin.buffer.seekable(), hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), sys.argv[1:])
        print(hashlib.sha256(open("/proc/self/cmdline", "rb").read()).hexdigest())
        """
    cold, warm = cold_and_warm(tmp_path, text, {}, **call)
    assert (warm.isolation.start, said(warm)) == ("warm", said(cold))


def test_it_starts_where_a_cold_run_does_in_its_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / ".git").mkdir(parents=True)
    (workspace / "notes.txt").write_text("mine")
    text = """
        import os
        print(os.getcwd(), sorted(os.listdir(".")), open("notes.txt").read())
        open("new.txt", "a").write("x")
        try:
            open(".git/config", "w")
        except OSError as error:
            print(error)
        """
    policy = {**WARM, "working_directory": "workspace"}
    cold, warm = cold_and_warm(tmp_path, text, {}, policy=policy, workspace=workspace)
    assert warm.isolation.start == "warm"
    assert said(warm) == said(cold).replace("['.git', 'notes.txt']", "['.git', 'new.txt', 'notes.txt']")
    assert (workspace / "new.txt").read_text() == "xx"


def test_random_numbers_and_hashes_differ_from_run_to_run(tmp_path: Path) -> None:
    text = "import random, uuid, tempfile; print(hash('x'), random.random(), uuid.uuid4(), next(tempfile._get_candidate_names()))"
    cold, warm = cold_and_warm(tmp_path, text, {})
    assert warm.isolation.start == "warm"
    assert not set(cold.stdout.split()) & set(warm.stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap")
def test_processor_time_counts_from_the_request(tmp_path: Path) -> None:
    """The library that is imported ahead uses more than the whole run may; as part of the run that would end it."""
    text = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    cold, warm = cold_and_warm(tmp_path, text, {}, timeout=1)
    assert said(warm) == said(cold) == "0\n(6, 6)\n\n"


def said(result: object) -> str:
    text = f"{result.exit_code}\n{result.stdout}\n{result.stderr}"  # type: ignore[attr-defined]
    # Without namespaces, the numbers of processes differ from run to run, and so does how many the user has already.
    text = re.sub(r"0x[0-9a-f]+|started \d+|RLIMIT_NPROC .*|SigQ:[^']*|(?<=\n1 )\d{3,} \d{3,}", "#", text)
    return re.sub(rf"{re.escape(os.path.realpath('/tmp'))}/skillkit-work[^/]*/[^/'\" ]*", "WORK", text)


def test_a_python_that_would_have_one_more_descriptor_starts_cold(tmp_path: Path) -> None:
    """Where nobody can set its names from outside."""
    if can_wait_under_landlock():
        pytest.skip("the libffi of this python3 keeps no file open")
    script = {"scripts/run.py": "import os; print(sorted(os.listdir('/proc/self/fd')))"}
    with only("landlock"), made_manager(tmp_path, script, policy=ScriptPolicy(**WARM)) as manager:
        results = []
        for _ in range(4):
            results.append(manager.execute_skill_script("demo", "run"))
            time.sleep(0.5)  # in which a spare would come to be
        assert spares.count() == 0
    assert {(each.isolation.start, each.stdout) for each in results} == {("cold", results[0].stdout)}
