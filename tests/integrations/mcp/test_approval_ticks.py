"""What a person ticks in a client's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from support.mcp_clients import ERAS, conversing, text_of
from support.running import made_manager, only_record

from skillkit import GUARDED
from skillkit.integrations.mcp.server import create_server
from skillkit.testing import quick_forms

SCRIPT = """
import os
print("key", os.environ.get("WEATHER_API_KEY"), "team", os.environ.get("TEAM_NAME"))
"""


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def talk_of(folder: Path, era: str, content: dict[str, Any]) -> tuple[dict[str, Any], types.CallToolResult]:
    """The fields of the form, and what came of the call."""
    with (
        made_manager(folder, {"scripts/now.py": SCRIPT}, policy=GUARDED) as manager,
        conversing(create_server(manager), folder, era=era, has_form=True) as talk,
    ):
        talk.person.says = types.ElicitResult(action="accept", content=content)
        result = talk.run("demo", "now")
        return talk.person.forms[0].requested_schema["properties"], result


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k-12345678-abc")
    monkeypatch.setenv("TEAM_NAME", "blue")


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """Here a program answers, at once."""
    with quick_forms():
        yield


def test_the_form_has_a_switch_for_each_tick_and_none_is_on(tmp_path: Path, era: str) -> None:
    fields, result = talk_of(tmp_path, era, {"answer": "yes_once"})
    assert text_of(result) == "key None team None\n"
    ticks = {name: field for name, field in fields.items() if name.startswith("open_")}
    assert [(field["type"], field["default"], field["title"]) for field in ticks.values()] == [
        ("boolean", False, "Also open: the key WEATHER_API_KEY"),
        ("boolean", False, "Also open: the variable TEAM_NAME"),
    ]


def test_a_yes_opens_what_is_switched_on(tmp_path: Path, era: str) -> None:
    _, result = talk_of(tmp_path, era, {"answer": "yes_once", "open_2": True, "open_1": False, "open_9": True})
    assert text_of(result) == "key None team blue\n"
    assert only_record(tmp_path, "started")["ticks"] == {"variable": ["TEAM_NAME"]}


@pytest.mark.parametrize("said", ["true", 1, "yes", None, ["x"]])
def test_what_is_not_plainly_on_is_off(tmp_path: Path, said: Any) -> None:
    _, result = talk_of(tmp_path, ERAS[0], {"answer": "yes_once", "open_2": said})
    assert "blue" not in text_of(result)


def test_a_form_without_needs_asks_for_the_answer_alone(tmp_path: Path, era: str) -> None:
    """One field, one step: a second one that most leave empty stands in the way of every answer."""
    fields, _ = talk_of(tmp_path, era, {"answer": "no", "reason": "not asked for", "open_1": True})
    assert [name for name in fields if not name.startswith("open_")] == ["answer"]
