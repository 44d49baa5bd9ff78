"""Where a run happens: on this machine, inside its own walls.

Theory of operation. `Here.prepare` puts up everything that has to stand before a process starts: the skill is looked
at once more and copied, the walls are told what the run may reach, and folders that it may write are looked through for
what must stay as it is. The `Place` that comes out is ready and nothing of the skill has run, so it can be refused,
recorded and left. `Place.run` starts the process, waits for its end, looks after what it made, and says what came of it
in a value, also where an interrupt or the caller's own function ended it: so the end can be put on record before
anything is raised. Leaving the place takes down what is left.

This is the seam for other places: a sandbox that is warm already, or a worker elsewhere, gives the same two steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from skillkit.core.exceptions import SkillKitError, StateUnavailableError
from skillkit.core.paths.forbidden import note_writable, require_same
from skillkit.core.run.compiled import Compiled, Job
from skillkit.core.run.guard import NOTHING_GUARDED, Guard, Guarded, Guarding, SetAside, tell_of
from skillkit.core.run.hints import Failure, hint_for
from skillkit.core.run.hosts.upstream import upstreams_in
from skillkit.core.run.hosts.way_out import WayOut
from skillkit.core.run.outcome import (
    isolation_seen,
    masked_artifacts,
    masked_exit,
    masked_names,
    masked_output,
    outcome,
)
from skillkit.core.run.process import launch
from skillkit.core.run.reach import (
    granted_paths,
    named_paths,
    opened_names,
    own_interpreters,
    reach_of,
    runs_in_place,
    writable_roots,
)
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox
from skillkit.core.run.source import held_copies, relocate, unchanged_manifest
from skillkit.core.run.tiers import (
    able_here,
    can_count_together,
    count_together,
    explain_failure,
    mounter_works,
    refuse_crowded,
    require_walls,
    sandbox_for,
)
from skillkit.core.run.warm import Around, Handover, Readiness, started_warm
from skillkit.core.run.work import WorkFolders, environment_with, open_home, told_of_home
from skillkit.core.store.homes import Home, Homes
from skillkit.core.store.snapshots import Snapshots
from skillkit.core.values.masking import NOTHING_MASKED, Masker
from skillkit.core.values.policy import Limits, ScriptPolicy
from skillkit.core.values.runs import (
    Decision,
    Isolation,
    Manifest,
    PreparedRun,
    ProcessExit,
    Ran,
    RunControl,
    ScriptCommand,
)
from skillkit.core.values.text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.run.warm.spare import Spare

__all__ = ["Here", "Place"]

NO_WALLS = Reach(skill="/", snapshot=None, work="/", interpreter=())
APART = Path("/skill")
"""Where scripts that take code from the folders above run instead of their skill's place: nothing lies above."""


