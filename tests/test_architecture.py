"""The house: who may import whom, and how long things may be."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import LONG

PROJECT = Path(__file__).parents[1]
SOURCES = PROJECT / "src" / "skillkit"


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
    )


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        pytest.param(
            "core/values/skills.py", "from skillkit.core import manager", "Arrows inside the core", id="upward"
        ),
        pytest.param("core/resolve/locate.py", "import skillkit.core.find.roots", "Arrows inside", id="sideways"),
        pytest.param(
            "core/paths/__init__.py", "def f():\n    import skillkit.cli.main", "between the rooms", id="hidden"
        ),
        pytest.param("core/decide/rules.py", "import skillkit.core.ask.risk", "no rule decides", id="risk"),
        pytest.param("core/paths/__init__.py", "import subprocess", "starts processes", id="process"),
        pytest.param("core/find/roots.py", "def f():\n    import skillkit.core.find.walk", "cycles", id="cycle"),
    ],
)
def test_an_import_against_the_arrows_is_caught(tmp_path: Path, module: str, line: str, broken: str) -> None:
    shutil.copytree(SOURCES, tmp_path / "src" / "skillkit")
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    if broken == "cycles":
        with (tmp_path / "src/skillkit/core/find/walk.py").open("a") as file:
            file.write("\nfrom skillkit.core.find import roots\n")
    with (tmp_path / "src" / "skillkit" / module).open("a") as file:
        file.write(f"\n{line}\n")
    ended = lint(tmp_path)
    assert ended.returncode == 1, ended.stdout
    assert any(broken in kept and "BROKEN" in kept for kept in ended.stdout.splitlines()), ended.stdout


def test_the_contracts_hold() -> None:
    assert lint(PROJECT).returncode == 0


def functions() -> Iterator[tuple[str, int]]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_and_modules_stay_short() -> None:
    lengths = dict(functions())
    assert {name: length for name, length in lengths.items() if length > 50} == {}
    ordered = sorted(lengths.values())
    assert ordered[int(len(ordered) * 0.9)] <= 30
    modules = {str(path.relative_to(SOURCES)): path.read_text().count("\n") for path in SOURCES.rglob("*.py")}
    assert {name: length for name, length in modules.items() if length > 400} == {}


def test_no_file_names_a_place_to_download_from() -> None:
    named = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False, cwd=PROJECT).stdout.split(
        "\n"
    )
    assert [name for name in named if name.endswith((".lock", "pylock.toml"))] == []


# Whoever writes by name writes through the links that scripts may have left on the way: `core/paths/files.py` does not.
# These write where no script can: into the state folder, a new private folder, the cache, or with a test's rights.
MAY_WRITE_BY_NAME = {
    "approvers/screen.py": "the terminal, and the state folder",
    "chat/screen.py": "the state folder",
    "chat/transcript.py": "again to the file that it made, told by device and inode",
    "cli/demo.py": "a new temporary folder",
    "cli/skills/authoring.py": "a new temporary folder",
    "cli/streams.py": "the null device",
    "core/paths/files.py": "by descriptor",
    "core/paths/temporary.py": "a new temporary folder",
    "core/find/reading.py": "the user's cache",
    "cli/doctor.py": "the state folder, to see whether it can be; the terminal",
    "core/resolve/command.py": "the state folder",
    "core/run/guard/restore.py": "the state folder",
    "core/run/sandbox/choose.py": "a new temporary folder",
    "core/run/sandbox/group.py": "the kernel's control groups",
    "core/run/sandbox/keeper.py": "devices and /proc",
    "core/run/sandbox/layers.py": "the work folder, before the script starts",
    "core/run/sandbox/renamer.py": "the memory of a process that waits, in /proc",
    "core/run/scope.py": "the kernel's control groups",
    "core/run/tiers.py": "a new temporary folder",
    "core/run/work.py": "a new temporary folder",
    "core/store/compiled.py": "the state folder",
    "core/store/environments.py": "the state folder",
    "core/store/homes.py": "the state folder, beside the homes",
    "core/store/processes.py": "the state folder",
    "core/store/snapshots.py": "the state folder",
    "core/store/state.py": "the state folder",
    "fleet/packing.py": "the state folder",
    "fleet/work/spool.py": "the state folder",
    "packages/index.py": "a new private folder of the state",
    "packages/makers.py": "a new private folder of the state",
    "packages/node.py": "a new private folder of the state",
    "packages/python.py": "a new private folder of the state",
    "packages/tools.py": "a new private folder of the state",
    "packages/workshop.py": "the state folder",
    "testing.py": "the folder of a user's own test",
    "web/desktop.py": "a new temporary folder",
    "web/presence.py": "the state folder",
}
MAKING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}
OF_PATHS = {"write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to"}
OF_OS = {"mkdir", "makedirs", "rename", "renames", "replace", "link", "symlink", "truncate", "mkfifo", "mknod"}
OF_SHUTIL = {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree", "unpack_archive"}
OF_TEMPORARY = {"TemporaryDirectory", "NamedTemporaryFile", "mkstemp", "mkdtemp"}


def writes_by_name(source: str) -> list[str]:
    """The calls in a module's text that make, change or move a file by its name."""
    nodes = list(ast.walk(ast.parse(source)))
    has_making_flags = any(isinstance(node, ast.Attribute) and node.attr in MAKING_FLAGS for node in nodes)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if is_write(call, has_making_flags=has_making_flags)]


