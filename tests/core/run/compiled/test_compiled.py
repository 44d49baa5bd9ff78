"""Modules of a skill are compiled once; whether they were, a script cannot tell."""

from __future__ import annotations

import json
import marshal
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from support.running import kinds, made_manager, wait_for
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import ScriptExecutionResult, ScriptPolicy, SkillManager
from skillkit.core.run.compiled import making
from skillkit.core.run.process import can_preface
from skillkit.core.store.compiled import CompiledFiles, interpreter_key

pytestmark = pytest.mark.skipif(not can_preface(), reason="no descriptor can be placed here")
POLICY = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required", home="kept", warm="off")
HELPERS = {
    "scripts/helper.py": "import other\nWORD = 'beside'\ndef fail():\n    raise ValueError('inside')\n",
    "scripts/other.py": "OTHER = 1\n",
    "scripts/pack/__init__.py": "from . import inner\n",
    "scripts/pack/inner.py": "INNER = __file__\n",
    "lib/far.py": "FAR = __file__\n",
}


def kept(manager: SkillManager) -> list[Path]:
    """What was made, when nothing is being made any more."""
    if (thread := manager.flow.here.compiled._thread) is not None:
        thread.join()
    folder = manager.flow.here.snapshots.folder / ".compiled"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def table_of(path: Path) -> dict[str, tuple[bytes, bytes]]:
    found = making.loaded(path.read_bytes())
    return marshal.loads(found.table) if found.table else {}


def twice(manager: SkillManager, **call: Any) -> tuple[ScriptExecutionResult, ScriptExecutionResult]:
    """Before and after its modules are compiled."""
    first = manager.execute_skill_script("demo", "run", **call)
    assert kept(manager)
    return first, manager.execute_skill_script("demo", "run", **call)


def falsified(path: Path, name: str, text: str) -> None:
    """As only who owns the state can: other code for the same source."""
    found = making.loaded(path.read_bytes())
    table = marshal.loads(found.table)
    table[name] = (table[name][0], marshal.dumps(compile(text, name, "exec")))
    told = {"users": sorted(found.users), "magic": found.magic.hex(), "hook": len(found.hook)}
    told["unseen"] = found.is_unseen
    path.write_bytes(json.dumps(told).encode() + b"\n" + found.hook + marshal.dumps(table, 2))


def with_this_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that the tests make is for the interpreter that runs the script."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def keeps_a_file_open() -> bool:
    """Whether this Python would have one more descriptor by what hides that modules were compiled; newer ones of Debian do."""
    count = "len(os.listdir('/proc/self/fd'))"
    look = f"import os; before = {count}; import _ctypes; print({count} - before)"
    return subprocess.check_output([sys.executable, "-I", "-S", "-c", look], text=True) != "0\n"


