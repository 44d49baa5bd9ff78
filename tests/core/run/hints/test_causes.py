"""Real scripts that fail as real skills do -> the sentence that says why, and a remedy that works when it is typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager, needs

from skillkit import STANDARD, TRUSTED, ScriptExecutionResult, ScriptPolicy
from skillkit.core.resolve.environment import forget_interpreters

WALLS = replace(STANDARD, sandbox="required")


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    forget_interpreters()


def run(
    folder: Path, files: dict[str, str], *words: str, policy: ScriptPolicy = WALLS, script: str = "", **settings: Any
) -> ScriptExecutionResult:
    timeout = settings.pop("timeout", None)
    with made_manager(folder, files, policy=policy, **settings) as manager:
        return manager.execute_skill_script("demo", script or next(iter(files)), None, timeout, argv=words)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip, made once: that takes seconds."""
    folder = tmp_path_factory.mktemp("template") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def environment_of(template: Path) -> Callable[[Path], Path]:
    """Python knows an environment by its place, so that a copy is one too."""

    def made(folder: Path) -> Path:
        shutil.copytree(template, folder, symlinks=True)
        return folder

    return made


def put_first(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join((*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin")))


def typed(command: str) -> str:
    """In a shell; the PATH that it has afterwards."""
    ended = subprocess.run(["bash", "-c", f"{command} && echo $PATH"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]


def command_in(hint: str) -> str:
    return hint.partition(": ")[2].rstrip(".")


@pytest.mark.slow
@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/run.py", "import zebra"),
        ("scripts/run.sh", "python3 -c 'import zebra'"),
        ("scripts/run.sh", "python3 -m zebra"),
        ("scripts/run.py", "try:\n    import zebra\nexcept ImportError as e:\n    print(f'Error: {e}')\n    raise SystemExit(1)"),
        ("scripts/run.py", "try:\n    import zebra\nexcept ImportError:\n    exit('zebra is required. Install it: pip install zebra')"),
    ],
)  # fmt: skip
def test_a_missing_module_can_be_prepared_and_the_python_that_ran_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment_of: Callable[[Path], Path], name: str, text: str
) -> None:
    environment = environment_of(tmp_path / "own")
    put_first(monkeypatch, environment / "bin")
    result = run(tmp_path, {name: text})
    assert not result.success
    assert f"{environment}/bin/python" in result.hint
    assert command_in(result.hint) == "skillkit prepare demo"
    assert result.needs_packages


@pytest.mark.slow
def test_an_activated_environment_in_the_workspace_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment_of: Callable[[Path], Path]
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    inside = environment_of(workspace / ".venv")
    (next(inside.glob("lib/python3*/site-packages")) / "zebra.py").touch()
    outside = environment_of(tmp_path / "own")
    put_first(monkeypatch, inside / "bin", outside / "bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(inside))
    result = run(tmp_path, {"scripts/run.sh": "python3 -c 'import zebra'"}, workspace=workspace)
    assert f"the environment {inside} is not used, because it lies where scripts may write" in result.hint
    assert command_in(result.hint) == "skillkit prepare demo"


def test_what_belongs_to_python_is_not_to_be_installed(tmp_path: Path) -> None:
    text = "raise ModuleNotFoundError(\"No module named 'tkinter'\")"
    assert "belongs to Python itself" in run(tmp_path, {"scripts/run.py": text}, policy=TRUSTED).hint


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("script", ["scripts/run.py", "scripts/deep/run.py"])
def test_an_import_that_is_meant_for_a_package_is_told_with_the_line_that_mends_it(tmp_path: Path, script: str) -> None:
    text = "from scripts.helper import word\nprint(word)"
    files = {script: text, "scripts/helper.py": "word = 'found'"}
    hint = run(tmp_path, files, script=script).hint
    assert "'scripts' is the skill's own 'scripts'" in hint
    assert "install" not in hint
    line = hint.partition("Put this before that import: ")[2]
    assert run(tmp_path, {**files, script: f"{line}\n{text}"}, script=script).stdout == "found\n"


def test_a_relative_import_is_told(tmp_path: Path) -> None:
    files = {"scripts/run.py": "from . import helper\nprint(helper.word)", "scripts/helper.py": "word = 'found'"}
    assert "without the dots" in run(tmp_path, files, script="run").hint
    assert run(tmp_path, {**files, "scripts/run.py": "import helper\nprint(helper.word)"}, script="run").success


@pytest.mark.slow
@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/run.js", "console.log(require('zebra'))"),
        ("scripts/run.mjs", "import zebra from 'zebra'; console.log(zebra)"),
    ],
)
def test_a_missing_node_package_can_be_prepared(tmp_path: Path, name: str, text: str) -> None:
    needs("node")
    assert run(tmp_path, {name: text}).hint == "The Node package 'zebra' is missing: skillkit prepare demo"


