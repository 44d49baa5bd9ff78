"""A command in a model's text -> what became of it, through the one flow: policy, approval, walls, limits, record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillkit.core.exceptions import ScriptNotFoundError, ScriptRefusedError, SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.policy import ScriptPolicy
from skillkit.core.resolve import CallArguments
from skillkit.core.runs import PROGRAM_OWNER
from skillkit.integrations.inline.outcomes import CommandOutcome, outcome_of_error, outcome_of_result
from skillkit.integrations.inline.syntax import Command
from skillkit.integrations.inline.words import words_of

__all__ = ["CommandRunner"]

SHORTEST_SECONDS = 1
LISTED = 10


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
        self,
        command: Command,
        *,
        refused: str = "",
        longest: float | None = None,
        wakeup_fd: int | None = None,
    ) -> CommandOutcome:
        """Never raises for what a command is or does; `refused` is a reason why this one must not run."""
        flow = self.manager.flow_under(self.policy)
        words = words_of(command.body) or ("",)
        call = self._call(words, longest)
        skill_name = PROGRAM_OWNER
        try:
            try:
                require(words[0], refused)
                skill_name, call = self._target(call)
                skill = None if skill_name == PROGRAM_OWNER else self._loaded(skill_name)
            except SkillKitError as error:
                flow.record_unresolved(error, skill_name, call)
            return outcome_of_result(command, flow.execute(skill, call, wakeup_fd=wakeup_fd))
        except SkillKitError as error:
            return outcome_of_error(command, error)

    def _call(self, words: tuple[str, ...], longest: float | None) -> CallArguments:
        self._calls += 1  # two equal commands are two questions
        timeout = self.manager.default_script_timeout
        if timeout == self.manager.policy.timeout_seconds:  # the caller gave none of its own
            timeout = self.policy.timeout_seconds
        return CallArguments(
            script_name=words[0],
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
        owners = [skill for skill in self._names() if wanted in paths_of(self.manager.load_skill(skill))]
        if len(owners) == 1:
            return owners[0]
        if owners:
            choices = [f"{owner}:{wanted}" for owner in owners]
            raise ScriptNotFoundError(
                f"{script!r} fits several skills. Write one of: {', '.join(choices)}.",
                script_name=script,
                available=choices,
            )
        known = [f"{skill}:{path}" for skill in self._names() for path in paths_of(self.manager.load_skill(skill))]
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        there = f"There are: {', '.join(known[:LISTED])}{more}." if known else "They have no scripts."
        raise ScriptNotFoundError(
            f"No loaded skill has a script {script!r}. {there}", script_name=script, available=known
        )

    def _loaded(self, name: str) -> Skill:
        skill = self.manager.load_skill(name)
        if self._skills is not None and skill.metadata not in [self.manager.get_skill(each) for each in self._skills]:
            reason = f"The skill {name!r} is not loaded here"
            raise ScriptRefusedError(f"{reason}. Loaded: {', '.join(self._skills) or 'none'}.", reasons=[reason])
        return skill

    def _names(self) -> list[str]:
        if self._skills is not None:
            return list(self._skills)
        return [metadata.name for metadata in self.manager.list_skills()]


def require(first_word: str, refused: str) -> None:
    reason = refused or ("" if first_word else "It names no script and no program")
    if reason:
        raise ScriptRefusedError(f"{reason}.", reasons=[reason])


def paths_of(skill: Skill) -> list[str]:
    return [script.path.as_posix() for script in skill.scripts]
