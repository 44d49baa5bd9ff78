"""SkillManager: what Python users hold. It finds skills, reads them, and runs their scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.index import SkillIndex, discover
from skillkit.core.find.plugins import installed_plugin_roots, plugin_roots
from skillkit.core.find.roots import PathLike, Root, agent_roots, path_list, path_roots, project_roots, system_roots
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.paths.forbidden import named_workspace
from skillkit.core.store.state import state_folder
from skillkit.core.values.policy import GUARDED, STANDARD, ScriptPolicy, require_policy, require_timeout
from skillkit.core.values.skills import Diagnostic, ScriptMetadata, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.flow import Flow
    from skillkit.core.flow.elsewhere import Runner
    from skillkit.core.resolve import CallArguments
    from skillkit.core.values.needs import Grant, Need
    from skillkit.core.values.questions import Approver, OptionAnswer
    from skillkit.core.values.runs import OnHost, OnOutput, PreparedRun, RunControl, ScriptExecutionResult

__all__ = ["SkillManager"]


class SkillManager:
    """The skills of one agent. `None` means the usual places, an empty text or list means off."""

    def __init__(
        self,
        project_skill_dir: PathLike | None = None,
        anthropic_config_dir: PathLike | None = None,
        plugin_dirs: Sequence[PathLike] | None = None,
        additional_search_paths: Sequence[PathLike] | None = None,
        default_script_timeout: float | None = None,
        *,
        policy: ScriptPolicy | None = None,
        approver: Approver | None = None,
        session_id: str | None = None,
        workspace: PathLike | Workspace | None = None,
        state_dir: PathLike | None = None,
        state: str | None = None,
        protected_paths: Sequence[PathLike] = (),
        host_folders: bool = True,
        runner: Runner | None = None,
    ) -> None:
        """A `runner` makes runs happen elsewhere; `host_folders` are more than `skills`, `.agents` and `.claude`."""
        self.policy = STANDARD if policy is None else require_policy(policy)
        # What holds where a model chooses what runs.
        self.agent_policy = GUARDED if policy is None else policy
        self.default_script_timeout = self.policy.timeout_seconds
        if default_script_timeout is not None:
            require_timeout(default_script_timeout)
            self.default_script_timeout = default_script_timeout
        self._root_problems: list[Diagnostic] = []
        has_host_folders = host_folders and anthropic_config_dir is None
        has_plugins = has_host_folders and (plugin_dirs is None or len(plugin_dirs) > 0)
        roots = [
            *project_roots(project_skill_dir, of_all_hosts=host_folders, problems=self._root_problems),
            *agent_roots(anthropic_config_dir, of_all_hosts=host_folders),
            *(system_roots(self._root_problems) if has_host_folders else ()),
            *plugin_roots(plugin_dirs, self._root_problems),
            *(installed_plugin_roots(self._root_problems) if has_plugins else ()),
            *path_roots(additional_search_paths),
        ]
        first: dict[Path, Root] = {}
        for root in roots:  # at home, a folder of the project is one of the user's too
            first.setdefault(root.path, root)
        self._roots = list(first.values())
        self.session_id = session_id or (runner.session_id if runner else None)
        self.state_dir, self.state, self.runner = state_folder(state_dir), state, runner
        self.named_workspace = self.name_workspace(workspace) if workspace else None
        self.approver = approver
        self._protected = tuple(Path(path) for path in path_list(protected_paths, "protected_paths"))
        self._lock = threading.RLock()
        self._index: SkillIndex | None = None
        self._loaded: dict[str | Path, Skill] = {}  # by the names that callers used, and by its file: no name is a Path
        self._flows: dict[int, Flow] = {}  # by id of the policy: to hash one takes as long as a rule

    @property
    def workspace(self) -> Path | None:
        """The folder the agent works in, without links."""
        return None if self.named_workspace is None else self.named_workspace.path

    @workspace.setter
    def workspace(self, named: PathLike | Workspace | None) -> None:
        self.named_workspace = None if named is None else self.name_workspace(named)

    def name_workspace(self, workspace: PathLike | Workspace) -> Workspace:
        """Bound to the folder that is there now; one that was named before stays what it is."""
        return workspace if isinstance(workspace, Workspace) else named_workspace(workspace, self.state_dir)

    @property
    def roots(self) -> tuple[Root, ...]:
        """The folders that are searched, in order of precedence."""
        return tuple(self._roots)

    def discover(self, on_progress: Callable[[int], None] | None = None) -> None:
        """Looks at every root again; skills handed out before stay as they are."""
        found = discover(self._roots, cache_folder=self.state_dir / "readings", on_progress=on_progress)
        index = SkillIndex(found.skills, [*self._root_problems, *found.diagnostics])
        with self._lock:
            self._index = index
            self._loaded.clear()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was skipped, repaired or shadowed at the last discovery."""
        return list(self._found().diagnostics)

    def list_skills(self, *, include_shadowed: bool = False) -> list[SkillMetadata]:
        """In order of precedence; a skill whose name another one has is left out unless asked for."""
        index = self._found()
        found = index.everything if include_shadowed else index.winners.values()
        return [skill.metadata for skill in found]

    def skill_places(self, *, include_shadowed: bool = False) -> dict[str, list[SkillMetadata]]:
        """As `list_skills`, by a name that opens each, with every place of a skill that lies in several as a copy."""
        index = self._found()
        distinct = [each for each in index.distinct if include_shadowed or index.winners[each[0].name] is each[0]]
        return {index.reachable_name(places[0]): [skill.metadata for skill in places] for places in distinct}

    def get_skill(self, name: str) -> SkillMetadata:
        """By name, `source:name`, or the name of its folder; SkillNotFoundError says what exists."""
        return self._found().get(name).metadata

    def load_skill(self, name: str) -> Skill:
        """The same object for the same skill until the next discovery, so that its text is read once."""
        with self._lock:
            known = self._loaded.get(name)
            if known is None:
                metadata = self.get_skill(name)
                same = self._loaded.get(metadata.skill_path)
                known = self._loaded[name] = self._loaded[metadata.skill_path] = same or Skill(metadata)
            return known

    def list_scripts(self, skill_name: str) -> list[ScriptMetadata]:
        """In the order of their paths."""
        return list(self.load_skill(skill_name).scripts)

    def needs_of(self, skill_name: str, script_name: str | None = None) -> tuple[Need, ...]:
        """What it uses beyond its folder: where that was found, whether it is there here, and what meets it."""
        skill = self.load_skill(skill_name)
        return self.flow.granting.needs_of(skill, script_name, self.flow.tier, self.workspace)

    def prepare_packages(self, skill_name: str, script_name: str | None = None, **options: Any) -> Any:  # noqa: ANN401
        """Installs what a skill needs after a person said yes; arguments and result are those of `packages.prepare`."""
        prepare: Any = import_module("skillkit.packages.prepare")  # an extra above the core, known by its name alone
        return prepare.prepare_packages(self, skill_name, script_name, **{"approver": self.approver, **options})

    def invoke_skill(self, name: str, arguments: str = "") -> str:
        """The text an agent reads, with arguments and folders filled in."""
        from skillkit.core.models.instructions import instructions_for

        skill = self.load_skill(name)
        return instructions_for(skill, arguments, session_id=self.session_id, workspace=self.workspace)

    def execute_skill_script(
        self,
        skill_name: str,
        script_name: str,
        arguments: object = None,
        timeout: float | None = None,
        *,
        argv: Sequence[str] = (),
        stdin: str | bytes | None = None,
        session_id: str | None = None,
        workspace: PathLike | Workspace | None = None,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        on_host: OnHost | None = None,
        agent_facing: bool = False,
    ) -> ScriptExecutionResult:
        """Runs one script of a skill; its failure is a result, a refusal or an impossible request is an error.

        `agent_facing` says that a model chose the arguments; such a call is GUARDED unless a policy was given.
        """
        from skillkit.core.values.runs import RunControl

        given = (script_name, arguments, timeout, argv, stdin, session_id, workspace)
        call = self.call_for(*given, agent_facing=agent_facing)
        return self._run(skill_name, call, RunControl(cancel, None, on_output, on_host))

    async def aexecute_skill_script(
        self,
        skill_name: str,
        script_name: str,
        arguments: object = None,
        timeout: float | None = None,
        *,
        argv: Sequence[str] = (),
        stdin: str | bytes | None = None,
        session_id: str | None = None,
        workspace: PathLike | Workspace | None = None,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        on_host: OnHost | None = None,
        agent_facing: bool = False,
    ) -> ScriptExecutionResult:
        """As `execute_skill_script`, without blocking the loop; cancelling the task kills the script's tree."""
        from skillkit.core.run.aio import run_in_thread

        given = (script_name, arguments, timeout, argv, stdin, session_id, workspace)
        call = self.call_for(*given, agent_facing=agent_facing)

        def run(control: RunControl) -> ScriptExecutionResult:
            return self._run(skill_name, call, control._replace(cancel=cancel, on_output=on_output, on_host=on_host))

        return await run_in_thread(run)

    def prepare_skill_script(
        self,
        skill_name: str,
        script_name: str,
        arguments: object = None,
        timeout: float | None = None,
        *,
        argv: Sequence[str] = (),
        stdin: str | bytes | None = None,
        session_id: str | None = None,
        workspace: PathLike | Workspace | None = None,
        agent_facing: bool = False,
        call_id: str = "",
    ) -> PreparedRun:
        """The first half: what would run and whether it may; `agent_facing` as for `execute_skill_script`.

        A skill or script that does not exist is a DENY with its error, which the second half records and raises.
        """
        given = (script_name, arguments, timeout, argv, stdin, session_id, workspace)
        call = self.call_for(*given, agent_facing=agent_facing, call_id=call_id)
        flow = self.flow_for(agent_facing=agent_facing)
        try:
            return flow.prepare(self.load_skill(skill_name), call)
        except SkillKitError as error:
            return flow.unresolved(error, skill_name, call)

    def complete_skill_script(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None = None,
        *,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
    ) -> ScriptExecutionResult:
        """The second half: runs and records what was prepared; an answer is good for its own question only."""
        from skillkit.core.ask.approvals import in_time
        from skillkit.core.values.runs import RunControl

        flow = self.flow_for(agent_facing=prepared.resolved is not None and prepared.resolved.agent_facing)
        return flow.complete(in_time(prepared, answer), answer, RunControl(cancel, None, on_output))

    def grant(
        self,
        skill_name: str,
        *,
        hosts: Iterable[str] = (),
        secrets: Iterable[str] = (),
        variables: Iterable[str] = (),
        read: Iterable[PathLike] = (),
        write: Iterable[PathLike] = (),
        working_directory: str | None = None,
        interpreters: Iterable[str] = (),
        private: bool = False,
        channel: str = "python",
    ) -> tuple[Grant, ...]:
        """Gives a skill, as it is now, what it may use beyond the policy; a person's word, which ends when it changes.

        `private` lets the hosts lead to private addresses. What can never be given raises ConfigurationError.
        """
        from skillkit.core.values.grants import named_grants

        names = {"hosts": hosts, "secrets": secrets, "variables": variables, "interpreters": interpreters}
        paths = {"read": map(str, read), "write": map(str, write)}
        named = named_grants(**names, **paths, working_directory=working_directory, private=private)
        return tuple(kept.grant for kept in self.flow.granting.give(self.load_skill(skill_name), named, channel))

    def grants(self, skill_name: str) -> tuple[Grant, ...]:
        """What a skill was given and has, as it is now and under this manager's policy."""
        return self.flow.granting.of(self.load_skill(skill_name)).lasting

    def revoke(self, skill_name: str, *grants: Grant) -> tuple[Grant, ...]:
        """Takes grants back, without any named all of them; gives what the skill does not have any more."""
        return tuple(kept.grant for kept in self.flow.granting.revoke(self.load_skill(skill_name), grants))

    def end_session_approvals(self, skill_name: str | None = None) -> None:
        """From now on asks again about a skill, or about all of them, that was approved for this manager's session."""
        for flow in [self.flow, *self._flows.values()]:
            flow.approvals.end_unnamed_session(skill_name)
        if self.session_id is not None:
            self.flow.approvals.standing.end_in_sessions(skill=skill_name, session_id=self.session_id)

    @property
    def flow(self) -> Flow:
        """The one way through for every surface: `prepare` decides, `complete` runs and records."""
        return self.flow_for(agent_facing=False)

    @property
    def agent_flow(self) -> Flow:
        """The way through for surfaces that face an agent."""
        return self.flow_for(agent_facing=True)

    def flow_for(self, *, agent_facing: bool) -> Flow:
        """Under the policy that was given; else what a model chose is GUARDED, what a program chose STANDARD."""
        return self.flow_under(self.agent_policy if agent_facing else self.policy)

    def flow_under(self, policy: ScriptPolicy) -> Flow:
        """The same way through under another policy, as a surface may need it."""
        with self._lock:
            flow = self._flows.get(id(policy))
            if flow is None:
                from skillkit.core.flow import Flow

                protected, approver = (*(root.path for root in self._roots), *self._protected), self.approver
                make = self.runner.flow if self.runner else Flow
                flow = make(policy, self.state_dir, state=self.state, approver=approver, protected=protected)
                self._flows[id(policy)] = flow
            return flow

    def call_for(
        self,
        script_name: str,
        arguments: object = None,
        timeout: float | None = None,
        argv: Sequence[str] = (),
        stdin: str | bytes | None = None,
        session_id: str | None = None,
        workspace: PathLike | Workspace | None = None,
        *,
        agent_facing: bool = False,
        call_id: str = "",
        from_instructions: str = "",
    ) -> CallArguments:
        """A call for a flow, with the manager's own timeout, session and workspace where the caller names none."""
        from skillkit.core.resolve import CallArguments

        if timeout is not None:
            require_timeout(timeout)
        return CallArguments(
            script_name=script_name,
            arguments=arguments,
            argv=argv,
            stdin=stdin,
            timeout=self.default_script_timeout if timeout is None else timeout,
            session_id=session_id or self.session_id,
            # A path is looked at with the rest of the call, so that a bad one is on record.
            workspace=self.named_workspace if workspace is None else workspace,
            agent_facing=agent_facing,
            call_id=call_id,
            from_instructions=from_instructions,
        )

    async def adiscover(self) -> None:
        """As `discover`, without blocking the loop."""
        import asyncio

        await asyncio.to_thread(self.discover)

    async def ainvoke_skill(self, name: str, arguments: str = "") -> str:
        """As `invoke_skill`, without blocking the loop."""
        import asyncio

        return await asyncio.to_thread(self.invoke_skill, name, arguments)

    def close(self) -> None:
        """Removes what scripts left in their work folders and lets go of the state; may be used again."""
        with self._lock:
            self._loaded.clear()
            for flow in self._flows.values():
                flow.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, skill_name: str, call: CallArguments, control: RunControl) -> ScriptExecutionResult:
        """A skill that does not exist is an attempt too, and on record."""
        flow = self.flow_for(agent_facing=call.agent_facing)
        try:
            skill = self.load_skill(skill_name)
        except SkillNotFoundError as error:
            flow.record_unresolved(error, skill_name, call)
        return flow.execute(skill, call, control)

    def _found(self) -> SkillIndex:
        with self._lock:
            if self._index is None:
                self.discover()
            assert self._index is not None  # noqa: S101 - discover sets it
            return self._index
