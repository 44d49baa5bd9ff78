"""One sitting with each host, from adding skillkit as its page says to quitting: what the model and the person saw."""

from __future__ import annotations

import os
import re

import pytest
from support.hosts.session import Sitting
from support.hosts.world import SCRIPT_WORD, SKILL, WORD

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


fewer_people_use = pytest.mark.skipif(os.environ.get("HOSTS") != "all", reason="HOSTS=all sits down with this one too")


def are_the_three(rows: list[str]) -> bool:
    """What would run with its words, the risks and the reach: at the form's head, or at its end where hosts show that."""
    kinds = {
        next((kind for kind in ("Risks:", "Reach:") if kind in row), "Run" if is_what_runs(row) else "") for row in rows
    }
    return kinds == {"Run", "Risks:", "Reach:"}


def is_what_runs(row: str) -> bool:
    return SKILL in row and "greet.py" in row and SCRIPT_WORD[:10] in row


class Facts:
    """The same for every host; each is a class of its own, so that one worker judges one sitting."""

    name: str

    def test_it_connects_and_offers_our_tools(self, sitting: Sitting) -> None:
        sitting.require("add", "start")
        assert {"load_skill", "skills_run_script"} <= set(sitting.tools), sitting.tools

    def test_a_skill_is_loaded(self, sitting: Sitting) -> None:
        sitting.require("add", "start", "greet")
        assert WORD in sitting.results["greet"][0]

    def test_a_script_runs_after_the_person_s_yes(self, sitting: Sitting) -> None:
        sitting.require("add", "start", "greet")
        assert f"hello {SCRIPT_WORD}" in sitting.results["greet"][1]
        started, finished = [each for each in sitting.records if each["script"] == "scripts/greet.py"]
        assert (started["kind"], started["decision"], started["answer"]) == ("started", "ask", "yes_once")
        assert started["channel"] == ("elicitation" if sitting.host.form else "cli")
        assert (finished["kind"], finished["exit_code"]) == ("finished", 0)

    def test_a_script_that_takes_too_long_is_ended_and_the_model_is_told(self, sitting: Sitting) -> None:
        sitting.require("add", "start", "greet", "timeout")
        assert "Timeout" in sitting.results["timeout"][0]
        assert slow_ends(sitting)[0]["timed_out"]
        assert len(sitting.ran["timeout"]) >= 2, "the script and what it started were there"
        assert sitting.left["timeout"] == {}

    def test_cancelling_ends_the_script_and_what_it_started(self, sitting: Sitting) -> None:
        """By the host's own key; where that tells the server nothing, by quitting."""
        sitting.require("add", "start", "greet", "cancel")
        assert len(sitting.ran["cancel"]) >= 2, "the script and what it started were there"
        assert sitting.left["cancel"] == {}
        _, *ends = slow_ends(sitting)
        assert [(each["cancelled"], each["timed_out"]) for each in ends] == [(True, False)] * len(ends)
        # A host that takes the server with it, at once, leaves nobody to write the end.
        assert ends or sitting.host.cancels_by_quitting

    def test_nothing_of_ours_is_left_when_the_host_has_gone(self, sitting: Sitting) -> None:
        sitting.require("add", "left")
        assert sitting.left["quit"] == {}

    def test_a_person_sees_the_form_before_anything_runs(self, sitting: Sitting) -> None:
        if not sitting.host.form:
            pytest.skip("this host shows no form")
        sitting.require("add", "start", "greet")
        assert sitting.forms
        assert any("Yes once" in row or "not set" in row for row in sitting.forms[0])

    def test_the_form_s_first_lines_say_what_runs_its_risks_and_its_reach(self, sitting: Sitting) -> None:
        """As the host shows them at 80 columns, where all that follows may be cut off."""
        if not sitting.host.form:
            pytest.skip("this host shows no form")
        sitting.require("add", "start", "greet")
        shown = sitting.forms[0] if sitting.host.form_rows > 3 else question_rows(sitting)[:3]
        threes = [shown[at : at + 3] for at in range(max(1, len(shown) - 2))]
        assert any(are_the_three(three) for three in threes), shown

    def test_what_a_script_printed_before_its_timeout_reaches_the_model(self, sitting: Sitting) -> None:
        sitting.require("add", "start", "greet", "timeout")
        assert "count 3" in sitting.results["timeout"][0]


class TestClaudeCode(Facts):
    name = "claude-code"


class TestCodex(Facts):
    name = "codex"


class TestCopilot(Facts):
    name = "copilot"


class TestGemini(Facts):
    name = "gemini"


class TestGoose(Facts):
    name = "goose"


class TestOpencode(Facts):
    name = "opencode"


@fewer_people_use
class TestQwen(Facts):
    name = "qwen"


@fewer_people_use
class TestCline(Facts):
    name = "cline"


@fewer_people_use
class TestContinue(Facts):
    name = "continue"


def question_rows(sitting: Sitting) -> list[str]:
    """Our words on the screen, without the host's frame."""
    rows = [row.strip(" │┃") for row in sitting.forms[0] if row.strip(" │┃")]
    if sitting.host.form_begins:
        return rows[1 + row_with(sitting.host.form_begins, rows) :]
    return rows[row_with(rf"{SKILL}.*greet\.py", rows) :]


def row_with(pattern: str, rows: list[str]) -> int:
    found = [at for at, row in enumerate(rows) if re.search(pattern, row, re.IGNORECASE)]
    assert found, f"no row has {pattern!r}: {rows}"
    return found[0]


def slow_ends(sitting: Sitting) -> list[dict[str, object]]:
    return [each for each in sitting.records if each["script"] == "scripts/slow.py" and each["kind"] == "finished"]
