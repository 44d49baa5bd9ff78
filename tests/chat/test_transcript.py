"""Saved conversations: their forms, their secrets, their files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from support.chats import KEY

from skillkit import ConfigurationError
from skillkit.chat.events import Note, ToolOutcome
from skillkit.chat.transcript import Transcript
from skillkit.integrations.inline import Text


def a_transcript() -> Transcript:
    transcript = Transcript(KEY)
    transcript.add_question("What is my password=hunter22 for?")
    for piece in ("The key is ", KEY[:7], KEY[7:], ". \x1b[31mAlso sk-abcdefghij", "klmnopqrstuv."):
        transcript.add_event(Text(piece))
    transcript.add_event(ToolOutcome("skills_run_script", '{"skill_name": "demo"}', "declined"))
    transcript.add_event(Note("Stopped."))
    return transcript


def test_markdown_has_who_said_what_and_no_secret(tmp_path: Path) -> None:
    transcript = a_transcript()
    transcript.save_to(tmp_path / "talk.md")
    assert (tmp_path / "talk.md").read_text() == (
        "## You\n\nWhat is my password=[masked] for?\n\n"
        "## Model\n\nThe key is [masked]. \\x1b[31mAlso [masked].\n\n"
        "> [skills_run_script demo: not approved]\n\n> Stopped.\n"
    )
    assert stat.S_IMODE((tmp_path / "talk.md").stat().st_mode) == 0o600


def test_json_lines_have_one_object_for_each_entry(tmp_path: Path) -> None:
    transcript = a_transcript()
    transcript.save_to(tmp_path / "talk.jsonl")
    text = (tmp_path / "talk.jsonl").read_text()
    entries = [json.loads(line) for line in text.splitlines()]
    assert [entry["kind"] for entry in entries] == ["user", "assistant", "command", "note"]
    assert entries[2]["status"] == "declined"
    assert KEY not in text
    assert "sk-abc" not in text


def test_what_comes_later_goes_into_the_same_file(tmp_path: Path) -> None:
    transcript = a_transcript()
    transcript.save_to(tmp_path / "talk.md")
    transcript.add_question("And then?")
    transcript.write()
    assert (tmp_path / "talk.md").read_text().endswith("## You\n\nAnd then?\n")


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "talk.md").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"talk\.md exists already"):
        a_transcript().save_to(tmp_path / "talk.md")
    assert (tmp_path / "talk.md").read_text() == "mine"
    with pytest.raises(ConfigurationError, match=r"cannot be written to .*nowhere"):
        a_transcript().save_to(tmp_path / "nowhere" / "talk.md")


@pytest.mark.parametrize("kind", ["link", "hard link", "folder link", "pipe", "file", "nothing"])
def test_what_was_put_in_the_files_place_is_not_written_to(tmp_path: Path, kind: str) -> None:
    """The file may lie where a script can write; what it names instead may be anywhere."""
    place, precious = tmp_path / "workspace", tmp_path / "elsewhere" / "talk.md"
    place.mkdir()
    precious.parent.mkdir()
    transcript = a_transcript()
    transcript.save_to(place / "talk.md")
    (place / "talk.md").rename(tmp_path / "moved.md")
    if kind != "nothing":
        precious.write_text("precious")
    match kind:
        case "link":
            (place / "talk.md").symlink_to(precious)
        case "hard link":
            (place / "talk.md").hardlink_to(precious)
        case "folder link":
            place.rmdir()
            place.symlink_to(precious.parent)
        case "pipe":
            os.mkfifo(place / "talk.md")
        case "file":
            (place / "talk.md").write_text("another")
        case _:
            assert kind == "nothing"
    transcript.add_question("And then?")
    with pytest.raises(ConfigurationError, match=r"talk\.md.*/save FILE"):
        transcript.write()
    if kind != "nothing":
        assert precious.read_text() == "precious"
    transcript.save_to(tmp_path / "new.md")
    assert (tmp_path / "new.md").read_text().endswith("And then?\n")