def test_the_next_run_uses_what_was_compiled(tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown by other code in its place, which only the owner of the state can put there."""
    del tier
    with_this_python(tmp_path, monkeypatch)
    text = "import helper, pack\nprint(helper.WORD, pack.inner.INNER)\n"
    with made_manager(tmp_path, {"scripts/run.py": text, **HELPERS}, policy=POLICY) as manager:
        before, after = twice(manager)
        assert before.stdout == after.stdout
        assert before.stdout.startswith("beside ")
        [made] = kept(manager)
        assert {"scripts/helper.py", "scripts/other.py", "scripts/pack/inner.py"} <= table_of(made).keys()
        falsified(made, "scripts/helper.py", "WORD = 'compiled'")
        manager.flow.here.compiled._known.clear()
        word = "beside" if keeps_a_file_open() else "compiled"
        assert manager.execute_skill_script("demo", "run").stdout.startswith(f"{word} ")


@needs_spares
def test_a_warm_run_uses_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_this_python(tmp_path, monkeypatch)
    text = "import json, helper\nprint(helper.WORD, helper.__cached__, vars(helper.__loader__))\n"
    with made_manager(tmp_path, {"scripts/run.py": text, **HELPERS}, policy=ScriptPolicy(**WARM)) as manager:
        first = manager.execute_skill_script("demo", "run")
        [made] = kept(manager)
        for word in ("beside", "compiled"):
            assert wait_for_spare()
            result = manager.execute_skill_script("demo", "run")
            assert result.isolation.start == "warm"
            assert result.stdout == first.stdout.replace("beside", word, 1)
            falsified(made, "scripts/helper.py", "WORD = 'compiled'")
            manager.flow.here.compiled._known.clear()


LOOK = {
    "modules": "import helper, sys; print(helper.__file__, helper.__cached__, vars(helper.__loader__), sorted(sys.modules))",
    "specs": "import pack; print(pack.__spec__, pack.inner.__spec__, pack.__path__, type(pack.__loader__))",
    "its folder": "import helper, os; print([(at, sorted(d), sorted(f)) for at, d, f in os.walk(os.path.dirname(__file__))])",
    "where modules come from": """
        import helper, pack, sys, zipimport
        print(sys.path, sorted(sys.path_importer_cache), sys.meta_path, sys.path_hooks, sys.pycache_prefix)
        print("sitecustomize" in sys.modules, zipimport._zip_directory_cache, sys.flags, sys.dont_write_bytecode)
        """,
    "environment": """
        import helper, os, subprocess
        def shown(lines): return [line for line in lines if not line.startswith(("SKILL_WORK_DIR", "SKILLKIT_RUN"))]
        print(shown(f"{name}={value}" for name, value in os.environ.items()))
        print(shown(open("/proc/self/environ").read().split("\\0")))
        print(shown(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout.splitlines()))
        print(open("/proc/self/cmdline").read().split("\\0"))
        """,
    "C's environment": """
        import helper, ctypes
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        print(getenv(b"PYTHONPATH"), getenv(b"SKILL_NAME"), getenv(b"PWD"))
        """,
    "descriptors": "import helper, os; print(sorted(os.listdir('/proc/self/fd')), os.open('/dev/null', os.O_RDONLY))",
    "a traceback": "import helper\nhelper.fail()\n",
    "a traceback while importing": "import helper\nimport failing\n",
    "a syntax error": "import helper\nimport broken\n",
    "a warning": "import helper\nimport warnings; warnings.simplefilter('always')\nimport warning\nprint(warning.x)\n",
    "source": "import helper, inspect; print(inspect.getsource(helper.fail), inspect.getfile(helper), helper.fail.__code__)",
    "from another folder": """
        import os, sys
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
        import helper, far
        print(far.FAR, far.__cached__)
        """,
    "modules by hand": """
        import importlib.util, pkgutil, os, runpy
        spec = importlib.util.spec_from_file_location("by_hand", os.path.join(os.path.dirname(__file__), "helper.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(module.WORD, importlib.util.find_spec("helper"), sorted(each.name for each in pkgutil.iter_modules([os.path.dirname(__file__)])))
        print(sorted(runpy.run_module("helper")), importlib.reload(importlib.import_module("helper")).WORD)
        """,
    "a child": """
        import helper, subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import sys; print(sys.path, sorted(sys.modules))"], capture_output=True, text=True).stdout)
        """,
    "processes": """
        import helper, multiprocessing as m
        if __name__ == "__main__":
            for way in ("spawn", "fork"):
                process = m.get_context(way).Process(target=helper.fail)
                process.start(); process.join(); print(process.exitcode)
        """,
}
ODD = {
    "scripts/failing.py": "import helper\nhelper.fail()\n",
    "scripts/broken.py": "def (:\n",
    "scripts/warning.py": "x = '\\d'\ny = 1 is 1\n",
}


@pytest.mark.parametrize("what", LOOK)
def test_it_sees_and_says_the_same(tmp_path: Path, what: str) -> None:
    with made_manager(tmp_path, {"scripts/run.py": dedent(LOOK[what]), **HELPERS, **ODD}, policy=POLICY) as manager:
        before, after = twice(manager)
        assert manager.flow.here.compiled._known, "nothing was given"
    assert said(after) == said(before)


def said(result: ScriptExecutionResult) -> tuple[str, str, int]:
    places = re.compile(r"0x[0-9a-f]+|/tmp/skillkit-work-[^/ ]*/[^/ ]*")
    return places.sub("@", result.stdout), places.sub("@", result.stderr), result.exit_code


def test_nothing_of_the_skill_runs_to_compile_it(tmp_path: Path) -> None:
    """The record tells of one run; the module would say that it runs."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    trace = "import os; open(os.environ['SKILL_WORKSPACE'] + '/trace', 'a').write('x')\n"
    files = {"scripts/run.py": "import helper\n", "scripts/helper.py": trace}
    with made_manager(tmp_path, files, policy=POLICY, workspace=workspace) as manager:
        manager.execute_skill_script("demo", "run")
        assert kept(manager)
        assert (workspace / "trace").read_text() == "x"
        assert kinds(tmp_path) == ["started", "finished"]
        manager.execute_skill_script("demo", "run")
        assert (workspace / "trace").read_text() == "xx"


def test_another_content_has_its_own(tmp_path: Path) -> None:
    """Also where the change leaves no sign: size and times are those of before."""
    helper = tmp_path / "skills/demo/scripts/helper.py"
    with made_manager(
        tmp_path, {"scripts/run.py": "import helper\n", "scripts/helper.py": "print('one')\n"}, policy=POLICY
    ) as manager:
        assert [each.stdout for each in twice(manager)] == ["one\n"] * 2
        seen = helper.stat()
        helper.write_text("print('two')\n")
        os.utime(helper, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert [each.stdout for each in twice(manager)] == ["two\n"] * 2
        assert len(kept(manager)) == 2


def test_scripts_that_import_nothing_of_their_skill_are_started_as_ever(tmp_path: Path) -> None:
    files = {"scripts/run.py": "import helper\n", "scripts/alone.py": "import json\n", "scripts/helper.py": "\n"}
    with made_manager(tmp_path, files, policy=POLICY) as manager:
        twice(manager)
        [made] = kept(manager)
        assert making.loaded(made.read_bytes()).users == {"scripts/run.py"}
    with made_manager(
        tmp_path / "second", {f"scripts/s{number}.py": "import json\n" for number in range(3)}, policy=POLICY
    ) as manager:
        manager.execute_skill_script("demo", "s1")
        [made] = kept(manager)
        assert not making.loaded(made.read_bytes()).users


@pytest.mark.parametrize("name", ["PYTHONOPTIMIZE", "PYTHONPYCACHEPREFIX", "PYTHONVERBOSE"])
def test_where_python_is_told_how_to_compile_nothing_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from dataclasses import replace

    monkeypatch.setenv(name, "1" if name != "PYTHONPYCACHEPREFIX" else "/var/cache")
    policy = replace(POLICY, pass_environment=(name,))
    with made_manager(tmp_path, {"scripts/run.py": "import helper\n", **HELPERS}, policy=policy) as manager:
        manager.execute_skill_script("demo", "run")
        assert not kept(manager)


HOSTILE = {
    "deep": "x = " + "(" * 100 + "1" + ")" * 100 + "\n" + "y = " + "-" * 50_000 + "1\n",
    "nested": "x = " + "[" * 5_000 + "]" * 5_000 + "\n",
    "calls": "f" + "(1)" * 60_000 + "\n",
    "attributes": "x" + ".a" * 200_000 + "\n",
    "power": "x = " + "2**" * 5_000 + "2\n",
    "constant": "x = ((((2 ** 1000) ** 1000) ** 1000) ** 1000) ** 1000\n",
    "multiplied": "x = " + "'a' * 10000 * 10000 * 10000 * 10000\n",
    "nul": "x = '\0'\n",
    "codec": "# -*- coding: no_such_codec -*-\nx = 1\n",
    "large": "x = 1\n" * 400_000,
}


@pytest.mark.slow
def test_what_no_compiler_can_take_is_left_out(tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither hangs nor ends us, and what else the skill has is compiled; the first letter is the order."""
    del tier
    monkeypatch.setattr(making, "COMPILE_SECONDS", 20.0)
    files = {f"scripts/{'am'[number % 2]}_{name}.py": text for number, (name, text) in enumerate(HOSTILE.items())}
    called = "import helper\nprint(helper.WORD)\n"
    with made_manager(tmp_path, {"scripts/run.py": called, **HELPERS, **files}, policy=POLICY) as manager:
        before, after = twice(manager)
        assert before.stdout == after.stdout == "beside\n"
        [made] = kept(manager)
        table = table_of(made)
        assert "scripts/helper.py" in table
        assert not [each for each in table if each.endswith(("_nul.py", "_codec.py", "_large.py"))]


def test_a_compiler_that_ends_early_gives_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files make it crash; each is left out, and all others come."""
    crash = "import os, signal\n" + making._text("compiler.py").replace(
        '    code, names = b"", b""\n',
        "    code, names = b\"\", b\"\"\n    if name.endswith((b'/b.py', b'/d.py')):\n        os.kill(os.getpid(), signal.SIGSEGV)\n",
    )
    texts = {"compiler.py": crash, "hook.py": making._text("hook.py")}
    monkeypatch.setattr(making, "_text", texts.__getitem__)
    files = {f"scripts/{name}.py": f"WORD = '{name}'\n" for name in "abcdef"}
    text = "import a, b, c, d, e, f\nprint(a.WORD, b.WORD, f.WORD)\n"
    with made_manager(tmp_path, {"scripts/run.py": text, **files}, policy=POLICY) as manager:
        before, after = twice(manager)
        assert before.stdout == after.stdout == "a b f\n"
        [made] = kept(manager)
        assert sorted(table_of(made)) == [f"scripts/{name}.py" for name in "acef"]


def test_they_go_with_the_copy(tmp_path: Path) -> None:
    helper = tmp_path / "skills/demo/scripts/helper.py"
    with made_manager(tmp_path, {"scripts/run.py": "import helper\n", **HELPERS}, policy=POLICY) as manager:
        for number in range(7):
            helper.write_text(f"print({number})\n")
            assert manager.execute_skill_script("demo", "run").stdout == f"{number}\n"
            kept(manager)
        copies = {each.name for each in manager.flow.here.snapshots.folder.iterdir() if not each.name.startswith(".")}
        assert {each.name.partition("-")[0] for each in kept(manager)} <= copies


def test_what_is_damaged_is_made_anew(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.py": "import helper\nprint(1)\n", **HELPERS}, policy=POLICY) as manager:
        twice(manager)
        [made] = kept(manager)
        whole = made.read_bytes()
        for damaged in (b"", b"{}\n", b"[]\n", b"\xff" * 100, b'{"users": 5, "magic": "", "hook": 0}\n'):
            made.write_bytes(damaged)
            manager.flow.here.compiled._known.clear()
            assert manager.execute_skill_script("demo", "run").stdout == "1\n"
            assert [each.read_bytes() for each in kept(manager)] == [whole]


def test_another_interpreter_in_the_same_place_has_its_own_key(tmp_path: Path) -> None:
    program = tmp_path / "python3"
    program.write_text("one")
    first = interpreter_key(str(program))
    os.utime(program, ns=(1, 1))
    assert interpreter_key(str(program)) != first


def test_what_is_not_ours_is_not_read(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path)
    files.write("d", "k", b"content")
    assert files.read("d", "k") == b"content"
    [path] = (tmp_path / ".compiled").iterdir()
    path.chmod(0o666)
    assert files.read("d", "k") is None
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"content")
    assert files.read("d", "k") is None


def test_what_nobody_used_for_long_goes(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path)
    files.write("old", "k", b"content")
    os.utime(tmp_path / ".compiled/old-k", (0, 0))
    assert files.read("old", "k") == b"content"
    assert time.time() - (tmp_path / ".compiled/old-k").stat().st_mtime < 100
    os.utime(tmp_path / ".compiled/old-k", (0, 0))
    files.write("new", "k", b"content")
    assert [each.name for each in (tmp_path / ".compiled").iterdir()] == ["new-k"]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    import threading

    wait_for(lambda: not [each for each in threading.enumerate() if each.name == "skillkit compiled"])