UNSET = {
    "python": ("scripts/run.py", "import os\nos.environ['ZEBRA_API_KEY']"),
    "python that says so": (
        "scripts/run.py",
        "import os\nif not os.getenv('ZEBRA_API_KEY'):\n    print('Error: ZEBRA_API_KEY is not set')\n    raise SystemExit(1)",
    ),
    "python otherwise": (
        "scripts/run.py",
        "import os, sys\nif not os.environ.get('ZEBRA_API_KEY'):\n    sys.exit('Please set the ZEBRA_API_KEY environment variable')",
    ),
    "bash": ("scripts/run.sh", "set -u\necho $ZEBRA_API_KEY"),
    "bash that insists": ("scripts/run.sh", ': "${ZEBRA_API_KEY:?please give one}"'),
    "node": (
        "scripts/run.js",
        "if (!process.env.ZEBRA_API_KEY) { console.error('Missing ZEBRA_API_KEY'); process.exit(1) }",
    ),
    "ruby": ("scripts/run.rb", "abort 'ZEBRA_API_KEY is required' unless ENV['ZEBRA_API_KEY']"),
}


@pytest.mark.parametrize("how", UNSET)
def test_a_variable_that_is_withheld_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    name, text = UNSET[how]
    monkeypatch.setenv("ZEBRA_API_KEY", "secret-value")
    result = run(tmp_path, {name: text})
    assert not result.success
    by_grant = "ZEBRA_API_KEY is set here, but was not passed to it: skillkit grant demo --secret ZEBRA_API_KEY"
    assert result.hint == by_grant
    without_grants = run(tmp_path, {name: text}, policy=replace(WALLS, grantable=()))
    by_policy = "ZEBRA_API_KEY is set here, but scripts do not get it; name it in the policy key pass_environment."
    assert without_grants.hint == by_policy
    assert run(tmp_path, {name: text}, policy=replace(WALLS, pass_environment=("ZEBRA_API_KEY",))).success


@pytest.mark.parametrize("how", UNSET)
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, how: str) -> None:
    name, text = UNSET[how]
    by_grant = (
        "ZEBRA_API_KEY is not set; set it here or keep it (skillkit secret set demo ZEBRA_API_KEY), "
        "then: skillkit grant demo --secret ZEBRA_API_KEY"
    )
    assert run(tmp_path, {name: text}).hint == by_grant
    by_policy = "ZEBRA_API_KEY is not set; set it here, and name it in the policy key pass_environment."
    assert run(tmp_path, {name: text}, policy=replace(WALLS, grantable=())).hint == by_policy


def test_a_variable_that_holds_no_key_is_set_and_then_given(tmp_path: Path) -> None:
    files = {"scripts/run.py": "import os\nos.environ['ZEBRA_REGION']"}
    told = "ZEBRA_REGION is not set; set it here, then: skillkit grant demo --variable ZEBRA_REGION"
    assert run(tmp_path, files).hint == told


@pytest.mark.parametrize(
    "text",
    [
        "d = {}\nd['ZEBRA_API_KEY']",
        "import sys\nsys.exit('ZEBRA_API_KEY is not set')",
        "import os, sys\nos.environ.get('OTHER_KEY')\nsys.exit('THE_ANSWER is missing')",
    ],
)
def test_a_name_that_is_no_variable_of_the_scripts_is_not(tmp_path: Path, text: str) -> None:
    assert run(tmp_path, {"scripts/run.py": text}).hint == ""


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/todo.sh", "echo x > TODO.md"),
        ("scripts/todo.sh", "echo x >> notes/TODO.md"),
        ("scripts/todo.py", "open('out.json', 'w')"),
        ("scripts/todo.js", "require('fs').writeFileSync('out.json', 'x')"),
        ("scripts/todo.rb", "File.write('out.json', 'x')"),
    ],
)
def test_a_file_that_cannot_be_made_in_the_skill_is_told_with_the_place_that_can(
    tmp_path: Path, name: str, text: str
) -> None:
    workspace = tmp_path / "project"
    (workspace / "notes").mkdir(parents=True)
    files = {name: text, "notes/x.md": ""}
    hint = run(tmp_path, files, workspace=workspace).hint
    assert "belongs to the skill, which is read-only inside the walls" in hint, hint
    assert "todo" not in hint.rpartition("/")[2]
    assert "type skillkit grant demo --working-directory workspace" in hint
    assert run(tmp_path, files, workspace=workspace, policy=replace(WALLS, working_directory="workspace")).success


