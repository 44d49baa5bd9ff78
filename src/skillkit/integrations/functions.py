"""The three tools of an agent without any framework: their schemas, and one `call` that never raises for a bad call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.references import ScriptReference
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.models.instructions import instructions_for
from skillkit.core.paths.files import Folder
from skillkit.core.resolve import CallArguments
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.questions import Approver
from skillkit.core.values.runs import OnOutput, RunControl
from skillkit.integrations.batch import Outcome, execute_batch
from skillkit.integrations.loading import file_text, skill_context
from skillkit.integrations.tool_schemas import (
    TOOLS,
    ToolSchema,
    argument_problem,
    is_for_models,
    parse_arguments,
    tool_schemas,
)
from skillkit.present.skill_context import SkillContext, envelope
from skillkit.present.tool_result import (
    SHOWN_CHARACTERS,
    ScriptToolResult,
    refusal_status,
    refusal_text,
    run_status,
    run_text,
    told_output,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.flow import Flow

__all__ = ["ScriptToolResult", "SkillFunctions", "ToolSchema"]

ENUMERATED_SKILLS = 50
ENUMERATED_SCRIPTS = 200
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

    @property
    def flow(self) -> Flow:
        return self.manager.agent_flow

    def tools(self) -> list[ToolSchema]:
        """Nothing where there are no skills: a tool without a use only costs room."""
        skills = self.skills()
        return tool_schemas(skills, self.script_paths(skills))

    def openai_tools(self) -> list[dict[str, Any]]:
        """The tools in the form that OpenAI's API takes."""
        return [tool.to_openai() for tool in self.tools()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The tools in the form that Anthropic's API takes."""
        return [tool.to_anthropic() for tool in self.tools()]

    def skills(self) -> list[SkillMetadata]:
        """Those that a model may call for."""
        found = self.manager.list_skills() if self._only is None else self._only
        return [skill for skill in found if is_for_models(skill)]

    def script_paths(self, skills: list[SkillMetadata]) -> list[str]:
        """Nothing where looking would take long, or where there are too many to choose from."""
        if len(skills) > ENUMERATED_SKILLS:
            return []
        found = {script.path.as_posix() for skill in skills for script in self.manager.load_skill(skill.name).scripts}
        found = {path for path in found if path.isprintable()}  # a name that is no UTF-8 is none for JSON either
        return sorted(found) if len(found) <= ENUMERATED_SCRIPTS else []

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
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptToolResult:
        """Whatever a model sends, it gets an answer; only what a framework raises to ask a person passes through."""
        return self._answer(name, arguments, tool_use_id, control=RunControl(cancel, None, on_output))

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        tool_use_id: str | None = None,
        *,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptToolResult:
        """As `call`, without blocking the loop; cancelling the task kills the script's tree."""
        answer = partial(self._answer, name, arguments, tool_use_id)
        return await run_in_thread(lambda control: answer(control=control._replace(cancel=cancel, on_output=on_output)))

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
        script: str,
        args: list[str] | None = None,
        input: Any = None,  # noqa: A002, ANN401 - the tool's own word; any JSON value
        **run: Any,  # noqa: ANN401 - the flow's
    ) -> ScriptToolResult:
        arguments, stdin = (None, input) if isinstance(input, str) else (input, None)
        call = self._call(script, tool_use_id, arguments=arguments, argv=tuple(args or ()), stdin=stdin)
        try:
            skill = self._skill(skill_name)
        except SkillNotFoundError as error:
            self.flow.record_unresolved(error, skill_name, call)
        result = self.flow.execute(skill, call, approver=self.approver, **run)
        text = run_text(result, self._keep_rest(told_output(result)))
        return ScriptToolResult(tool_use_id, text, not result.success, run_status(result), result)

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

    def _load_skill(
        self,
        tool_use_id: str | None,
        *,
        skill_name: str,
        run_scripts: bool | None = None,
        **run: Any,  # noqa: ANN401 - the flow's
    ) -> ScriptToolResult:
        """Always the envelope; one that says why where there is no such skill."""

        def outcomes(references: Sequence[ScriptReference]) -> Sequence[Outcome]:
            calls = [
                self._call(each.script, tool_use_id, argv=each.argv, from_instructions=True) for each in references
            ]
            return execute_batch(self.flow, skill, calls, approver=self.approver, **run)

        may_run = self.run_scripts if run_scripts is None else run_scripts
        try:
            skill = self._skill(skill_name)
            context = skill_context(
                skill,
                instructions_for(skill, session_id=self.session_id, workspace=self.manager.workspace),
                outcomes if may_run else None,
                starts_elsewhere=self.flow.policy.working_directory != "skill",
            )
        except SkillKitError as error:
            context = SkillContext(skill_name[:ECHOED_CHARACTERS], refusal_status(error), str(error))
        return ScriptToolResult(tool_use_id, envelope(context), context.status != "ok", context.status)

    def _call(self, script: str, call_id: str | None, **given: Any) -> CallArguments:  # noqa: ANN401 - what a call has
        call_id = call_id or ""
        return self.manager.call_for(script, session_id=self.session_id, agent_facing=True, call_id=call_id, **given)

    def _skill(self, name: str) -> Skill:
        """SkillNotFoundError for what is hidden from models, as if it were not there."""
        try:
            skill = self.manager.load_skill(name)
        except SkillNotFoundError:
            skill = None
        is_hidden = skill is not None and self._only is not None and skill.metadata not in self._only
        if skill is None or is_hidden or not is_for_models(skill.metadata):
            names = [each.name for each in self.skills()]
            there = f"There are: {', '.join(names)}." if names else "There are none."
            raise SkillNotFoundError(f"There is no skill {name!r}. {there}", skill_name=name, available=names)
        return skill


def _refused(
    tool_use_id: str | None, status: str, message: str, error: SkillKitError | None = None
) -> ScriptToolResult:
    told = message[:ECHOED_CHARACTERS]
    return ScriptToolResult(tool_use_id, refusal_text(status, told, error), is_error=True, status=status)
