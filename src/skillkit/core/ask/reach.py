"""A policy and the walls in force -> what a run can and cannot reach: as a value, and in plain sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from skillkit.core.paths import real_path
from skillkit.core.paths.guarded_names import sentence_of_groups
from skillkit.core.values.bounds import ANY_WORKSPACE, PREPARED, Bounds
from skillkit.core.values.names import is_never_passed
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import ReachMark
from skillkit.core.values.runs import ScriptCommand
from skillkit.core.values.skills import Workspace

__all__ = ["bounds_of", "is_blocked", "reach_marks", "wall_sentences"]

NAMED = 64  # paths in one sentence; as many as arguments can grant
NO_OTHER_FILE = "It cannot read or write any other file of yours"
# The guard keeps up to so many; how many there are is known only once it has looked.
HARD_LINKS = ", unless more than 200 of those it can write have a further name elsewhere (hard links)"
PROGRAMS = "Programs of yours count as the system's"
NO_WALLS = "No walls: it runs with your own rights."


def bounds_of(policy: ScriptPolicy, command: ScriptCommand | None, *, tier: str, is_root: bool) -> Bounds:
    """For the walls called `tier`; without a command, for any script of a skill in any workspace."""
    return Bounds(
        tier=tier,
        as_root=is_root,
        network=policy.allow_network,
        hosts=policy.allowed_hosts,
        filesystem=policy.allow_filesystem,
        argument_paths=policy.grant_argument_paths,
        workspace=ANY_WORKSPACE if command is None else real_path(command.workspace) if command.workspace else "",
        readable=tuple(map(real_path, policy.readable_paths)),
        writable=tuple(map(real_path, policy.writable_paths)),
        variables=_passed(policy),
        all_variables=policy.inherit_environment,
        working_directory=policy.working_directory,
        home=policy.home,
        interpreters=policy.allowed_interpreters,
        interpreter=command.interpreter if command else "",
        program=_program(command) if command else (),
        limits=tuple(each for each in asdict(policy.limits).items() if not each[0].startswith("warm_")),
        seconds=float(command.timeout if command else policy.timeout_seconds),
    ).with_grants(grant for grant in (command.grants if command else ()) if grant.kind in ("secret", "host"))


def _passed(policy: ScriptPolicy) -> tuple[str, ...]:
    """What a policy names and a script may get: the rest is held back whoever names it."""
    return tuple(name for name in policy.pass_environment if not is_never_passed(name))


def _program(command: ScriptCommand) -> tuple[str, str]:
    own = command.own_interpreter
    return command.argv[0] if own == command.argv[0] else PREPARED, real_path(own)


def wall_sentences(
    policy: ScriptPolicy,
    *,
    tier: str,
    skill: str,
    workspace: Workspace | str | None,
    granted: Sequence[str],
    timeout: float,
    is_root: bool,
    starts_in: Collection[str] = (),
    programs: Sequence[str] = (),
    secrets: Sequence[str] = (),
) -> tuple[str, ...]:
    """For the walls called `tier`; `granted` are paths that the arguments name.

    `starts_in` are the kinds of folder that scripts start in, `skill` or `workspace`; empty where no script is known.
    `programs` are folders of the caller's own interpreters, which count as the system's.
    """
    ending = f"After {timeout:g} seconds it is stopped, with everything it started."
    environment = tuple(_environment(policy, secrets))
    if tier == "none":
        return (NO_WALLS, *_start(starts_in), *environment, ending)
    if tier == "job":
        open_doors = "It can use the network, and read and write every file that you can."
        return (open_doors, "Its memory and its files are not limited.", *_start(starts_in), *environment, ending)
    return (
        _network(policy, tier),
        *_files(policy, skill, workspace, granted),
        *_programs(programs),
        *_start(starts_in),
        *_neighbours(tier),
        _limits(policy, tier, is_root=is_root),
        *environment,
        ending,
    )


def reach_marks(bounds: Bounds, granted: Sequence[str] = ()) -> tuple[ReachMark, ...]:
    """What the walls leave open in a few words each, for who sees one line of it; `granted` are named by arguments."""
    if bounds.tier in ("none", "job"):
        files = "all your files, no walls" if bounds.tier == "none" else "all your files"
        network, home = ReachMark("network", "any network", "wide"), ReachMark("home", "your home", "wide")
        return network, ReachMark("files", files, "wide"), _keys_mark(bounds), home
    return _network_mark(bounds), _files_mark(bounds, granted), _keys_mark(bounds), _home_mark(bounds)


def _network_mark(bounds: Bounds) -> ReachMark:
    if bounds.network:
        return ReachMark("network", "any network", "wide")
    if bounds.hosts and bounds.tier == "bubblewrap":
        return ReachMark("network", f"network: {_few(bounds.hosts)}", "open")
    return ReachMark("network", "no network", "closed")


def _files_mark(bounds: Bounds, granted: Sequence[str]) -> ReachMark:
    """Where it can write stands before what it can only read."""
    if bounds.filesystem:
        return ReachMark("files", "all your files", "wide")
    writes = [*(["the workspace"] if bounds.workspace else []), *bounds.writable]
    reads = [*bounds.readable, *(granted if bounds.argument_paths else ())]
    parts = [f"writes {_few(writes)}"] if writes else []
    parts += [f"reads {_few(reads)}"] if reads else []
    return ReachMark("files", ", ".join(parts), "open") if parts else ReachMark("files", "no files", "closed")


def _keys_mark(bounds: Bounds) -> ReachMark:
    if bounds.all_variables:
        return ReachMark("keys", "all your variables", "wide")
    names = [*bounds.secrets, *bounds.variables]
    return ReachMark("keys", f"gets {_few(names)}", "open") if names else ReachMark("keys", "no keys", "closed")


def _home_mark(bounds: Bounds) -> ReachMark:
    if bounds.filesystem:
        return ReachMark("home", "your home", "wide")
    is_kept = bounds.home == "kept"
    return ReachMark("home", "own home, kept" if is_kept else "fresh home", "open" if is_kept else "closed")


def is_blocked(wall: str, bounds: Bounds) -> bool:
    """Whether the wall that a risk names stands for good; where that is not sure, it does not."""
    if bounds.tier in ("none", "job") or (bounds.filesystem and wall in ("home", "secrets", "writes")):
        return False
    kind, _, name = wall.partition(" ")
    is_writing = bool(bounds.workspace or bounds.writable)
    stands = {
        "network": not (bounds.network or bounds.hosts),
        "home": not bounds.writable,
        "secrets": not (bounds.readable or bounds.writable),
        "writes": not is_writing,
        "programs": bounds.tier == "bubblewrap",
        "variables": not (bounds.all_variables or bounds.variables or bounds.secrets),
        "variable": not bounds.all_variables and name not in (*bounds.variables, *bounds.secrets),
    }
    return stands.get(kind, False)


def _few(paths: Sequence[object]) -> str:
    more = len(paths) - 1
    return f"{paths[0]} and {more:,} more" if more > 0 else str(paths[0])


def _network(policy: ScriptPolicy, tier: str) -> str:
    if policy.allow_network:
        return "It can use the network: it can send what it reads to anybody."
    if policy.allowed_hosts and tier == "bubblewrap":
        return f"It can reach {_listed(policy.allowed_hosts)} and send there what it reads, and no other host."
    own = " What it starts itself it can reach, on a loopback of its own." if tier == "bubblewrap" else ""
    return f"It cannot use the network.{own}"


def _files(
    policy: ScriptPolicy,
    skill: str,
    workspace: Workspace | str | None,
    granted: Sequence[str],
) -> Iterator[str]:
    if policy.allow_filesystem:
        yield f"It can read and write your files. It cannot change the skill {skill} or what skillkit keeps."
    else:
        yield f"It can read the system's programs and the skill {skill}, and change neither."
        if workspace is not None:
            yield (
                f"It can read and write the workspace {workspace}, but not change in it {sentence_of_groups()}. "
                "What it makes anew under such a name is moved away when it ends."
            )
        if policy.readable_paths:
            yield f"It can also read {_listed(policy.readable_paths)}."
        if granted and policy.grant_argument_paths:
            yield f"It can also read what the arguments name: {_listed(granted)}."
        if policy.writable_paths:
            yield f"It can also read and write {_listed(policy.writable_paths)}."
        is_writing = workspace is not None or bool(policy.writable_paths)
        yield f"{NO_OTHER_FILE}{HARD_LINKS if is_writing else ''}."
    yield "It can write to a work folder of its own."
    if policy.home == "kept" and not policy.allow_filesystem:
        sending = " It can send what it kept there." if policy.allow_network or policy.allowed_hosts else ""
        yield f"It has a home folder of its own, which is kept for its next runs.{sending}"


def _programs(folders: Sequence[str]) -> Iterator[str]:
    if folders:
        yield f"{PROGRAMS}: {_listed(folders)}."


def _start(kinds: Collection[str]) -> Iterator[str]:
    if len({*kinds}) > 1:
        yield "Some start in the workspace, others in the skill's folder."
    elif kinds:
        yield "It starts in the workspace." if "workspace" in kinds else "It starts in the skill's folder."


def _neighbours(tier: str) -> Iterator[str]:
    if tier == "landlock":
        yield "It can see the names and sizes of other files, and the command lines of other programs."
    elif tier == "seatbelt":
        yield "It can see the names and sizes of other files."


def _limits(policy: ScriptPolicy, tier: str, *, is_root: bool) -> str:
    if tier == "seatbelt":
        return "It can start programs. Their number, their memory and their files are not limited."
    limits = policy.limits
    number = "any number" if is_root else f"up to {limits.processes}"
    return (
        f"It can start programs, {number} at a time, each with up to {limits.data_megabytes:,} MB of memory, "
        f"{limits.open_files} open files and {limits.file_megabytes:,} MB a file."
    )


def _environment(policy: ScriptPolicy, secrets: Sequence[str]) -> Iterator[str]:
    named = _passed(policy)
    if policy.inherit_environment:
        yield "It gets your environment variables, secrets in them included."
    elif named:
        yield f"Of your environment variables it gets {', '.join(named)}, the language and PATH."
    elif secrets:
        yield "Of your environment variables it gets the language and PATH."
    else:
        yield "Of your environment variables it gets the language and PATH, no secrets."
    if secrets:
        yield f"It gets the {'key' if len(secrets) == 1 else 'keys'} {', '.join(secrets)}."


def _listed(paths: Sequence[object]) -> str:
    more = len(paths) - NAMED
    named = ", ".join(str(path) for path in paths[:NAMED])
    return f"{named} and {more:,} more" if more > 0 else named
