"""What people met when they ran skills that nobody here wrote, each typed as they type it; every remedy is typed too."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.skill_folders import skill_folder

import skillkit

pytestmark = pytest.mark.slow

GROCERIES = """#!/usr/bin/env python3
import json, sys
from pathlib import Path
LIST = Path.home() / ".config" / "groceries" / "list.json"
items = json.loads(LIST.read_text()) if LIST.exists() else []
if sys.argv[1:2] == ["add"]:
    LIST.parent.mkdir(parents=True, exist_ok=True)
    LIST.write_text(json.dumps([*items, sys.argv[2]]))
    print("Added", sys.argv[2])
else:
    print("List:", ", ".join(items))
"""
SERVER = """#!/usr/bin/env python3
import subprocess, sys, time, urllib.request
server = subprocess.Popen([sys.executable, "-m", "http.server", "8765", "--bind", "127.0.0.1"])
for _ in range(100):
    try:
        print(urllib.request.urlopen("http://localhost:8765/").status)
        break
    except OSError:
        time.sleep(0.1)
server.kill()
"""


class Shell:
    """A folder in which somebody types."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.workspace = folder / "project"
        self.workspace.mkdir()
        source = os.environ.get("SKILLKIT_TESTED_SOURCE", str(Path(skillkit.__file__).parents[1]))
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLKIT_", "VIRTUAL_ENV"))}
        places = {"SKILLKIT_STATE_DIR": str(folder / "state"), "HOME": str(folder / "home"), "PYTHONPATH": source}
        self.environment = {**own, **places, **environment}
        (folder / "home").mkdir()

    def skill(self, files: dict[str, str], name: str = "demo", **text: str) -> Path:
        return skill_folder(self.workspace / "skills", name, files=files, **text)

    def type(self, line: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """`skillkit ...` with this program's own Python."""
        words = [sys.executable, "-m", "skillkit", *shlex.split(line)[1:]]
        return subprocess.run(
            words, input=text, capture_output=True, text=True, check=False, cwd=self.workspace, env=self.environment
        )

    def run(self, line: str = "demo run", *more: str) -> subprocess.CompletedProcess[str]:
        return self.type(f"skillkit run {line} {' '.join(more)} --yes".strip())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def hint_of(run: subprocess.CompletedProcess[str]) -> str:
    """One line, however it was folded."""
    assert run.returncode != 0, run.stdout
    return " ".join(run.stderr.split())


def remedy_in(run: subprocess.CompletedProcess[str], start: str) -> str:
    """The command that a hint gives, up to its end."""
    found = re.search(rf"({re.escape(start)}[^;]*?)(?:$| Only|\.$| \()", hint_of(run))
    assert found, run.stderr
    return found[1].rstrip(".")


def test_a_grocery_list_keeps_its_item(shell: Shell) -> None:
    shell.skill({"scripts/run.py": GROCERIES})
    assert "Added Milk" in shell.run("demo run add Milk").stdout
    assert shell.run("demo run show").stdout == "List: Milk\n"


def test_a_local_server_of_the_scripts_own_starts_and_answers(shell: Shell) -> None:
    shell.skill({"scripts/run.py": SERVER})
    assert shell.run().stdout == "200\n"


def test_what_is_written_by_a_plain_name_lands_where_the_person_is(shell: Shell) -> None:
    shell.skill({"scripts/run.py": 'open("out.json", "w").write("{}")\nprint("written")\n'})
    assert shell.run().stdout == "written\n"
    assert (shell.workspace / "out.json").read_text() == "{}"


def test_git_finds_the_repository_that_the_person_is_in(shell: Shell) -> None:
    subprocess.run(["git", "init", "-q", str(shell.workspace)], check=True)
    shell.skill({"scripts/run.sh": "git rev-parse --show-toplevel\n"})
    assert shell.run().stdout.strip() == str(shell.workspace)


def test_git_outside_a_repository_is_told_with_what_mends_it(shell: Shell) -> None:
    shell.skill({"scripts/run.sh": "git rev-parse --show-toplevel\n"})
    assert "is in no git repository; start skillkit in one, or run 'git init'" in hint_of(shell.run())
    subprocess.run(["git", "init", "-q", str(shell.workspace)], check=True)
    assert shell.run().returncode == 0


def test_a_file_of_a_shell_script_is_written_and_the_script_is_not_blamed(shell: Shell) -> None:
    shell.skill({"scripts/todo.sh": "echo item >> TODO.md && cat TODO.md\n"})
    assert shell.run("demo todo").stdout == "item\n"
    (shell.workspace / "skillkit.toml").write_text('[policy]\nworking_directory = "skill"\n')
    hint = hint_of(shell.run("demo todo"))
    remedy = "skillkit grant demo --working-directory workspace"
    assert remedy in hint
    assert "todo.sh belongs" not in hint
    assert shell.type(f"{remedy} --yes").returncode == 0
    assert shell.run("demo todo").stdout == "item\nitem\n"


def test_the_python_of_a_shell_script_is_the_callers(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    package = next((venv / "lib").glob("python3*")) / "site-packages" / "zebra_of_mine.py"
    package.write_text("print('my zebra')\n")
    shell = Shell(tmp_path, PATH=f"{venv}/bin:{os.environ['PATH']}")
    shell.skill({"scripts/run.sh": "python3 -c 'import zebra_of_mine'\n"})
    assert shell.run().stdout == "my zebra\n"


def test_a_module_that_a_shell_scripts_python_lacks_is_told_for_python(shell: Shell) -> None:
    shell.skill({"scripts/run.sh": "python3 -c 'import zebra_of_nobody'\n"})
    hint = hint_of(shell.run())
    assert "python" in hint.split("'zebra_of_nobody'")[-1]
    assert "bash" not in hint.split("'zebra_of_nobody'")[-1]
    assert "skillkit prepare demo" in hint


def test_an_activated_environment_in_the_workspace_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    venv = tmp_path / "project" / ".venv"
    shell = Shell(tmp_path, PATH=f"{venv}/bin:{os.environ['PATH']}", VIRTUAL_ENV=str(venv))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    shell.skill({"scripts/run.py": "import zebra_of_nobody\n"})
    assert f"the environment {venv} is not used, because it lies where scripts may write" in hint_of(shell.run())


UNIX = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('/tmp/x.sock')\nprint('bound')\n"


def test_a_unix_socket_of_its_own_works_with_and_without_the_network(shell: Shell) -> None:
    """Where no folder of the person's is open: in the home folder nobody has a workspace."""
    skill_folder(shell.folder / "elsewhere", "demo", files={"scripts/run.py": UNIX})
    shell.workspace = shell.folder / "home"
    for option in ("", "--network"):
        run = shell.run("demo run", option, f"--skills {shell.folder / 'elsewhere'}")
        assert run.stdout == "bound\n", f"{option}: {run.stderr}"


def test_an_import_meant_for_a_package_is_mended_by_the_line_that_is_told(shell: Shell) -> None:
    files = {"scripts/run.py": "from scripts.words import WORD\nprint(WORD)\n", "scripts/words.py": "WORD = 'found'\n"}
    folder = shell.skill(files)
    hint = hint_of(shell.run())
    assert "install" not in hint
    line = re.search(r"Put this before that import: (.*parents\[\d\]\)\))", hint)
    assert line, hint
    (folder / "scripts/run.py").write_text(f"{line[1]}\n{files['scripts/run.py']}")
    assert shell.run().stdout == "found\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@pytest.mark.parametrize("script", ['import "zebra-of-nobody";\n', 'require("zebra-of-nobody");\n'])
def test_a_missing_package_of_node_is_told_as_something_to_prepare(shell: Shell, script: str) -> None:
    shell.skill({f"scripts/run.{'mjs' if 'import' in script else 'js'}": script})
    hint = hint_of(shell.run())
    assert "The Node package 'zebra-of-nobody' is missing: skillkit prepare demo" in hint
    assert "beside the skill" not in hint


def test_a_module_is_known_by_the_name_of_its_package(shell: Shell) -> None:
    shell.skill({"scripts/run.py": "import fitz_of_nobody, fitz, sklearn, cv2, docx\n"})
    named = {need["name"] for need in json.loads(shell.type("skillkit needs demo run --json").stdout)["needs"]}
    assert {"pymupdf", "scikit-learn", "opencv-python", "python-docx"} <= named


@pytest.mark.parametrize("place", ["/private/tmp/x", "/etc/x", "/root/.ssh/x"])
def test_nothing_is_advised_that_is_refused_when_it_is_typed(shell: Shell, place: str) -> None:
    shell.skill({"scripts/run.py": f"open({place!r}, 'w')\n"})
    assert "--write" not in hint_of(shell.run())


def test_what_is_advised_for_a_folder_works_when_it_is_typed(shell: Shell) -> None:
    data = shell.folder / "data"
    data.mkdir()
    (data / "in.txt").write_text("hello")
    shell.skill({"scripts/run.py": f"print(open({str(data / 'in.txt')!r}).read())\n"})
    option = re.search(r"allow it with (--read \S+)", hint_of(shell.run()))
    assert option
    assert shell.run("demo run", option[1]).stdout == "hello\n"
    shell.skill({"scripts/run.py": f"open({str(data / 'out.txt')!r}, 'w').write('x')\nprint('done')\n"})
    option = re.search(r"allow it with (--write \S+)", hint_of(shell.run()))
    assert option
    assert shell.run("demo run", option[1]).stdout == "done\n"
    assert (data / "out.txt").read_text() == "x"


def test_an_error_that_a_script_prints_to_stdout_is_read_there(shell: Shell) -> None:
    script = "import sys\ntry:\n    import zebra_of_nobody\nexcept ImportError as error:\n    print(error)\n    sys.exit(1)\n"
    shell.skill({"scripts/run.py": script})
    assert "skillkit prepare demo" in hint_of(shell.run())


def test_a_variable_that_is_set_and_withheld_is_given_by_the_command_that_is_told(tmp_path: Path) -> None:
    shell = Shell(tmp_path, FORGE_REGION="north", FORGE_API_KEY="k-12345678")
    shell.skill({"scripts/run.py": "import os\nprint(os.environ['FORGE_REGION'], len(os.environ['FORGE_API_KEY']))\n"})
    for name, kind in (("FORGE_REGION", "variable"), ("FORGE_API_KEY", "secret")):
        remedy = f"skillkit grant demo --{kind} {name}"
        assert remedy in hint_of(shell.run())
        assert shell.type(f"{remedy} --yes").returncode == 0
    assert shell.run().stdout == "north 10\n"


def test_a_variable_that_is_not_set_is_named(shell: Shell) -> None:
    shell.skill({"scripts/run.py": "import os\nprint(os.environ['FORGE_REGION'])\n"})
    assert "FORGE_REGION is not set" in hint_of(shell.run())


@pytest.fixture
def served() -> Iterator[int]:
    """A port of this machine that answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        threading.Thread(target=answer, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_a_script_that_waits_for_a_port_is_told_that_the_walls_are_in_between(shell: Shell, served: int) -> None:
    waiting = f"""import socket, time
while True:
    try:
        print(socket.create_connection(("127.0.0.1", {served})).recv(9).decode())
        break
    except OSError:
        time.sleep(0.05)
"""
    shell.skill({"scripts/run.py": waiting})
    hint = hint_of(shell.run("demo run", "--timeout 2"))
    assert f"Port {served} is served on this machine" in hint
    assert "--network" in hint
    assert shell.run("demo run", "--network").stdout == "hello\n"


def test_an_interpreter_that_is_missing_is_named_as_it_is(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "node").write_text("#!/bin/sh\necho v16.0.0\n")
    (tools / "node").chmod(0o755)
    shell = Shell(tmp_path, PATH=f"{tools}:/usr/sbin")
    shell.skill({"scripts/a.ts": "console.log(1)\n", "scripts/b.ps1": "Write-Output 1\n"})
    types, power = (" ".join(shell.run(f"demo {name}").stderr.split()) for name in ("a", "b"))
    assert "runs no TypeScript by itself; 22.18" in types
    assert "'node' is not on PATH" not in types
    assert "pwsh or pwsh" not in power
    assert "'pwsh'" in power


def test_every_name_that_the_list_prints_opens_what_it_names(shell: Shell) -> None:
    for root in ("skills", ".claude/skills", ".agents/skills"):
        skill_folder(shell.workspace / root, "demo", files={"scripts/run.sh": f"echo {root}\n"})
    listed = json.loads(shell.type("skillkit list --all --json").stdout)["skills"]
    told = {entry.get("opens_as") or entry["name"]: entry for entry in listed}
    assert len(told) == 3, told
    for name, entry in told.items():
        shown = json.loads(shell.type(f"skillkit show {shlex.quote(name)} --json").stdout)
        assert shown["path"] == entry["path"]


def test_a_skill_below_the_depth_of_the_search_is_told(shell: Shell) -> None:
    skill_folder(shell.workspace / "skills" / "a/b/c/d/e/f/g", "deep")
    shell.skill({})
    run = shell.type("skillkit list --problems")
    assert "deep" not in run.stdout.split()
    assert re.search(r"levels|depth|too deep", run.stdout + run.stderr), run.stdout + run.stderr


def test_text_goes_in_by_stdin_and_from_a_file(shell: Shell) -> None:
    shell.skill({"scripts/run.sh": "tr a-z A-Z\n"})
    (shell.workspace / "words.txt").write_text("from a file\n")
    assert shell.type("skillkit run demo run --stdin - --yes", "no json { at all\n").stdout == "NO JSON { AT ALL\n"
    assert shell.type("skillkit run demo run --stdin words.txt --yes").stdout == "FROM A FILE\n"


def test_a_script_that_the_instructions_write_as_a_command_is_listed(shell: Shell) -> None:
    shell.skill({"tools/go.py": "print('went')\n"}, body="Run:\n\n```bash\npython tools/go.py\n```\n")
    assert "tools/go.py" in shell.type("skillkit show demo").stdout
    assert shell.run("demo go").stdout == "went\n"


@pytest.mark.parametrize("tools", ["exec", "shell", "terminal", "Node", "Python", "[exec, read]"])
def test_a_synonym_of_bash_in_allowed_tools_counts_as_it(shell: Shell, tools: str) -> None:
    frontmatter = f"name: demo\ndescription: D.\nallowed-tools: {tools}"
    shell.skill({"scripts/run.sh": "echo ran\n"}, frontmatter=frontmatter)
    assert shell.run().stdout == "ran\n"


def test_a_list_without_any_of_them_forbids(shell: Shell) -> None:
    """The control of the last."""
    shell.skill({"scripts/run.sh": "echo ran\n"}, frontmatter="name: demo\ndescription: D.\nallowed-tools: Read")
    assert shell.run().returncode == 126


def test_numbers_are_printed_one_way(shell: Shell) -> None:
    for number in range(1_001):
        folder = shell.workspace / "skills" / f"s{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: x\n---\n")
    run = shell.type("skillkit validate skills")
    last = (run.stdout + run.stderr).strip().splitlines()[-1]
    assert "1,001" in last, last
    assert not re.search(r"\b\d{4,}\b", last), last
