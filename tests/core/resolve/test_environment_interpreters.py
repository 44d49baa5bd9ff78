from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.running import made_manager, needs, runnable

from skillkit import InterpreterNotAllowedError, InterpreterNotFoundError, ScriptPolicy
from skillkit.core.resolve.environment import Interpreter, forget_interpreters, interpreter_for, strips_types
from skillkit.core.run.unwalled import read_output

BASICS = ("python3", "bash", "node", "ruby", "perl")


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget_interpreters()
    yield
    forget_interpreters()


def real(program: str) -> str:
    """The binary behind whatever is on PATH here."""
    question = {"python3": "import sys; print(sys.executable)", "bash": "echo $BASH"}[program]
    return subprocess.run([program, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def plant(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    return program


def never(argv: Sequence[str], path: str) -> str:
    raise AssertionError(f"{argv} was run with {path}")


def chosen(language: str, *folders: Path | str, allowed: Sequence[str] = BASICS) -> Interpreter:
    return interpreter_for(language, os.pathsep.join(map(str, folders)), allowed, read_output)


def test_the_first_program_on_path_is_taken_as_found(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bash").symlink_to("/bin/true")
    assert interpreter_for("shell", f"{tmp_path}/a:{tmp_path}/b", BASICS, never) == Interpreter(
        "bash", f"{tmp_path}/a/bash"
    )


def test_folders_and_files_that_are_not_executable_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a" / "bash").mkdir(parents=True)
    plant(tmp_path / "b", "bash", "").chmod(0o644)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "bash").symlink_to("/bin/true")
    path = f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c:{tmp_path}/none"
    assert interpreter_for("shell", path, BASICS, never).path == f"{tmp_path}/c/bash"


def test_sh_counts_as_bash_where_bash_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    assert interpreter_for("shell", str(tmp_path), BASICS, never) == Interpreter("bash", f"{tmp_path}/sh")


def test_a_virtual_environments_python_is_kept_as_found(tmp_path: Path) -> None:
    python = real("python3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(python)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(python)}\n")
    assert interpreter_for("python", str(tmp_path / "bin"), BASICS, never).path == f"{tmp_path}/bin/python3"


def shim(folder: Path, calls: Path) -> Path:
    """What a version manager puts on PATH: it notes each call and starts the real program."""
    return plant(folder, "python3", f'#!/bin/bash\necho "$PWD $PATH" >> "{calls}"\nexec "{real("python3")}" "$@"\n')


def test_a_shim_is_asked_once_in_the_root_folder_and_never_runs_a_script(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    shim(tmp_path / "shims", calls)
    path = f"{tmp_path}/shims:/usr/bin:/bin"
    os.environ["PATH"], before = path, os.environ["PATH"]
    try:
        with runnable(tmp_path, "import sys; print(sys.executable)\n", name="scripts/run.py") as manager:
            said = {manager.execute_skill_script("demo", "run").stdout for _ in range(3)}
    finally:
        os.environ["PATH"] = before
    assert said == {real("python3") + "\n"}
    assert calls.read_text() == f"/ {path}\n"


def test_many_threads_at_once_get_the_same_program(tmp_path: Path) -> None:
    shim(tmp_path / "shims", tmp_path / "calls")
    programs: list[str] = []
    threads = [
        threading.Thread(target=lambda: programs.append(chosen("python", tmp_path / "shims").path)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert programs == [real("python3")] * 8


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("#!/bin/bash\nexit 1\n", id="fails"),
        pytest.param("#!/bin/bash\necho relative/python3\n", id="answers with a relative path"),
        pytest.param("#!/bin/bash\necho /nonexistent/python3\n", id="answers with nothing there"),
        pytest.param("#!/bin/bash\necho $0\n", id="answers with itself"),
        pytest.param("#!/nonexistent/program\n", id="cannot start"),
    ],
)
def test_a_shim_that_leads_nowhere_is_passed_over(tmp_path: Path, text: str) -> None:
    plant(tmp_path / "shims", "python3", text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("/bin/true")
    assert chosen("python", tmp_path / "shims", tmp_path / "bin").path == f"{tmp_path}/bin/python3"
    forget_interpreters()
    with pytest.raises(InterpreterNotFoundError, match="'python3' is not on PATH"):
        chosen("python", tmp_path / "shims")


def test_a_link_to_a_version_manager_is_a_shim(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "mise")
    (tmp_path / "python3").symlink_to(tmp_path / "mise")
    with pytest.raises(InterpreterNotFoundError, match="python3"):
        chosen("python", tmp_path)


def test_a_program_that_disappears_is_looked_for_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bash").symlink_to("/bin/true")
    folders = (tmp_path / "a", tmp_path / "b")
    assert chosen("shell", *folders).path == f"{tmp_path}/a/bash"
    (tmp_path / "a" / "bash").unlink()
    assert chosen("shell", *folders).path == f"{tmp_path}/b/bash"


def test_a_missing_program_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        InterpreterNotFoundError, match=r"'ruby' is not on PATH; a ruby script needs it\. Install"
    ) as caught:
        chosen("ruby", tmp_path)
    assert caught.value.interpreter == "ruby"


def test_a_program_that_is_not_listed_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "perl").symlink_to("/bin/true")
    with pytest.raises(InterpreterNotAllowedError, match=r"'perl' may not run .*Allowed: python3, bash\.") as caught:
        chosen("perl", tmp_path, allowed=("python3", "bash"))
    assert (caught.value.interpreter, caught.value.allowed) == ("perl", ("python3", "bash"))
    with pytest.raises(InterpreterNotAllowedError, match="Allowed: none"):
        chosen("perl", tmp_path, allowed=())


@pytest.mark.parametrize("name", ["tsx", "bun", "deno", "ts-node"])
def test_a_runner_of_typescript_runs_only_if_listed(tmp_path: Path, name: str) -> None:
    plant(tmp_path, name, "#!/usr/bin/env node\n") if "ts" in name else (tmp_path / name).symlink_to("/bin/true")
    with pytest.raises(InterpreterNotAllowedError, match=f"'{name}' may not run"):
        chosen("typescript", tmp_path)
    found = chosen("typescript", tmp_path, allowed=(*BASICS, name))
    assert (found.name, found.path) == (name, f"{tmp_path}/{name}")
    assert found.arguments == (("run",) if name == "deno" else ())


def test_node_runs_typescript_only_where_it_can(tmp_path: Path) -> None:
    plant(tmp_path / "old", "node", "")
    shutil.copy("/bin/true", tmp_path / "old" / "node")
    path = str(tmp_path / "old")
    assert interpreter_for("typescript", path, BASICS, lambda *_: "strip\n").name == "node"
    with pytest.raises(InterpreterNotFoundError, match=r"runs no TypeScript by itself; 22\.18 or 23\.6"):
        interpreter_for("typescript", path, BASICS, lambda *_: "undefined\n")


@pytest.mark.parametrize(
    ("answer", "can"),
    [("strip\n", True), ("transform\n", True), ("false\n", False), ("undefined\n", False), ("", False)],
)
def test_node_says_itself_whether_it_strips_types(answer: str, can: bool) -> None:
    """Its version does not tell: some are built without."""
    assert strips_types("node", "/bin", lambda *_: answer) is can


@pytest.mark.parametrize("place", ["skill", "workspace"])
def test_an_interpreter_planted_in_skill_or_workspace_is_never_used(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    planted = {"skill": tmp_path / "skills/demo/bin", "workspace": workspace / "bin"}[place]
    plant(planted, "bash", f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    plant(tmp_path / "linked", "other", "")
    (tmp_path / "linked" / "bash").symlink_to(planted / "bash")
    workspace.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", f"{planted}:{tmp_path}/linked:{os.environ['PATH']}")
    with runnable(tmp_path, "echo real; echo $PATH\n") as manager:
        result = manager.execute_skill_script("demo", "run", workspace=workspace)
    said, path = result.stdout.splitlines()
    assert said == "real"
    assert str(planted) not in path.split(":")
    assert not (tmp_path / "pwned").exists()


def test_a_shim_does_not_find_programs_in_the_workspace_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shims start with `#!/usr/bin/env bash`, and look that up on PATH."""
    workspace = tmp_path / "workspace"
    plant(workspace, "bash", f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    plant(tmp_path / "shims", "python3", f'#!/usr/bin/env bash\nexec "{real("python3")}" "$@"\n')
    monkeypatch.setenv("PATH", f"{workspace}:{tmp_path}/shims:/usr/bin:/bin")
    subprocess.run([f"{tmp_path}/shims/python3", "-c", ""], check=False)
    assert (tmp_path / "pwned").exists(), "without the guard the planted program runs"
    (tmp_path / "pwned").unlink()
    with runnable(tmp_path, "print('real')\n", name="scripts/run.py") as manager:
        assert manager.execute_skill_script("demo", "run", workspace=workspace).stdout == "real\n"
    assert not (tmp_path / "pwned").exists()


def test_a_version_manager_that_leads_into_the_workspace_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    shutil.copy("/bin/true", workspace / "python3")
    plant(tmp_path / "shims", "python3", f"#!/bin/sh\necho {workspace}/python3\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:{os.path.dirname(real('python3'))}:/usr/bin:/bin")
    with runnable(tmp_path, "print('real')\n", name="scripts/run.py") as manager:
        manager.execute_skill_script("demo", "run")  # the answer is known from here on
        assert manager.execute_skill_script("demo", "run", workspace=workspace).stdout == "real\n"


def test_a_typescript_script_without_a_runner_is_an_error(tmp_path: Path) -> None:
    needs("node")
    plain = subprocess.run(["node", "-e", "const a: number = 1"], capture_output=True, check=False)
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off")
    with made_manager(tmp_path, {"scripts/run.ts": "const a: number = 1; console.log(a)\n"}, policy=policy) as manager:
        if plain.returncode == 0:
            assert manager.execute_skill_script("demo", "run").stdout == "1\n"
        else:
            with pytest.raises((InterpreterNotFoundError, InterpreterNotAllowedError), match="tsx"):
                manager.execute_skill_script("demo", "run")
