"""A command in a model's text -> what became of it, through the one flow: policy, approval, walls, limits, record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skillkit.core.exceptions import (
    AuditUnavailableError,
    ScriptNotFoundError,
    ScriptRefusedError,
    SkillKitError,
)
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.shell import split_words
from skillkit.core.resolve import CallArguments
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import NO_CONTROL, PROGRAM_OWNER, RunControl, ScriptExecutionResult
from skillkit.core.values.text import visible
from skillkit.integrations.inline.syntax import Command
from skillkit.present.terminal import cut
from skillkit.present.tool_result import (
    ASK_A_PERSON,
    MISSING_FOR_COMMANDS,
    STATUS_WORDS,
    RefusalStatus,
    both_streams,
    cause_text,
    refusal_status,
    refused_needs,
    run_status,
    written_stderr,
)

__all__ = ["CommandOutcome", "CommandRunner", "Status"]

Status = Literal["ok", "failed", "timeout", "needs_packages", "cancelled"] | RefusalStatus

SHORTEST_SECONDS = 1
LISTED = 10
NAME_COLUMNS = 80
LINE_COLUMNS = 300


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """`detail` says why, where there is a why; `output` is what goes back to the model."""

    command: Command
    status: Status
    detail: str = ""
    result: ScriptExecutionResult | None = None

    @property
    def output(self) -> str:
        """What it wrote; of a failure both streams and the cause, of one that did not run the reason."""
        if self.result is None:
            return self.detail
        if self.status == "ok":
            return self.result.stdout
        said, why = both_streams(self.result), cause_text(self.result)
        return f"{said.rstrip()}\n\n{why}".lstrip() if why else said

    @property
    def data(self) -> dict[str, Any]:
        """As a program reads it: the command as the model wrote it, whole."""
        told = {"kind": self.command.kind, "written": self.command.body}
        return told | ({} if self.result is None else {"seconds": round(self.result.execution_time_ms / 1000, 3)})

    @property
    def line(self) -> str:
        """For a person, on one line, without anything that a terminal would obey."""
        name = cut(visible(self.command.body), NAME_COLUMNS)
        return cut(visible(f"[{name}: {self._said()}]"), LINE_COLUMNS)

    def _said(self) -> str:
        if self.result is None:
            return f"{STATUS_WORDS.get(self.status, self.status)}: {self.detail}" if self.detail else self.status
        seconds = f"{self.result.execution_time_ms / 1000:.1f} s"
        if self.status in ("ok", "cancelled"):
            return f"{'done' if self.status == 'ok' else 'cancelled'}, {seconds}"
        if self.status == "timeout":
            return f"stopped after {seconds}, its time was over"
        why = f"killed by {self.result.signal}" if self.result.signal else f"exit code {self.result.exit_code}"
        last = self.detail or written_stderr(self.result).strip().rpartition("\n")[2]
        return f"failed, {why}" + (f": {last}" if last else "")


class CommandRunner:
    """Runs commands of one session; `skills` are those that the model has loaded, all of the manager's if None."""

    def __init__(
        self,
        manager: SkillManager,
        policy: ScriptPolicy | None = None,
        session_id: str | None = None,
        *,
        skills: Sequence[str] | None = None,
        workspace: str | Path | None = None,
    ) -> None:
        self.manager = manager
        self.policy = manager.agent_policy if policy is None else policy
        self.session_id = session_id or manager.session_id
        self.workspace = manager.named_workspace if workspace is None else manager.name_workspace(workspace)
        self._skills = None if skills is None else tuple(skills)
        for name in self._skills or ():
            manager.get_skill(name)  # one that does not exist is the caller's error, not the model's
        self._calls = 0

    def run(
        self, command: Command, *, refused: str = "", longest: float | None = None, control: RunControl = NO_CONTROL
    ) -> CommandOutcome:
        """Never raises for what a command is or does; `refused` is a reason why this one must not run."""
        try:
            result = self._result(
                tuple(split_words(command.body, keeps_braces=True) or ("",)), refused, longest, control
            )
        except AuditUnavailableError as error:
            ran = error.result if isinstance(error.result, ScriptExecutionResult) else None
            return CommandOutcome(command, "failed" if ran is not None else "refused", str(error), ran)
        except SkillKitError as error:
            asks = f" {ASK_A_PERSON}" if refused_needs(error) else ""
            return CommandOutcome(command, refusal_status(error, MISSING_FOR_COMMANDS), f"{error}{asks}")
        return CommandOutcome(command, "cancelled" if result.cancelled else run_status(result), result.hint, result)

    def _result(
        self, words: tuple[str, ...], refused: str, longest: float | None, control: RunControl
    ) -> ScriptExecutionResult:
        flow = self.manager.flow_under(self.policy)
        call = self._call(words, longest)
        skill_name = PROGRAM_OWNER
        try:
            if reason := refused or ("" if words[0] else "It names no script and no program"):
                raise ScriptRefusedError.because(reason)
            skill_name, call = self._target(call)
            skill = None if skill_name == PROGRAM_OWNER else self._load(skill_name)
        except SkillKitError as error:
            flow.record_unresolved(error, skill_name, call)
        return flow.execute(skill, call, control)

    def _call(self, words: tuple[str, ...], longest: float | None) -> CallArguments:
        self._calls += 1  # two equal commands are two questions
        timeout = self.manager.default_script_timeout
        if timeout == self.manager.policy.timeout_seconds:  # the caller gave none of its own
            timeout = self.policy.timeout_seconds
        return self.manager.call_for(
            words[0],
            argv=words[1:],
            timeout=timeout if longest is None else max(min(timeout, longest), SHORTEST_SECONDS),
            session_id=self.session_id,
            workspace=self.workspace,
            agent_facing=True,
            call_id=f"inline-{self._calls}",
        )

    def _target(self, call: CallArguments) -> tuple[str, CallArguments]:
        """`skill:scripts/x`, `scripts/x` of the one skill that has it, or a program."""
        head, slash, tail = call.script_name.partition("/")
        if not slash:
            return PROGRAM_OWNER, call
        skill, colon, first = head.rpartition(":")
        if not colon:
            return self._owner(call.script_name), call
        return skill, call._replace(script_name=f"{first}/{tail}")

    def _owner(self, script: str) -> str:
        wanted = script.removeprefix("./")
        names = [metadata.name for metadata in self.manager.list_skills()] if self._skills is None else self._skills
        known = [(name, each.path.as_posix()) for name in names for each in self.manager.load_skill(name).scripts]
        owners = [name for name, path in known if path == wanted]
        if len(owners) == 1:
            return owners[0]
        choices = [f"{name}:{path}" for name, path in known if not owners or path == wanted]
        if owners:
            message = f"{script!r} fits several skills. Write one of: {', '.join(choices)}."
        else:
            more = f" and {len(choices) - LISTED} more" if len(choices) > LISTED else ""
            there = f"There are: {', '.join(choices[:LISTED])}{more}." if choices else "They have no scripts."
            message = f"No loaded skill has a script {script!r}. {there}"
        raise ScriptNotFoundError(message, script_name=script, available=choices)

    def _load(self, name: str) -> Skill:
        skill = self.manager.load_skill(name)
        if self._skills is not None and skill.metadata not in [self.manager.get_skill(each) for each in self._skills]:
            loaded = f"Loaded: {', '.join(self._skills) or 'none'}."
            raise ScriptRefusedError.because(f"The skill {name!r} is not loaded here", loaded)
        return skill
