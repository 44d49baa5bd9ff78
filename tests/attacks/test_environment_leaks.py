"""Secrets of the caller that a script might see, and values through which a caller's settings take it over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import runnable

from skillkit import ScriptPolicy, SkillKitError

SECRETS = {
    "OPENAI_API_KEY": "sk-secret-1",
    "ANTHROPIC_API_KEY": "sk-secret-2",
    "AWS_SECRET_ACCESS_KEY": "sk-secret-3",
    "GITHUB_TOKEN": "sk-secret-4",
    "DATABASE_URL": "postgres://user:sk-secret-5@host/db",
}
SHOW = "import json, os\nprint(json.dumps(dict(os.environ)))\n"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def test_control_plain_subprocess_hands_over_everything() -> None:
    said = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout
    assert SECRETS.items() <= json.loads(said).items()


def test_no_secret_of_the_caller_reaches_a_script(tmp_path: Path) -> None:
    with runnable(tmp_path, SHOW, name="scripts/env.py") as manager:
        said = manager.execute_skill_script("demo", "env").stdout
    assert "sk-secret" not in said
    assert set(json.loads(said)) <= {
        "CLAUDE_SKILL_DIR",
        "GIT_CONFIG_NOSYSTEM",
        "HOME",
        "LANG",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
        "SHELL",  # always the same
        "SKILLKIT_RUN",
        "SKILLKIT_VERSION",
        "SKILL_BASE_DIR",
        "SKILL_DIR",
        "SKILL_NAME",
        "SKILL_VERSION",
        "SKILL_WORK_DIR",
        "TMPDIR",
        "TZ",
        *(name for name in os.environ if name.startswith("LC_")),
        "LC_CTYPE",  # Python's own, in a plain C locale
    }


def test_only_the_names_that_policy_lists_are_passed(tmp_path: Path) -> None:
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", pass_environment=("GITHUB_TOKEN",))
    with runnable(tmp_path, SHOW, name="scripts/env.py", policy=policy) as manager:
        said = manager.execute_skill_script("demo", "env").stdout
    assert [value for value in SECRETS.values() if value in said] == ["sk-secret-4"]


TAKEOVERS = {
    "BASH_ENV": ("scripts/run.sh", "echo fine\n"),
    "PYTHONSTARTUP": ("scripts/run.py", "print('fine')\n"),
    "PERL5OPT": ("scripts/run.pl", "print qq(fine\\n);\n"),
    "RUBYOPT": ("scripts/run.rb", "puts 'fine'\n"),
    "NODE_OPTIONS": ("scripts/run.js", "console.log('fine')\n"),
}


def test_control_a_setting_of_the_caller_takes_over_a_plain_bash(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("echo evil\n")
    ended = subprocess.run(
        ["bash", "-c", ":"], env={"BASH_ENV": f"{tmp_path}/evil"}, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "evil\n"


@pytest.mark.parametrize("name", TAKEOVERS)
def test_settings_that_take_over_an_interpreter_are_not_passed_even_when_listed(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil").write_text("echo evil\n")
    monkeypatch.setenv(
        name,
        {"PERL5OPT": "-Mnonexistent", "RUBYOPT": "-rnonexistent", "NODE_OPTIONS": "--bad"}.get(
            name, f"{tmp_path}/evil"
        ),
    )
    script, text = TAKEOVERS[name]
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", pass_environment=(name,))
    with runnable(tmp_path, text, name=script, policy=policy) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_a_script_cannot_put_its_programs_in_the_way_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the caller's PATH is a link in the workspace, which leads to good programs at first."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "bin").symlink_to("/usr/bin")
    monkeypatch.setenv("PATH", f"{workspace}/bin:/usr/bin:/bin")
    swap = """
        if [ -n "$1" ]; then uname; exit; fi
        cd "$SKILL_WORKSPACE" && rm bin && mkdir bin && printf '#!/bin/sh\\necho evil\\n' > bin/uname && chmod +x bin/uname
    """
    with runnable(tmp_path, swap, workspace=workspace) as manager:
        assert manager.execute_skill_script("demo", "run").success
        assert subprocess.run(["uname"], capture_output=True, text=True, check=True).stdout == "evil\n", "the control"
        assert manager.execute_skill_script("demo", "run", argv=["next"]).stdout == f"{os.uname().sysname}\n"


def test_a_file_the_caller_has_open_is_not_open_in_the_script(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sk-secret-6")
    text = "import os\nfor fd in range(3, 256):\n    try: print(os.read(fd, 100))\n    except OSError: pass\n"
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        control = subprocess.run(
            [sys.executable, "-c", text], close_fds=False, capture_output=True, text=True, check=True, timeout=20
        ).stdout
        assert "sk-secret-6" in control
        file.seek(0)
        with runnable(tmp_path, text, name="scripts/run.py") as manager:
            assert "sk-secret-6" not in manager.execute_skill_script("demo", "run", timeout=20).stdout


def test_arguments_with_secrets_are_masked_on_record(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo fine\n") as manager:
        manager.execute_skill_script(
            "demo", "run", {"password": "hunter2", "nested": [{"api_key": "hunter2"}]}, argv=["--token=hunter2"]
        )
    for file in (tmp_path / "state").iterdir():
        if file.is_file():
            assert b"hunter2" not in file.read_bytes()


def test_a_refusal_does_not_write_secrets_into_the_record(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo fine\n") as manager:
        for name, argv in (("run", ["--password", "hunter2\0"]), ("nope", ["--password", "hunter2"])):
            with pytest.raises(SkillKitError, match=r"NUL|no script"):
                manager.execute_skill_script("demo", name, {"token": "hunter2"}, argv=argv)
    for file in (tmp_path / "state").iterdir():
        if file.is_file():
            assert b"hunter2" not in file.read_bytes()
