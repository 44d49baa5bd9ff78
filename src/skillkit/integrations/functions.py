"""The tools of an agent without any framework: their schemas, and one `call` that never raises for a bad call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from skillkit.approvers.store import LaterApprover
from skillkit.core.ask.approvals import NO, declined
from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.references import ScriptReference
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.models.instructions import instructions_for
from skillkit.core.paths.files import Folder
from skillkit.core.resolve import CallArguments
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.questions import Approver, OptionAnswer, OptionRequest
from skillkit.core.values.runs import Decision, OnOutput, RunControl, ScriptExecutionResult
from skillkit.integrations.batch import Outcome, batch_question, execute_batch
from skillkit.integrations.catalog import found_text, sayable, script_paths, skill_for_models, skills_for_models
from skillkit.integrations.given_answers import GivenAnswers
from skillkit.integrations.loading import commands_digest, commands_on_load, file_text, skill_context
from skillkit.integrations.tool_schemas import (
    TOOLS,
    ToolSchema,
    argument_problem,
    parse_arguments,
    server_instructions,
    tool_schemas,
)
from skillkit.present.skill_context import SkillContext, envelope
from skillkit.present.tool_result import (
    SHOWN_CHARACTERS,
    ScriptToolResult,
    refusal_status,
    refusal_text,
    refused_needs,
    run_status,
    run_text,
    told_output,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.flow import Flow

__all__ = ["ScriptToolResult", "SkillFunctions", "ToolSchema"]

ECHOED_CHARACTERS = 5_000  # of what a caller sent, in an answer to it; an error says less


class SkillFunctions:
    """One agent's tools in one session; a model can set neither the session nor who is asked."""

    def __init__(
        self,
        manager: SkillManager,
        *,
        approver: Approver | None = None,
        session_id: str | None = None,
        run_scripts: bool = True,
        skills: Sequence[str] | None = None,
    ) -> None:
        """`skills` are those that the agent has; all of the manager's if None."""
        self.manager = manager
        self._only = None if skills is None else tuple(manager.get_skill(name) for name in skills)
        self.approver = approver or manager.approver
        self.session_id = session_id or manager.session_id
        self.run_scripts = run_scripts
        self._answers = GivenAnswers()

    @property
    def flow(self) -> Flow:
        return self.manager.agent_flow

    def tools(self, told: Collection[str] = ()) -> list[ToolSchema]:
        """Nothing where there are no skills; `told` are skills that the model knows from `instructions`."""
        skills = self.skills()
        return tool_schemas(skills, self.script_paths(skills), told)

    def instructions(self) -> str:
        """How skills are used and what each is for, bounded: for a system prompt, with `tools(told=...)` beside it."""
        return server_instructions(self.skills())

    def openai_tools(self) -> list[dict[str, Any]]:
        """The tools in the form that OpenAI's API takes."""
        return [tool.to_openai() for tool in self.tools()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The tools in the form that Anthropic's API takes."""
        return [tool.to_anthropic() for tool in self.tools()]

    def skills(self) -> list[SkillMetadata]:
        """Those that a model may call for."""
        return skills_for_models(self.manager, self._only)

    def script_paths(self, skills: list[SkillMetadata]) -> list[str]:
        return script_paths(self.manager, skills)

    def load_skill(
        self,
        skill_name: str,
        *,
        run_scripts: bool | None = None,
        tool_use_id: str | None = None,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptToolResult:
        """As the tool of this name; `run_scripts=False` loads only."""
        run = {"run_scripts": run_scripts, "control": RunControl(cancel, None, on_output)}
        return self._answer("load_skill", {"skill_name": skill_name}, tool_use_id, **run)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        tool_use_id: str | None = None,
        *,
        answer: OptionAnswer | str | None = None,
        question_id: str = "",
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptToolResult:
        """Whatever a model sends, it gets an answer; only what a framework raises to ask a person passes through.

        `answer` is what a person said to this call's `question`: an OptionAnswer, or an option's id. With the id of an
        option, `question_id` names the question if it was asked elsewhere, as in the process before a restart.
        """
        given = self._given_answer(answer, question_id, name, arguments, tool_use_id)
        return self._answer(name, arguments, tool_use_id, answer=given, control=RunControl(cancel, None, on_output))

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        tool_use_id: str | None = None,
        *,
        answer: OptionAnswer | str | None = None,
        question_id: str = "",
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptToolResult:
        """As `call`, without blocking the loop; cancelling the task kills the script's tree."""
        given = self._given_answer(answer, question_id, name, arguments, tool_use_id)
        run = partial(self._answer, name, arguments, tool_use_id, answer=given)
        return await run_in_thread(lambda control: run(control=control._replace(cancel=cancel, on_output=on_output)))

    def question(
        self, name: str, arguments: Mapping[str, Any] | str | None, tool_use_id: str | None = None
    ) -> OptionRequest | None:
        """What a person has to be asked before this call, for a framework that asks by its own means.

        None where there is nothing to ask: the call runs, or says by itself why it does not. Its id is the same in
        every process while skill, arguments, session and walls are; nothing is run or recorded.
        """
        given = parse_arguments(arguments)
        if given is None or name not in TOOLS or argument_problem(name, given):
            return None
        try:
            asked = self._question_for(name, given, tool_use_id)
        except SkillKitError:
            return None
        if asked is not None:
            self._answers.remember(asked, self._answers.call(name, given, tool_use_id))
        return asked

    async def aquestion(
        self, name: str, arguments: Mapping[str, Any] | str | None, tool_use_id: str | None = None
    ) -> OptionRequest | None:
        """As `question`, without blocking the loop."""
        return await asyncio.to_thread(self.question, name, arguments, tool_use_id)

    def _question_for(self, name: str, given: Mapping[str, Any], tool_use_id: str | None) -> OptionRequest | None:
        asks_on_load = self.run_scripts and self.flow.policy.run_on_load == "ask"
        if name == "read_skill_file" or (name == "load_skill" and not asks_on_load):
            return None
        skill = self._skill(given["skill_name"])
        if name == "load_skill":
            calls = self._loading_calls(commands_on_load(skill, self.flow.policy, self.manager.workspace), tool_use_id)
        else:
            calls = [self._script_call(tool_use_id, **given)]
        return batch_question(self.flow, skill, calls)

    def _given_answer(
        self,
        answer: OptionAnswer | str | None,
        question_id: str,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        tool_use_id: str | None,
    ) -> OptionAnswer | None:
        if answer is None:
            return None
        given = parse_arguments(arguments) or {}
        return self._answers.answer(answer, question_id, self._answers.call(name, given, tool_use_id))

    def _answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        tool_use_id: str | None,
        **run: Any,  # noqa: ANN401 - the flow's
    ) -> ScriptToolResult:
        if name not in TOOLS:
            return _refused(tool_use_id, "not_found", f"There is no tool {name!r}. There are: {', '.join(TOOLS)}.")
        given = parse_arguments(arguments)
        problem = argument_problem(name, given)
        if given is None or problem:
            return _refused(tool_use_id, "invalid_arguments", problem)
        handlers: dict[str, Callable[..., ScriptToolResult]] = {
            "load_skill": self._load_skill,
            "skills_run_script": self._run_script,
            "read_skill_file": self._read_file,
            "find_skills": self._find_skills,
        }
        try:
            return handlers[name](tool_use_id, **given, **run)
        except SkillKitError as error:
            return _refused(tool_use_id, refusal_status(error), str(error), error)

    def _run_script(
        self,
        tool_use_id: str | None,
        *,
        skill_name: str,
        answer: OptionAnswer | None = None,
        control: RunControl,
        **given: Any,  # noqa: ANN401 - as the schema says
    ) -> ScriptToolResult:
        call = self._script_call(tool_use_id, **given)
        try:
            skill = self._skill(skill_name)
        except SkillNotFoundError as error:
            self.flow.record_unresolved(error, skill_name, call)
        if answer is None:
            result = self.flow.execute(skill, call, control, approver=self.approver)
        else:
            result = self._complete(skill, call, answer, control)
        text = run_text(result, self._keep_rest(told_output(result)))
        return ScriptToolResult(tool_use_id, text, not result.success, run_status(result), result, needs=result.needs)

    def _complete(
        self, skill: Skill, call: CallArguments, answer: OptionAnswer, control: RunControl
    ) -> ScriptExecutionResult:
        """What was answered elsewhere; a no counts even to what was asked otherwise or need not be asked any more."""
        try:
            prepared = self.flow.prepare(skill, call)
        except SkillKitError as error:
            self.flow.record_unresolved(error, skill.name, call)
        if answer.option_id == NO and prepared.decision is not Decision.DENY:
            self.flow.record_refusal(declined(prepared, answer), prepared, answer)
        return self.flow.complete(prepared, answer if prepared.decision is Decision.ASK else None, control)

    def _keep_rest(self, output: str) -> str:
        """Where all of an output is that a model sees only a part of."""
        if len(output) <= SHOWN_CHARACTERS:
            return ""
        try:
            work = self.flow.here.work_folders.new()
            with Folder.of(work) as folder:
                folder.write_new("output.txt", output.encode("utf-8", "surrogateescape"))
        except OSError:
            return ""
        return f"All of it is in {work / 'output.txt'} until the session ends."

    def _read_file(
        self,
        tool_use_id: str | None,
        *,
        skill_name: str,
        path: str,
        **_: Any,  # noqa: ANN401 - nothing runs
    ) -> ScriptToolResult:
        return ScriptToolResult(tool_use_id, file_text(self._skill(skill_name), path))

    def _find_skills(self, tool_use_id: str | None, *, query: str, **_: Any) -> ScriptToolResult:  # noqa: ANN401 - as above
        return ScriptToolResult(tool_use_id, found_text(sayable(self.skills()), query))

    def _load_skill(
        self,
        tool_use_id: str | None,
        *,
        skill_name: str,
        run_scripts: bool | None = None,
        **run: Any,  # noqa: ANN401 - the flow's
    ) -> ScriptToolResult:
        """Always the envelope; one that says why where there is no such skill."""

        def outcomes(references: Sequence[ScriptReference]) -> Sequence[Outcome | None]:
            calls = self._loading_calls(references, tool_use_id)
            approver = LaterApprover(self.approver) if self.approver is not None else None
            may_ask = self.flow.policy.run_on_load == "ask"
            return execute_batch(self.flow, skill, calls, approver=approver, may_ask=may_ask, **run)

        may_run = self.run_scripts if run_scripts is None else run_scripts
        try:
            skill = self._skill(skill_name)
            context = skill_context(
                skill,
                instructions_for(skill, session_id=self.session_id, workspace=self.manager.workspace),
                outcomes if may_run else None,
                self.flow.policy,
                workspace=self.manager.workspace,
            )
        except SkillKitError as error:
            context = SkillContext(skill_name[:ECHOED_CHARACTERS], refusal_status(error), str(error))
        return ScriptToolResult(
            tool_use_id, envelope(context), context.status != "ok", context.status, commands=context.outputs
        )

    def _loading_calls(self, references: Sequence[ScriptReference], call_id: str | None) -> list[CallArguments]:
        """Where a question waits elsewhere, whichever call comes after its answer, it is about this list."""
        own_id = None if hasattr(self.approver, "ask_later") else call_id
        together = commands_digest(references)
        return [self._call(each.script, own_id, argv=each.argv, from_instructions=together) for each in references]

    def _script_call(
        self,
        call_id: str | None,
        *,
        script: str,
        args: list[str] | None = None,
        input: Any = None,  # noqa: A002, ANN401 - the tool's own word; any JSON value
        **_: Any,  # noqa: ANN401 - the skill's name
    ) -> CallArguments:
        arguments, stdin = (None, input) if isinstance(input, str) else (input, None)
        return self._call(script, call_id, arguments=arguments, argv=tuple(args or ()), stdin=stdin)

    def _call(self, script: str, call_id: str | None, **given: Any) -> CallArguments:  # noqa: ANN401 - what a call has
        call_id = call_id or ""
        return self.manager.call_for(script, session_id=self.session_id, agent_facing=True, call_id=call_id, **given)

    def _skill(self, name: str) -> Skill:
        """SkillNotFoundError for what is hidden from models, as if it were not there."""
        return skill_for_models(self.manager, name, self._only)


def _refused(
    tool_use_id: str | None, status: str, message: str, error: SkillKitError | None = None
) -> ScriptToolResult:
    told = message[:ECHOED_CHARACTERS]
    text, needs = refusal_text(status, told, error), refused_needs(error)
    return ScriptToolResult(tool_use_id, text, is_error=True, status=status, needs=needs)
