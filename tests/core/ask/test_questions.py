"""The question that a command raises, and the one call that an answer to it is for."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from support.commands import BOUNDS, COMMAND, WIDER

from skillkit.core.ask.questions import approval_request, joint_request
from skillkit.core.values.questions import (
    OPTIONS,
    SINGLE_USE,
    WALLS,
    FileChange,
    OptionRequest,
    Prompt,
    PromptCommand,
    RiskFlag,
    Tick,
)
from skillkit.core.values.runs import Decision, PreparedRun
from skillkit.core.values.skills import Workspace


def prompt(*reasons: str) -> Prompt:
    return Prompt(
        skill="demo",
        origin="/skills/demo",
        reasons=reasons,
        risks=(RiskFlag("network", "Sends.", "scripts/run.sh", 3),),
        changes=(FileChange("added", "a", "+x"),),
        commands=(PromptCommand("scripts/run.sh", ("a b", "-x"), "", "echo"),),
        walls=("It cannot use the network.",),
        digest="0" * 64,
    )


def test_a_request_says_what_would_run_and_why_it_is_asked() -> None:
    command = replace(COMMAND, script_arguments=("a b", "-x"), session_id="s")
    request = approval_request(command, prompt("One.", "Two."), BOUNDS)
    assert (request.title, request.message) == ("Run scripts/run.sh of the skill demo?", "One. Two.")
    assert (request.options, request.session_id) == (OPTIONS, "s")
    assert Prompt.from_context(json.loads(json.dumps(request.context))) == prompt("One.", "Two.")


def test_the_same_call_gives_the_same_request() -> None:
    first, second = (approval_request(replace(COMMAND), prompt("One."), BOUNDS) for _ in range(2))
    assert first == second
    assert len(first.id) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"session_id": "s"},
        {"call_id": "c"},
        {"digest": "1" * 64},
        {"script_name": "scripts/other.sh"},
        {"script_arguments": (*COMMAND.script_arguments, "-x")},
        {"script_arguments": (" ".join((*COMMAND.script_arguments, "-x", "-y")),)},
        {"stdin": b"{}"},
        {"cwd": "/elsewhere"},
        {"workspace": Workspace(Path("/workspace"), 1, 2)},
        {"argument_paths": ("/data/a.csv",)},
        {"interpreter": "zsh"},
        {"timeout": 31},
        {"output_limit": 101},
        {"skill_name": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_call_gives_another_id(change: dict[str, object]) -> None:
    other = replace(COMMAND, **change)  # type: ignore[arg-type]  # any field
    assert approval_request(other, prompt(), BOUNDS).id != approval_request(COMMAND, prompt(), BOUNDS).id


@pytest.mark.parametrize(
    "change", [each for each in WIDER if "program" not in each], ids=lambda change: next(iter(change))
)
def test_other_walls_give_another_id(change: dict[str, object]) -> None:
    other = replace(BOUNDS, **change)  # type: ignore[arg-type]  # any field
    assert approval_request(COMMAND, prompt(), other).id != approval_request(COMMAND, prompt(), BOUNDS).id


def test_what_is_offered_what_the_answers_cover_and_the_interpreters_version_are_part_of_the_id() -> None:
    plain = approval_request(COMMAND, prompt(), BOUNDS, is_coverable=False)
    key, other = Tick("secret:API_KEY", "the key API_KEY"), Tick("secret:OTHER_KEY", "the key OTHER_KEY")
    ids = {
        approval_request(COMMAND, prompt(), BOUNDS, is_coverable=True).id,
        approval_request(COMMAND, prompt(), BOUNDS, version="bash 5.2").id,
        approval_request(COMMAND, prompt(), BOUNDS, version="bash 5.3").id,
        approval_request(COMMAND, prompt(), BOUNDS, [key]).id,
        approval_request(COMMAND, prompt(), BOUNDS, [other]).id,
        approval_request(COMMAND, prompt(), BOUNDS, [key, other]).id,
        plain.id,
    }
    assert len(ids) == 7
    assert approval_request(COMMAND, prompt(), BOUNDS, [key]).grants == (key,)


def test_where_skill_workspace_and_interpreter_lie_does_not_matter_to_the_id() -> None:
    def asked(root: str, *, below: str = "data") -> OptionRequest:
        skill, work = f"{root}/skills/demo", f"{root}/work"
        command = replace(
            COMMAND,
            base_directory=Path(skill),
            script_path=Path(skill, "scripts/run.sh"),
            argv=(f"{root}/bin/bash", f"{skill}/scripts/run.sh"),
            cwd=skill,
            workspace=Workspace(Path(work), len(root), 2),
        )
        program = (f"{root}/bin/bash", f"{root}/bin/bash")
        bounds = replace(BOUNDS, workspace=work, writable=(f"{work}/{below}",), program=program)
        return approval_request(command, prompt(), bounds, [Tick(f"read:{work}/{below}", "read it")])

    assert asked("/one").id == asked("/the/other").id
    assert asked("/one").id != asked("/one", below="elsewhere").id
    assert asked("/one").context[WALLS] != asked("/the/other").context[WALLS], "which the answer's walls still are"


def test_a_folder_beside_a_role_is_not_in_it() -> None:
    command = replace(COMMAND, workspace=Workspace(Path("/work"), 1, 2))
    ids = {
        approval_request(command, prompt(), replace(BOUNDS, readable=(path,))).id
        for path in ("/work", "/work2", "/wor")
    }
    assert len(ids) == 3


def test_session_and_call_are_not_mixed_up() -> None:
    one, other = replace(COMMAND, session_id="a", call_id="b"), replace(COMMAND, session_id="b", call_id="a")
    assert approval_request(one, prompt(), BOUNDS).id != approval_request(other, prompt(), BOUNDS).id
    joined = replace(COMMAND, session_id="ab", call_id="")
    assert approval_request(joined, prompt(), BOUNDS).id != approval_request(one, prompt(), BOUNDS).id


def test_why_it_is_asked_and_half_characters_do_not_matter_to_the_id() -> None:
    odd = replace(COMMAND, script_arguments=("\udcff",))
    assert approval_request(odd, prompt("One."), BOUNDS).id == approval_request(odd, prompt("Two."), BOUNDS).id


def test_one_question_about_several_runs_is_about_exactly_these_in_this_order() -> None:
    first, second, third = (
        PreparedRun(command, Decision.ASK, (), approval_request(command, prompt("One."), BOUNDS))
        for command in (replace(COMMAND, script_name=f"scripts/{name}.sh") for name in "abc")
    )
    ids = {
        joint_request(runs, prompt("One.")).id
        for runs in ((first, second), (first, third), (second, first), (first, second, third))
    }
    assert len(ids) == 4
    joint = joint_request((first, second), prompt("One."))
    assert joint.id not in {first.request.id, second.request.id} if first.request and second.request else False
    assert (joint.title, joint.options) == ("Run 2 scripts of the skill demo?", OPTIONS)


def test_the_question_about_a_program_names_the_program() -> None:
    program = replace(COMMAND, is_program=True, script_path=Path("/usr/bin/git"), script_name="git")
    assert approval_request(program, prompt(), BOUNDS).title == "Run the program /usr/bin/git?"


def prepared(call_id: str, *, is_asked: bool = True) -> PreparedRun:
    command = replace(COMMAND, skill_name=f"demo-{call_id}", call_id=call_id, session_id=f"s-{call_id}")
    request = approval_request(command, prompt(), BOUNDS) if is_asked else None
    return PreparedRun(command, Decision.ASK, (), request)


def test_one_question_for_several_runs_is_about_exactly_these() -> None:
    runs = [prepared("a"), prepared("b"), prepared("c", is_asked=False)]
    joint = joint_request(runs, prompt("One."))
    assert (joint.title, joint.message) == ("Run 3 scripts of the skill demo-a?", "One.")
    assert (joint.options, joint.session_id) == (OPTIONS, "s-a")
    others = [runs[:1], runs[1:], [runs[1], runs[0]], [prepared("a"), prepared("d")]]
    assert joint.id not in [joint_request(other, prompt("One.")).id for other in others]
    ids = [run.request.id for run in runs if run.request is not None]
    assert joint.id != sha256(json.dumps(ids).encode("ascii")).hexdigest(), "a joint question is of its own kind"


def test_what_is_asked_about_every_time_gets_any_yes_for_one_run_only() -> None:
    both, once = ["yes_once", "yes_in_session"], ["yes_once"]
    assert approval_request(COMMAND, prompt(), BOUNDS, is_coverable=True).context[SINGLE_USE] == once
    assert approval_request(COMMAND, prompt(), BOUNDS, is_coverable=False).context[SINGLE_USE] == both
    assert approval_request(COMMAND, prompt(), BOUNDS).context[SINGLE_USE] == both, "unless somebody says otherwise"
    every_time, coverable = prepared("a"), replace(prepared("b"), is_coverable=True)
    for runs, expected in (((coverable, coverable), once), ((coverable, every_time), both)):
        assert joint_request(runs, prompt()).context[SINGLE_USE] == expected