@pytest.mark.usefixtures("tier")
def test_git_outside_a_repository_is_told_by_where_it_was_called(tmp_path: Path) -> None:
    needs("git")
    workspace = tmp_path / "project"
    inner = workspace / "inner"
    inner.mkdir(parents=True)
    files = {"scripts/run.sh": "git rev-parse --show-toplevel"}
    there = replace(WALLS, working_directory="workspace")
    assert "is in no git repository" in run(tmp_path, files, workspace=workspace, policy=there).hint
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    hint = run(tmp_path, files, workspace=workspace).hint
    assert f"{workspace} is in one. To start it there, type skillkit grant demo --working-directory workspace." in hint
    assert run(tmp_path, files, workspace=workspace, policy=there).success
    assert f"start skillkit in {workspace}." in run(tmp_path, files, workspace=inner, policy=there).hint
    assert "has no workspace" in run(tmp_path, files).hint


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['no-such-ffprobe', 'x'])",
        "import subprocess\ntry:\n    subprocess.run(['no-such-ffprobe', 'x'])\nexcept OSError as e:\n    print(f'Error: {e}')\n    exit(1)",
    ],
)
def test_a_program_that_is_missing_is_named(tmp_path: Path, text: str) -> None:
    hint = run(tmp_path, {"scripts/run.py": text}).hint
    assert hint == "The program 'no-such-ffprobe' is missing; install it or put it on PATH."


@contextmanager
def served() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


CALLING = """
import sys, urllib.request
urllib.request.urlopen(f"http://localhost:{sys.argv[1]}/", timeout=2)
"""
WAITING = """
import socket, sys, time
print("waiting for localhost:" + sys.argv[1], flush=True)
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.1)
"""


def test_a_service_of_the_machine_is_told_from_a_blocked_network(tmp_path: Path, tier: str) -> None:
    with served() as port:
        result = run(tmp_path, {"scripts/run.py": CALLING}, str(port))
        waited = run(tmp_path, {"scripts/wait.py": WAITING}, str(port), timeout=1)
        opened = run(tmp_path, {"scripts/wait.py": WAITING}, str(port), policy=replace(WALLS, allow_network=True))
    assert waited.timed_out
    assert f"Port {port} is served on this machine" in waited.hint
    assert "--network" in waited.hint
    assert opened.success
    if tier == "landlock":
        assert (
            result.hint
            == "The network is blocked inside the walls; allow it with --network (policy key allow_network)."
        )


def test_a_service_that_is_nowhere_is_not_blamed_on_the_walls(tmp_path: Path, tier: str) -> None:
    with served() as port:
        pass
    result = run(tmp_path, {"scripts/wait.py": WAITING}, str(port), timeout=1)
    assert result.timed_out
    if tier == "bubblewrap":
        assert result.hint == "It was stopped after 1 second, its limit; --timeout SECONDS allows up to 600."
        assert "network" not in run(tmp_path, {"scripts/run.py": CALLING}, str(port)).hint
    else:
        assert result.hint.startswith("Loopback is closed in the landlock walls")


def test_a_run_that_needs_longer_is_told_the_option(tmp_path: Path) -> None:
    files = {"scripts/run.sh": "sleep 2; echo done"}
    hint = run(tmp_path, files, policy=TRUSTED, timeout=1).hint
    assert hint == "It was stopped after 1 second, its limit; --timeout SECONDS allows up to 600."
    assert run(tmp_path, files, policy=TRUSTED, timeout=20).stdout == "done\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/run.py", "import socket\nsocket.socket(socket.AF_UNIX).bind('/tmp/x.sock')"),
        ("scripts/run.js", "require('net').createServer().listen('/tmp/x.sock')"),
    ],
)
def test_a_socket_that_is_not_to_be_had_is_no_matter_of_folders(
    tmp_path: Path, tier: str, name: str, text: str
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    policy = replace(WALLS, allow_network=True)
    hint = run(tmp_path, {name: text}, workspace=workspace, policy=policy).hint
    assert hint.startswith("Unix sockets are blocked inside the walls"), tier
    assert "--write" not in hint


@pytest.mark.usefixtures("tier")
def test_what_is_advised_to_be_opened_can_be(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere/data"
    place.mkdir(parents=True)
    (place / "in.txt").write_text("x")
    for text, option in ((f"cat {place}/in.txt", "--read"), (f"echo x > {place}/out.txt", "--write")):
        hint = run(tmp_path, {"scripts/run.sh": text}).hint
        found = re.search(rf"{option} (\S+) ", hint)
        assert found, hint
        opened = (Path(shlex.split(found[1])[0]),)
        reading = option == "--read"
        policy = replace(WALLS, readable_paths=opened) if reading else replace(WALLS, writable_paths=opened)
        assert run(tmp_path, {"scripts/run.sh": text}, policy=policy).success