class Here:
    """Runs on this machine under one policy; holds what is kept from one run to the next."""

    def __init__(
        self,
        policy: ScriptPolicy,
        state_folder: Path,
        *,
        protected: Sequence[Path] = (),
        approved: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        """`protected` are paths that no script may change; copies with `approved` digests are kept to compare with."""
        self.state_folder = state_folder
        self._policy = policy
        self._named_paths = named_paths(policy)
        self._guard = Guard(state_folder, protected)
        self.snapshots = Snapshots(state_folder, approved)
        self.compiled = Compiled(self.snapshots.folder)
        self.work_folders = WorkFolders()
        self.homes = Homes(state_folder)
        note_writable((self.homes.folder,))
        self.warm = Readiness() if policy.warm == "auto" and policy.sandbox != "off" else None
        self._chosen: Sandbox | None = None
        self.counts_together = True  # until it is tried

    def _sandbox(self) -> Sandbox:
        """Chosen once, whatever a skill was given beside; that there are none is said again at each run."""
        sandbox = self._chosen or sandbox_for(self._policy)
        if sandbox.has_walls:
            self._chosen = sandbox
        return sandbox

    def tier(self) -> str:
        """The kind of walls that a run gets."""
        return self._sandbox().tier

    def granted_paths(self, command: ScriptCommand) -> tuple[str, ...]:
        """What of the user's the arguments open, as a person is shown it."""
        return granted_paths(command, self.state_folder)

    def program_folders(self, command: ScriptCommand) -> tuple[str, ...]:
        """Where the caller's own interpreters are that a run sees beside the system's."""
        return own_interpreters(command, self.state_folder).folders

    def home_before(self, command: ScriptCommand) -> str:
        """What is in the home that the skill had before it changed; empty where there is none to keep."""
        if command.is_program or self._policy.home != "kept" or not self._sandbox().has_walls:
            return ""
        size = self.homes.from_before(command.skill_name, command.base_directory, command.digest)
        return f"{plural(size.files, 'file')}, {size.megabytes:,.1f} MB" if size else ""

    def keep_home(self, command: ScriptCommand) -> None:
        self.homes.keep(command.skill_name, command.base_directory, command.digest)

    def manifest(self, command: ScriptCommand) -> Manifest:
        """What the skill held when it was decided about."""
        return command.manifest or unchanged_manifest(command)

    def copy(self, command: ScriptCommand, held: ExitStack, manifest: Manifest | None = None) -> Path:
        """The bytes that were hashed, to be shown, mounted or run; nobody removes them while `held` is open."""
        try:
            return held.enter_context(self.snapshots.hold(command.base_directory, manifest or self.manifest(command)))
        except OSError as error:
            raise StateUnavailableError(
                f"No copy of {command.skill_name!r} can be kept in {self.snapshots.folder}: {error.strerror or error}. "
                "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error

    def prepare(
        self,
        prepared: PreparedRun,
        policy: ScriptPolicy,
        *,
        is_fresh: bool,
        keys: Mapping[str, str] | None = None,
        masker: Masker = NOTHING_MASKED,
    ) -> Place:
        """What has to stand before the process starts; `policy` is the one that holds for this skill.

        `is_fresh`: nothing came since it was decided about, so walls that mount a copy need no second look at the
        folder. `keys` are told to the script alone; `masker` knows them, and what else no agent and no record may see.
        """
        decided = prepared.command
        if decided.workspace is not None:
            require_same(decided.workspace)
        sandbox = self._sandbox()
        with ExitStack() as made:
            mounts = sandbox.shows_snapshot
            in_place = runs_in_place(prepared, policy, mounts=mounts)
            is_known = is_fresh and mounts and not decided.is_program
            manifest = (is_known and decided.manifest) or unchanged_manifest(decided, by_content=in_place)
            snapshot = None if in_place else self.copy(decided, made, manifest)
            command = decided if snapshot is None or mounts else relocate(decided, snapshot)
            guarded = self._begin_guard(command, policy, sandbox)
            guarding = None
            if guarded is not NOTHING_GUARDED:
                guarding = made.enter_context(Guarding(self._guard, guarded))
            spare = self.warm.take(decided) if self.warm else None
            work = spare.work if spare else self.work_folders.new_for(command)
            made.callback(self.work_folders.tidy, work)
            if spare:
                made.callback(spare.end)
            home = open_home(self.homes, decided, policy) if sandbox.has_walls else None
            copies = held_copies(command, self.snapshots, made) if mounts and command.grants else {}
            around = self._around(command, policy, work, snapshot if mounts else None, guarded, home, copies)
            reach, placed = around.reach, around.placed
            way_out = WayOut(reach.hosts, upstreams_in(os.environ), policy.grantable) if reach.hosts else None
            source = "folder" if snapshot is None else "mounted snapshot" if mounts else "snapshot"
            # What a run has of its own no key can replace.
            environment = {**(keys or {}), **around.environment}
            hold = partial(self.snapshots.hold, manifest=manifest) if snapshot else nullcontext
            job = Job(placed, manifest, decided.base_directory, around.sandbox, reach, hold, self.work_folders)
            confined, ready = self._confined(decided, around, environment, spare, job, made)
            return Place(
                *(self, decided, command, placed, confined, reach, policy.limits, source, work, home, guarding),
                *(way_out, masker, made.pop_all(), ready),
            )

    def _around(
        self,
        command: ScriptCommand,
        policy: ScriptPolicy,
        work: Path,
        snapshot: Path | None,
        guarded: Guarded,
        home: Home | None,
        copies: Mapping[str, str],
    ) -> Around:
        """The walls that one run gets, what they show it, and how it sees itself."""
        sandbox, reach = self._sandbox(), NO_WALLS
        if sandbox.has_walls:
            reach = reach_of(
                command,
                policy,
                work=work,
                snapshot=snapshot,
                state_folder=self.state_folder,
                home=home,
                apart=APART / command.base_directory.name if snapshot and command.searches_upwards else None,
                guarded=guarded,
                everywhere=self._guard.everywhere() if policy.allow_filesystem else (),
                named=named_paths(policy, self._named_paths),
                copies=copies,
            )
            sandbox, reach = able_here(sandbox, reach, policy)
        placed = relocate(command, Path(reach.apart)) if reach.apart else command
        return Around(sandbox, reach, placed, environment_with(placed, work, has_walls=sandbox.has_walls))

    def _confined(
        self,
        decided: ScriptCommand,
        around: Around,
        environment: Mapping[str, str],
        spare: Spare | None,
        job: Job,
        made: ExitStack,
    ) -> tuple[Confined, Handover | None]:
        """The command inside its walls, with what is compiled for it; and the spare, if it is what it would start."""
        confined = around.sandbox.confine(around.placed.argv, around.placed.cwd, environment, around.reach)
        given = confined.environment
        preface = self.compiled.preface(job, given, made)
        ready = self.warm.handover(spare, decided, around, given, preface) if self.warm and spare else None
        return preface.before(confined) if preface else confined, ready

    def review(self, prepared: PreparedRun) -> PreparedRun:
        """After a decision: what was made ready for something else, or may not run any more, is gone."""
        if self.warm and prepared.resolved is not None:
            self.warm.review(prepared.resolved, is_allowed=prepared.decision is Decision.ALLOW)
        return prepared

    def ends_soon(self) -> None:
        """This process makes one run: nothing is made ready for another."""
        self.warm = None

    def expect(self, place: Place, prepared: PreparedRun, policy: ScriptPolicy) -> None:
        """After a run that nobody was asked about: the next one may find everything ready."""
        is_allowed = prepared.decision is Decision.ALLOW and not prepared.command.is_program
        sandbox = self._sandbox()
        if self.warm and is_allowed and (mounter_works() if sandbox.shows_snapshot else sandbox.tier == "landlock"):
            ahead = partial(self._ahead, home=place.home, in_place=place.source == "folder")
            self.warm.expect(prepared.command, policy, ahead, self.work_folders.tidy)

    def _ahead(
        self, command: ScriptCommand, policy: ScriptPolicy, made: ExitStack, *, home: Home | None, in_place: bool
    ) -> tuple[Around, Path, Path]:
        """As for a run, but for what is guarded and its home, which are seen to when there is one."""
        mounts = self._sandbox().shows_snapshot
        snapshot = command.base_directory if in_place else self.copy(command, made)
        copies = held_copies(command, self.snapshots, made) if mounts else {}
        started = command if mounts or in_place else relocate(command, snapshot)
        seen = (self.work_folders.new_for(command), snapshot if mounts else None, NOTHING_GUARDED, home, copies)
        return self._around(started, policy, *seen), seen[0], snapshot

    def _begin_guard(self, command: ScriptCommand, policy: ScriptPolicy, sandbox: Sandbox) -> Guarded:
        """What inside the folders that the script may write stays as it is."""
        roots = writable_roots(command, policy, self.state_folder) if sandbox.has_walls else ()
        if not roots:
            return NOTHING_GUARDED
        try:
            has_mounts = sandbox.guards_single_files
            guarded = self._guard.begin(roots, command.timeout, has_mounts=has_mounts, opened=opened_names(command))
        except OSError as error:
            raise StateUnavailableError(
                f"What stays as it is in {', '.join(roots)} cannot be noted in {self.state_folder}: "
                f"{error.strerror or error}. Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error
        if guarded.too_much and policy.sandbox == "required":
            self._guard.end(guarded)
            refuse_crowded(guarded.too_much)
        return guarded

    def close(self) -> None:
        if self.warm:
            self.warm.close()
        self.compiled.close()
        self.work_folders.close()
        self._guard.close()


@dataclass(frozen=True, slots=True)
class Place:
    """One run's walls, ready; nothing of the skill has run yet."""

    here: Here
    decided: ScriptCommand
    """As it was decided about: on the skill's own folder."""
    command: ScriptCommand
    placed: ScriptCommand
    """The same as the script sees it: some languages run from a second place inside the walls."""
    confined: Confined
    reach: Reach
    limits: Limits
    source: str
    work: Path
    home: Home | None
    guarding: Guarding | None
    way_out: WayOut | None
    masker: Masker
    made: ExitStack
    """What goes when the place is left."""
    ready: Handover | None = None
    """What was started ahead for it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.made.close()

    def _count_together(self) -> AbstractContextManager[Confined]:
        """All processes of the run limited as one, where this machine can; that it cannot is found out once.

        Not without walls: to find out may ask the user's systemd.
        """
        if self.confined.isolation.tier == "none" or not self.here.counts_together:
            return nullcontext(self.confined)
        self.here.counts_together = can_count_together()
        return count_together(self.confined, self.limits)

    def _explain(self, ended: ProcessExit, isolation: Isolation, stdout: str, stderr: str) -> str:
        """Why it failed, in a sentence; by the skill's own folder, which is what a person can change."""
        has_network = bool(self.reach.network or self.reach.hosts or isolation.tier == "none")
        failure = Failure(self.decided, stdout, stderr, ended.timed_out, isolation.tier, has_network)
        walls = partial(explain_failure, self.reach, self.here.state_folder, self.placed.cwd, isolation.tier)
        return hint_for(failure, walls if isolation.tier != "none" else None)

    def _open_hosts(self, confined: Confined, control: RunControl) -> AbstractContextManager[Confined]:
        return nullcontext(confined) if self.way_out is None else self.way_out.around(confined, control, self.hides)

    @property
    def hides(self) -> Masker:
        """What a caller may not see: an agent no key; a person and their own program see what the script printed."""
        return self.masker if self.command.agent_facing else NOTHING_MASKED

    def run(self, control: RunControl) -> Ran:
        """Start the process, once, and say what came of it; raises nothing."""
        seen, moved = list[ProcessExit](), tuple[SetAside, ...]()
        isolation, result, problem = self.confined.isolation, None, None
        try:
            try:
                with (
                    self._count_together() as counted,
                    self._open_hosts(counted, control) as inside,
                    masked_output(self.hides, control) as heard,
                ):
                    isolation = started_warm(inside.isolation) if self.ready else inside.isolation
                    ahead = self.ready.begin(heard.is_set, seen.append, self.way_out) if self.ready else None
                    isolation = isolation if ahead else inside.isolation
                    ended = launch(self.placed, inside, heard, seen.append, ahead)
                    if inside.is_own_refusal(ended.status, ended.stderr[:100].decode("utf-8", "replace")):
                        require_walls(inside, self.placed.argv)
            finally:
                moved = masked_names(self.masker, self.guarding.end()) if self.guarding else ()
            isolation = isolation_seen(isolation, seen[-1], source=self.source)
            artifacts = masked_artifacts(self.hides, self.here.work_folders.artifacts(self.work))
            shown = masked_exit(self.hides, seen[-1])
            explain = partial(self._explain, shown, isolation)
            result = outcome(self.command, shown, isolation, artifacts, explain)
            if moved:
                result = tell_of(moved, result)
            if self.way_out is not None:
                result = self.way_out.tell(result, self.command.skill_name, self.hides)
            if self.home is not None:
                result = told_of_home(self.here.homes, self.decided, self.home, self.limits, result)
        except BaseException as error:  # noqa: BLE001 - handed over, to be raised when it is on record
            problem = error
            if self.hides and isinstance(error, SkillKitError):
                error.args = tuple(self.hides.mask_all(error.args))
            if seen:
                isolation = isolation_seen(isolation, seen[-1], source=self.source)
                result = outcome(self.command, masked_exit(self.hides, seen[-1]), isolation, ())
        return Ran(self.command, seen[-1] if seen else None, result, tuple(each.path for each in moved), problem)
