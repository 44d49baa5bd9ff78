"""A caller that puts secrets or megabytes into names, so that the record keeps them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager, only_record, records_of

from skillkit import ScriptNotFoundError, SkillKitError, SkillManager
from skillkit.core.record import AuditLog
from skillkit.core.store.state import StateStore
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor

SECRET = "sk-live-51HqzQ9f8Jw2LmXbVt7Rk3Yp"
LONG = "x" * 5_000_000
LARGEST_RECORD = 50_000

Attempt = Callable[[SkillManager, str], object]

ATTEMPTS: dict[str, Attempt] = {
    "script": lambda manager, text: manager.execute_skill_script("demo", text),
    "script above": lambda manager, text: manager.execute_skill_script("demo", f"../{text}"),
    "script in folders": lambda manager, text: manager.execute_skill_script("demo", f"{text}/" + "a/" * 1_000_000),
    "skill": lambda manager, text: manager.execute_skill_script(text, "run.sh"),
    "session": lambda manager, text: manager.execute_skill_script("demo", "none.sh", session_id=text),
    "argument": lambda manager, text: manager.execute_skill_script("demo", "none.sh", argv=[text]),
    "key": lambda manager, text: manager.execute_skill_script("demo", "none.sh", {text: 1}),
    "prepared": lambda manager, text: manager.complete_skill_script(
        manager.prepare_skill_script(text, text, session_id=text, call_id=text)
    ),
    "function": lambda manager, text: SkillFunctions(manager, session_id=text).call(
        "skills_run_script", {"skill_name": text, "script": text}
    ),
    "command": lambda manager, text: InlineProcessor(manager).feed(f"!{{{text[:4_000]}}}"),
    "command in a skill": lambda manager, text: InlineProcessor(manager).feed(f"!{{{text[:4_000]}:scripts/run.sh}}"),
}


def attempted(manager: SkillManager, attempt: Attempt, text: str) -> None:
    with suppress(SkillKitError):
        attempt(manager, text)


def kept_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("state/state.sqlite3*"))


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_no_field_of_a_refusal_keeps_a_secret(
    tmp_path: Path, attempt: Attempt, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        attempted(manager, attempt, SECRET)
        assert [record.kind for record in records_of(tmp_path)] == ["refused"]
        assert SECRET.encode() not in kept_bytes(tmp_path)
    assert caplog.records
    for logged in caplog.records:
        assert SECRET not in logged.getMessage()
        assert SECRET not in str(vars(logged))


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_no_field_of_a_refusal_keeps_megabytes(
    tmp_path: Path, attempt: Attempt, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        attempted(manager, attempt, LONG)
        (record,) = records_of(tmp_path)
    assert record.kind == "refused"
    assert len(json.dumps(record.fields)) < LARGEST_RECORD
    assert all(len(str(vars(logged))) < 2 * LARGEST_RECORD for logged in caplog.records)


def test_control_a_plain_log_keeps_what_a_caller_sends(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("plain").warning("no script %r", SECRET + LONG, extra={"script": SECRET})
    (logged,) = caplog.records
    assert SECRET in logged.getMessage()
    assert len(logged.getMessage()) > len(LONG)


HOSTILE: dict[str, Any] = {
    "text": f"said {SECRET}{LONG}",
    "late": "." * 900 + SECRET,
    "at the cut": "." * (1_000 - len(SECRET) + 4) + SECRET,
    "at the window": "\n".join(["."] * 2_000) + "." * 80 + SECRET + LONG,
    "list": [SECRET] * 10_000,
    "mapping": {f"{SECRET}{number}": SECRET for number in range(10_000)},
    "deep": [[[[[[SECRET]]]]]],
    "number": 10**5_000,
    "half": "\ud800",
    SECRET: 1,
    LONG: 1,
}


@pytest.mark.parametrize("kind", ["started", "finished", "refused"])
@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_appended_is_masked_and_cut(
    tmp_path: Path, kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log = AuditLog(StateStore(tmp_path / "state"))
    log.append(kind, {"skill": "demo", name: HOSTILE[name], "exit_code": 3})
    (record,) = records_of(tmp_path)
    text = json.dumps(record.fields, ensure_ascii=False)
    assert len(text.encode("utf-8")) < LARGEST_RECORD
    assert SECRET[:16] not in text
    assert (record.fields["skill"], record.fields["exit_code"]) == ("demo", 3)
    assert log.verify().ok
    (logged,) = caplog.records
    said = logged.getMessage() + str(logged.__dict__["skillkit"])
    assert len(said) < 3 * LARGEST_RECORD
    assert SECRET[:16] not in said


def test_a_digest_is_kept_whole_and_ordinary_words_as_they_are(tmp_path: Path) -> None:
    fields = {"digest": "0123456789abcdef" * 4, "skill": "pdf", "reasons": ["'pdf' is trusted."], "limits": ["cpu"]}
    AuditLog(StateStore(tmp_path / "state")).append("started", fields)
    kept = only_record(tmp_path, "started")
    assert {name: kept[name] for name in fields} == fields


def test_a_session_is_found_by_the_name_it_was_given_even_if_that_was_cut(tmp_path: Path) -> None:
    log = AuditLog(StateStore(tmp_path / "state"))
    for session in ("one", LONG, "caf\udce9"):
        log.append("started", {"session": session})
    assert [[record.seq for record in log.records(session=each)] for each in ("one", LONG, "caf\udce9", "two")] == [
        [1],
        [2],
        [3],
        [],
    ]


def test_an_error_about_a_long_name_is_short_and_still_says_what_to_do(tmp_path: Path) -> None:
    manager = made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"})
    with manager, pytest.raises(ScriptNotFoundError, match=r"has no script.*There are: scripts/run\.sh\.$") as caught:
        manager.execute_skill_script("demo", LONG)
    assert len(str(caught.value)) < 5_000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (LONG, {}),
        ("load_skill", {"skill_name": LONG}),
        ("load_skill", {LONG: 1}),
        ("skills_run_script", {"skill_name": LONG, "script": LONG}),
        ("skills_run_script", LONG),
        ("read_skill_file", {"skill_name": "demo", "path": LONG}),
    ],
    ids=["tool", "skill", "key", "script", "text", "file"],
)
def test_an_answer_does_not_send_megabytes_back(tmp_path: Path, name: str, arguments: Any) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        answer = SkillFunctions(manager).call(name, arguments)
    assert answer.is_error
    assert len(answer.content) < LARGEST_RECORD
