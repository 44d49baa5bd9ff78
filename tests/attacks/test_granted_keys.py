"""A script that gives away the key it was granted: to the agent, to the record, to a log; and one that wants another's."""

from __future__ import annotations

import base64
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.running import made_manager
from support.surfaces import BODY, SURFACES, told_on

from skillkit import GUARDED, SkillManager
from skillkit.core.values.masking import MASK
from skillkit.core.values.runs import RunControl
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover

KEY = "sk-live/Zy9+Q8w7=E6r5"
OPEN = replace(GUARDED, approval="never")
# Prints the key in every form that is covered, in pieces, into both streams, names and the record.
TELL = r"""
import base64, json, os, sys, time
from urllib.parse import quote
key = os.environ.get("WEATHER_API_KEY") or "nothing"
raw = key.encode()
forms = [key, base64.b64encode(raw).decode(), base64.b64encode(b"u:" + raw).decode(), base64.b64encode(b"us:" + raw).decode(),
         base64.urlsafe_b64encode(b"x" + raw + b"y").decode(), quote(key, safe=""), raw.hex(), raw.hex().upper(), json.dumps(key)]
for stream in (sys.stdout, sys.stderr):
    for form in forms:
        print(form, file=stream)
    for char in key:
        stream.write(char); stream.flush(); time.sleep(0.001)
    print(file=stream)
name = key.replace("/", "_")
open(os.path.join(os.environ["SKILL_WORK_DIR"], "out-" + name.replace("_", "")), "w").close()
print(FileNotFoundError(2, "No such file or directory", "/nowhere/" + name), file=sys.stderr)
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def forms_of(key: str) -> list[str]:
    raw = key.encode()
    cores = [
        base64.b64encode(bytes(offset) + raw)[(0, 2, 3)[offset] : (offset + len(raw)) * 8 // 6] for offset in range(3)
    ]
    return [
        key,
        *(core.decode() for core in cores),
        quote(key, safe=""),
        raw.hex(),
        raw.hex().upper(),
        json.dumps(key)[1:-1],
    ]


def leaks_in(text: str) -> list[str]:
    return [form for form in forms_of(KEY) if form in text]


def manager_of(folder: Path, **settings: Any) -> SkillManager:
    return made_manager(folder, {"scripts/run.py": TELL}, **{"policy": OPEN, **settings})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", KEY)


@pytest.mark.parametrize("code", ["0", "3"])
@pytest.mark.parametrize("is_granted", [True, False])
def test_no_agent_sees_a_granted_key(tmp_path: Path, code: str, is_granted: bool) -> None:
    heard: list[bytes] = []
    with manager_of(tmp_path) as manager:
        if is_granted:
            manager.grant("demo", secrets=["WEATHER_API_KEY"])
        answer = SkillFunctions(manager).call(
            "skills_run_script",
            {"skill_name": "demo", "script": "run", "args": [code]},
            on_output=lambda _, data: heard.append(data),
        )
    result = answer.result
    assert result is not None
    told = "\n".join(
        [answer.content, result.stdout, result.stderr, result.hint, b"".join(heard).decode(), repr(result)]
    )
    assert leaks_in(told) == []
    assert (MASK in told) is is_granted
    assert result.stdout.count(MASK) == (10 if is_granted else 0), "each of the nine forms, and the one in pieces"


def test_who_called_it_themselves_sees_what_it_printed(tmp_path: Path) -> None:
    """The control: the script really prints all of it, and only masking keeps it from an agent."""
    with manager_of(tmp_path) as manager:
        manager.grant("demo", secrets=["WEATHER_API_KEY"])
        result = manager.execute_skill_script("demo", "run")
    assert leaks_in(result.stdout) == forms_of(KEY)


@pytest.mark.parametrize("agent_facing", [True, False])
def test_no_record_and_no_log_has_a_granted_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, agent_facing: bool
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    plant = 'import os\nos.makedirs(".git/hooks" + os.environ["WEATHER_API_KEY"].replace("/", ""))\n'
    key = KEY.replace("/", "")
    os.environ["WEATHER_API_KEY"] = key
    files = {"scripts/run.py": f"{plant}import sys\nsys.exit(5)\n"}
    policy = replace(OPEN, working_directory="workspace")
    with (
        caplog.at_level(logging.DEBUG),
        made_manager(tmp_path, files, policy=policy, workspace=workspace) as manager,
    ):
        manager.grant("demo", secrets=["WEATHER_API_KEY"])
        prepared = manager.prepare_skill_script("demo", "run", argv=[f"x{'y' * 230}{key}"], agent_facing=agent_facing)
        manager.complete_skill_script(prepared)
    content = b"".join(path.read_bytes() for path in (tmp_path / "state").glob("state.sqlite3*"))
    assert b"WEATHER_API_KEY" in content, "what was given is on record by its name"
    for piece in (key, key[:12]):
        assert piece.encode() not in content
        assert piece not in caplog.text


def test_only_the_skill_that_was_granted_a_key_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "secrets"
    for skill in ("demo", "other"):
        (folder / skill).mkdir(parents=True, mode=0o700)
        (folder / skill / "SHARED_KEY").write_text(f"the-key-of-{skill}")
        (folder / skill / "SHARED_KEY").chmod(0o600)
    folder.chmod(0o700)
    monkeypatch.setenv("SKILLKIT_SECRETS_DIR", str(folder))
    script = 'import os\nprint(os.environ.get("SHARED_KEY"), os.environ.get("SKILLKIT_SECRETS_DIR"))\n'
    script += "import sys\nfor path in sys.argv[1:]:\n    try:\n        print(open(path).read())\n    except OSError as error:\n        print(type(error).__name__)\n"
    mine, others = (str(folder / skill / "SHARED_KEY") for skill in ("demo", "other"))
    for policy in (OPEN, replace(OPEN, allow_filesystem=True), replace(OPEN, readable_paths=(tmp_path / "data",))):
        (tmp_path / "data").mkdir(exist_ok=True)
        with made_manager(tmp_path, {"scripts/run.py": script}, policy=policy) as manager:
            assert manager.execute_skill_script("demo", "run", argv=[mine, others]).stdout.startswith("None None")
            manager.grant("demo", secrets=["SHARED_KEY"])
            said = manager.execute_skill_script("demo", "run", argv=[mine, others]).stdout
            assert said.startswith("the-key-of-demo None")
            assert "the-key-of-other" not in said
            manager.revoke("demo")
    assert Path(others).read_text() == "the-key-of-other", "without walls it can be read"


def test_a_key_cannot_take_the_place_of_what_a_run_has_of_its_own(tmp_path: Path) -> None:
    with manager_of(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        place = manager.flow.here.prepare(prepared, OPEN, is_fresh=False, keys={"PATH": "/evil", "SKILL_NAME": "x"})
        with place:
            assert "/evil" not in place.confined.environment["PATH"]
            assert place.confined.environment["SKILL_NAME"] == "demo"
            assert place.run(RunControl()).outcome().success


def test_a_variable_that_is_set_needed_and_withheld_is_named_in_the_hint(tmp_path: Path) -> None:
    script = 'import os\nkey = os.environ["WEATHER_API_KEY"]\n'
    with made_manager(tmp_path, {"scripts/run.py": script}, policy=OPEN) as manager:
        hint = manager.execute_skill_script("demo", "run").hint
        assert (
            "WEATHER_API_KEY is set here, but was not passed to it: skillkit grant demo --secret WEATHER_API_KEY"
            in hint
        )
        manager.grant("demo", secrets=["WEATHER_API_KEY"])
        assert manager.execute_skill_script("demo", "run").success


PLAIN_KEY = "sk-live-Zy9Q8w7E6r5T4y3"  # can be part of a file's name


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("code", ["0", "3"])
def test_no_surface_tells_a_granted_key_in_any_form_that_is_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, surface: str, code: str
) -> None:
    """With progress, names of artifacts, the values beside the text, and what a program finds in an exception."""
    monkeypatch.setenv("WEATHER_API_KEY", PLAIN_KEY)
    policy = replace(OPEN, approval="first_run" if surface == "load_skill" else "never")
    with manager_of(tmp_path, policy=policy, approver=ScriptedApprover("yes_in_session"), session_id="s") as manager:
        skill = tmp_path / "skills" / "demo" / "SKILL.md"
        skill.write_text(skill.read_text() + BODY.replace("run.py 3", f"run.py {code}"))
        manager.grant("demo", secrets=["WEATHER_API_KEY"])
        told = told_on(surface, manager, [code])
        assert MASK in told, "the script ran, and it had the key"
        assert [form for form in forms_of(PLAIN_KEY) if form in told] == []
        assert PLAIN_KEY in manager.execute_skill_script("demo", "run").stdout, "the control: it prints the key"