def is_write(call: ast.Call, *, has_making_flags: bool) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if (owner, name) == ("os", "open"):
        # Flags that have a name of their own may be any that the module has.
        return has_making_flags and not is_reading(call.args[1])
    if name == "open":
        given = [*call.args, *(word.value for word in call.keywords)]
        modes = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return any(set(mode) <= set("rwxabt+") and not set(mode).isdisjoint("wxa+") for mode in modes)
    if owner == "os":
        return name in OF_OS
    if owner == "shutil":
        return name in OF_SHUTIL
    return name in OF_TEMPORARY or (name in OF_PATHS and bool(owner))


def is_reading(flags: ast.expr) -> bool:
    words = {each.attr for each in ast.walk(flags) if isinstance(each, ast.Attribute)}
    names = {each.id for each in ast.walk(flags) if isinstance(each, ast.Name)} - {"os", "getattr"}
    return MAKING_FLAGS.isdisjoint(words) and not names


@pytest.mark.parametrize(
    "line",
    [
        "Path('x').write_text('')",
        "(a / b).write_bytes(c)",
        "folder.mkdir(parents=True)",
        "open(path, 'w')",
        "open(path, mode='ab')",
        "path.open('xb')",
        "os.open(path, os.O_CREAT | os.O_WRONLY)",
        "os.replace(a, b)",
        "os.open(path, FLAGS | os.O_TRUNC)",
        "os.makedirs(a)",
        "shutil.copytree(a, b)",
        "shutil.copyfileobj(a, b)",
        "tempfile.mkstemp(dir=a)",
    ],
)
def test_a_write_by_name_is_seen(line: str) -> None:
    assert writes_by_name(line) == [line]


@pytest.mark.parametrize(
    "line", ["open(path)", "open(path, 'rb')", "os.open(path, os.O_RDONLY)", "text.replace('a', 'b')", "world.open(x)"]
)
def test_a_read_is_no_write(line: str) -> None:
    assert writes_by_name(line) == []


def test_only_few_modules_write_by_name() -> None:
    writing = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if "examples" not in path.parts and writes_by_name(path.read_text())
    }
    assert writing == set(MAY_WRITE_BY_NAME)


ASKED_OF_A_PATH = re.compile(
    r"(?<!entry)(?<!info)\.(?:is_file|is_dir|is_symlink)\(\)|(?<!store)(?<!source)(?<!self)\.exists\(\)"
)


def test_paths_are_looked_at_alike_on_every_python() -> None:
    """`Path.exists` and its kind raise for a closed folder up to Python 3.13, and say no later; `os.path` says no."""
    asked = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        if "examples" not in path.parts
        for line in path.read_text().splitlines()
        if ASKED_OF_A_PATH.search(line)
    ]
    assert asked == []


def test_python_is_parsed_in_one_place() -> None:
    """Threads that parse at once upset each other, in CPython and in the filters of warnings."""
    parsing = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if "ast.parse(" in path.read_text()}
    assert parsing == {"core/models/detect/languages.py"}


def test_every_test_that_is_called_slow_exists() -> None:
    for prefix in LONG:
        path, _, name = prefix.partition("::")
        folder, start = (PROJECT / path).parent, Path(path).name
        found = [PROJECT / path] if path.endswith("/") else list(folder.glob(f"{start}*"))
        assert any(each.exists() for each in found), prefix
        assert not name or f"def {name}" in found[0].read_text(encoding="utf-8"), prefix
