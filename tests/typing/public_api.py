"""A program that uses what skillkit offers, for the type checkers: it is read, never run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

import skillkit
from skillkit import (
    GUARDED,
    STANDARD,
    ApprovalDeclinedError,
    AuditUnavailableError,
    Diagnostic,
    FilePathResolver,
    Limits,
    OptionAnswer,
    OptionRequest,
    PathSecurityError,
    ScriptDetector,
    ScriptExecutionResult,
    ScriptExecutor,
    ScriptMetadata,
    ScriptNotFoundError,
    ScriptPolicy,
    Skill,
    SkillKitError,
    SkillManager,
    SkillMetadata,
    World,
)
from skillkit.approvers.callback import CallbackApprover
from skillkit.approvers.store import StoreApprover
from skillkit.core.scripts import INTERPRETER_MAP, ScriptArguments, ScriptEnvironment, ScriptList
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover, skill_folder


def manager_of(folder: Path) -> SkillManager:
    policy = ScriptPolicy(allow_scripts=True, approval="first_run", sandbox="required", limits=Limits(open_files=64))
    return SkillManager(
        folder, "", [], [folder], 10.5, policy=policy, approver=ScriptedApprover("yes_once"), session_id="s"
    )


def reads(manager: SkillManager) -> None:
    manager.discover()
    assert_type(manager.list_skills(), list[SkillMetadata])
    assert_type(manager.diagnostics, list[Diagnostic])
    assert_type(manager.list_scripts("demo"), list[ScriptMetadata])
    assert_type(manager.invoke_skill("demo", "arguments"), str)
    skill = assert_type(manager.load_skill("demo"), Skill)
    assert_type(skill.content, str)
    assert_type(skill.metadata.version, str | None)
    assert_type([script.name for script in skill.scripts], list[str])


def runs(manager: SkillManager) -> bytes:
    seen = bytearray()

    def on_output(stream: str, data: bytes) -> None:
        seen.extend(data if stream == "stdout" else b"")

    cancel = threading.Event()
    try:
        result = manager.execute_skill_script(
            "demo", "run", {"a": [1]}, 5, argv=["b"], cancel=cancel, on_output=on_output
        )
    except ScriptNotFoundError as error:
        assert_type(error.available, tuple[str, ...])
    except ApprovalDeclinedError as error:
        assert_type(error.reasons, tuple[str, ...])
    except AuditUnavailableError as error:
        assert_type(error.result, object | None)
    except SkillKitError as error:
        return str(error).encode()
    else:
        assert_type(result, ScriptExecutionResult)
        assert_type((result.stdout, result.exit_code, result.success, result.timeout), tuple[str, int, bool, bool])
        assert_type(result.signal, str | None)
        assert_type([file.size for file in result.artifacts], list[int])
    return bytes(seen)


def halves(manager: SkillManager) -> ScriptExecutionResult:
    prepared = manager.prepare_skill_script("demo", "run", argv=("a",))
    return manager.complete_skill_script(prepared)


async def awaits(manager: SkillManager) -> ScriptExecutionResult:
    await manager.adiscover()
    assert_type(await manager.ainvoke_skill("demo"), str)
    return await manager.aexecute_skill_script("demo", "run", stdin=b"bytes")


def asks(folder: Path) -> OptionAnswer:
    def always_no(request: OptionRequest) -> str:
        return request.options[-1].id

    with World(folder) as world, SkillManager(approver=CallbackApprover(always_no)) as one:
        two = SkillManager(policy=GUARDED, approver=StoreApprover(world, expires_in=10))
        halves(one)
        two.close()
        assert_type(world.pending(), list[OptionRequest])
        world.answer("id", "yes_once", "sample")
        return world.ask("Go on?", "It takes long.", [("yes", "Yes"), ("no", "No")], expires_in=5)


def without_a_manager(folder: Path, metadata: SkillMetadata) -> Sequence[str]:
    executor = ScriptExecutor(timeout=0.5, max_output_size=1_000, policy=STANDARD)
    assert_type(executor.execute(Path("scripts/run.sh"), {"a": 1}, folder, metadata), ScriptExecutionResult)
    found: ScriptList = ScriptDetector(max_depth=2).detect_scripts(folder)
    arguments: ScriptArguments = {"a": 1}
    environment: ScriptEnvironment = {"LANG": "C"}
    try:
        assert_type(FilePathResolver.resolve_path(folder, "scripts/run.sh"), Path)
    except PathSecurityError as error:
        assert_type(error.requested_path, str)
    return [*INTERPRETER_MAP, *arguments, *environment, *(script.get_fully_qualified_name("demo") for script in found)]


def tools(manager: SkillManager) -> str:
    functions = SkillFunctions(manager)
    question = functions.question("load_skill", {"skill_name": "demo"}, "call-1")
    assert_type(question, OptionRequest | None)
    if question is not None:
        functions.call("load_skill", {"skill_name": "demo"}, "call-1", answer="yes_once", question_id=question.id)
    return functions.call("load_skill", {"skill_name": "demo"}).content


if __name__ == "__main__":
    with manager_of(skill_folder(Path(), "demo", {"scripts/run.sh": "echo hi\n"})) as held:
        reads(held)
        runs(held)
        asyncio.run(awaits(held))
        assert_type((skillkit.__version__, tools(held)), tuple[str, str])
