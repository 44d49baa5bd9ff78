"""A command, a policy and what is guarded -> what its run may reach, each thing by identity."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError, SandboxUnavailableError
from skillkit.core.paths import Judged, is_inside, judge, real_path
from skillkit.core.paths.forbidden import forbidden_paths, open_paths, secrets_folder
from skillkit.core.paths.guarded_names import is_guarded_name
from skillkit.core.run.guard import NOTHING_GUARDED, Guarded
from skillkit.core.run.guard.places import Place
from skillkit.core.run.sandbox.base import Reach
from skillkit.core.run.sandbox.machine import interpreter_paths, is_in_venv, masked_files
from skillkit.core.run.sandbox.network import certificates_of
from skillkit.core.store.homes import Home
from skillkit.core.store.snapshots import end_of_search
from skillkit.core.values.grants import names_of
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import Decision, PreparedRun, ScriptCommand

__all__ = [
    "OwnInterpreters",
    "granted_paths",
    "named_paths",
    "opened_names",
    "own_interpreters",
    "reach_of",
    "runs_in_place",
    "writable_roots",
]

PUT_BACK = "guarded files below the top of a writable folder are put back after the run, not kept from being changed"
NOT_LOADED = "code that would be loaded unasked was taken out of the home: {0}"
REQUIRED_ONLY = "prepared packages of Node are found by require() alone, not by import"
SEARCHED = "{0} also takes modules and settings from the folders above {1}, as far as they are readable"


def writable_roots(command: ScriptCommand, policy: ScriptPolicy, state_folder: Path) -> tuple[str, ...]:
    """Folders of the user's that the script may write, by their real paths."""
    workspace = (str(command.workspace),) if command.workspace else ()
    opened = open_paths(policy.writable_paths, state_folder, setting="writable_paths")
    return tuple(dict.fromkeys((*workspace, *(each.path for each in opened.values()))))


def reach_of(
    command: ScriptCommand,
    policy: ScriptPolicy,
    *,
    work: Path,
    snapshot: Path | None,
    state_folder: Path,
    home: Home | None = None,
    apart: Path | None = None,
    guarded: Guarded = NOTHING_GUARDED,
    everywhere: Iterable[str] = (),
    named: Mapping[Path, str] | None = None,
    copies: Mapping[str, str] | None = None,
) -> Reach:
    """Absolute, resolved paths. Protected: what is guarded, and `everywhere` where all the user's files are open.

    `named` says where the policy's paths led when it was taken up; `copies` are shown in the place of what they name.
    """
    opened = _opened(command, policy, state_folder, named_paths(policy) if named is None else named)
    in_rules = _in_rules(guarded)
    own, packages = _open_interpreters(command, state_folder), _packages(command)
    state, skill, private = os.path.realpath(state_folder), str(command.base_directory), os.path.realpath(work)
    also = [path for path in everywhere if os.path.lexists(path)] if policy.allow_filesystem else []
    pinned = _folders_above((*(each.path for each in in_rules), skill, state), opened.roots)
    kept = os.path.realpath(home.path) if home else None
    shown = (*([kept] if kept else []), *(copies or {}).values(), *packages.shown)
    return Reach(
        skill=skill,
        snapshot=str(snapshot) if snapshot else None,
        work=private,
        interpreter=own.folders,
        programs=own.programs,
        searched_first=own.searched_first,
        masked=masked_files((*own.folders, *packages.environments)),
        home=kept,
        **packages._asdict(),
        apart=str(apart) if apart else None,
        end_of_search=end_of_search(skill, state),
        workspace=opened.workspace.path if opened.workspace else None,
        protected=tuple(dict.fromkeys((*(each.path for each in in_rules), *guarded.around, *also, state))),
        links=tuple(each.path for each in in_rules if each.is_link),
        notes=(*_notes_on_guard(guarded), *_notes_on_search(command, opened, policy, apart), *_notes_on_home(home)),
        hidden=_hidden_places(state, (each.path for each in opened.all)),
        identities=_identities(own.folders, (str(snapshot or skill), private, *pinned, *shown), opened, in_rules),
        readable=tuple(dict.fromkeys(each.path for each in opened.readable)),
        copies=tuple((copies or {}).items()),
        writable=tuple(each.path for each in opened.writable),
        **_of_policy(policy),
        timeout=command.timeout,
    )


def _in_rules(guarded: Guarded) -> list[Place]:
    """What the walls keep as it is; the rest is put back after the run."""
    put_back = {each.path for each in guarded.keepsakes}
    return [each for each in guarded.places if each.path not in put_back]


class _Packages(NamedTuple):
    """Folders of packages that were prepared for the skill."""

    environments: tuple[str, ...]
    node_modules: str | None

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.environments, *([self.node_modules] if self.node_modules else []))


def _packages(command: ScriptCommand) -> _Packages:
    node = next((str(each.tree / "node_modules") for each in command.prepared if each.kind == "node"), None)
    return _Packages(tuple(str(each.tree) for each in command.prepared), node)


def _of_policy(policy: ScriptPolicy) -> dict[str, Any]:
    hosts = () if policy.allow_network else policy.allowed_hosts
    certificates = certificates_of(os.environ) if hosts else b""
    network = {"network": policy.allow_network, "hosts": hosts, "certificates": certificates}
    return {**network, "filesystem": policy.allow_filesystem, "limits": policy.limits}


def _identities(
    interpreter: Iterable[str], unmoved: Iterable[str], opened: _Opened, guarded: Iterable[Place]
) -> dict[str, tuple[int, int]]:
    """Device and inode of everything that the walls show or keep."""
    found = {path: (seen.device, seen.inode) for path in interpreter if (seen := judge(path)) is not None}
    found |= {path: _unmoved(path) for path in unmoved}
    found |= {each.path: (each.device, each.inode) for each in opened.all}
    return found | {each.path: (each.device, each.inode) for each in guarded}


class OwnInterpreters(NamedTuple):
    """What of the caller's environment stands inside like the system: folders, read-only, and names on PATH."""

    folders: tuple[str, ...]
    programs: dict[str, str]
    searched_first: tuple[str, ...]
    is_closed: bool
    """Whether the script's own is missing here, because it is, holds or lies in a closed place."""


def own_interpreters(command: ScriptCommand, state_folder: Path) -> OwnInterpreters:
    """The script's own interpreter, and those it may call, but for what lies in or holds a closed place."""
    home = os.path.expanduser("~")
    started = {command.own_interpreter, *(each.interpreter for each in command.prepared if each.kind == "python")}
    programs: dict[str, str] = {}
    first: list[str] = []
    # One program has several names.
    needed = {*started, *(each.path for each in command.own_programs)}
    paths = {program: interpreter_paths(program, home=home) for program in needed}
    places = forbidden_paths(state_folder) if any(paths.values()) else None
    closed = {path for path in paths if places and any(places.covers(real_path(each)) for each in paths[path])}
    folders = {path for program in started - closed for path in paths[program]}
    for each in command.own_programs:
        if each.path in closed:
            continue
        folders.update(paths[each.path])
        if each.is_shim and is_in_venv(each.path):
            first.append(os.path.dirname(each.path))
        elif each.is_shim:
            programs[each.name] = each.path
    outermost = [path for path in folders if not any(path != other and is_inside(path, other) for other in folders)]
    is_closed = command.own_interpreter in closed
    return OwnInterpreters(tuple(sorted(outermost)), programs, tuple(dict.fromkeys(first)), is_closed)


def _open_interpreters(command: ScriptCommand, state_folder: Path) -> OwnInterpreters:
    found = own_interpreters(command, state_folder)
    if found.is_closed:
        raise SandboxUnavailableError.because(
            f"{command.own_interpreter} is, holds or lies in a place that no script may see",
            "Put an interpreter that lies elsewhere first on PATH.",
            missing=("files",),
        )
    return found


class _Opened(NamedTuple):
    """What of the user's a run may use, as it was when it was looked at."""

    workspace: Judged | None
    readable: tuple[Judged, ...]
    writable: tuple[Judged, ...]
    roots: tuple[str, ...]
    """Folders that scripts may write."""

    @property
    def all(self) -> tuple[Judged, ...]:
        return (*self.readable, *self.writable, *([self.workspace] if self.workspace else []))


def _opened(command: ScriptCommand, policy: ScriptPolicy, state: Path, named: Mapping[Path, str]) -> _Opened:
    granted = _judged_grants(command, state) if policy.grant_argument_paths else ()
    named_folder = command.workspace  # what was named, never what stands in its place by now
    workspace = None if named_folder is None else Judged(str(named_folder), named_folder.device, named_folder.inode)
    roots = (*([workspace.path] if workspace else []), *(named[path] for path in policy.writable_paths))
    readable = _judged_paths("readable_paths", policy, named, state)
    return _Opened(workspace, (*readable, *granted), _judged_paths("writable_paths", policy, named, state), roots)


def _notes_on_guard(guarded: Guarded) -> list[str]:
    return [*guarded.notes, *([PUT_BACK] if guarded.keepsakes else [])]


def _notes_on_search(command: ScriptCommand, opened: _Opened, policy: ScriptPolicy, apart: Path | None) -> list[str]:
    """Without mounts a skill lies below other folders; where scripts may write there, no such language runs."""
    skill = str(command.base_directory)
    if apart is not None:
        return []
    alone = [REQUIRED_ONLY] if any(each.kind == "node" for each in command.prepared) else []
    if not command.searches_upwards:
        return alone
    planted = [root for root in opened.roots if is_inside(skill, root)]
    if planted:
        raise SandboxUnavailableError.because(
            f"{command.interpreter} looks for code in the folders above {skill}, and scripts may write {planted[0]}",
            "Name a state folder elsewhere (SKILLKIT_STATE_DIR), or install bubblewrap.",
            missing=("files",),
        )
    is_readable = policy.allow_filesystem or any(is_inside(skill, each.path) for each in opened.readable)
    return [*alone, *([SEARCHED.format(command.interpreter, skill)] if is_readable else [])]


def _notes_on_home(home: Home | None) -> list[str]:
    return [NOT_LOADED.format(", ".join(f"~/{each}" for each in home.set_aside))] if home and home.set_aside else []


def _hidden_places(state: str, granted: Iterable[str]) -> tuple[str, ...]:
    """The world's state: its page's token would let a script answer for the person. Not where it was itself granted.

    And the keys of skills, which are closed wherever they lie.
    """
    secrets = secrets_folder()
    keys = (os.path.realpath(secrets),) if secrets else ()
    return keys if any(is_inside(path, state) for path in granted) else (state, *keys)


def _folders_above(paths: Iterable[str], roots: Sequence[str]) -> list[str]:
    """What lies between one of `paths` and a folder that scripts may write: it is mounted with them."""
    there = [path for path in paths if os.path.lexists(path)]
    return sorted({folder for path in there for root in roots for folder in _between(path, root)})


def _between(path: str, root: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder != root and is_inside(folder, root):
        yield folder
        folder = os.path.dirname(folder)


def _unmoved(path: str) -> tuple[int, int]:
    """What tells this thing from another in its place; its path is real, so one that leads elsewhere was replaced."""
    found = judge(path)
    if found is None or found.path != path:
        raise SandboxUnavailableError.because(
            f"{path} was replaced or removed while the walls were planned; nothing was run",
            f"Look who changes {path}, and try again.",
            missing=("files",),
        )
    return found.device, found.inode


def granted_paths(command: ScriptCommand, state_folder: Path) -> tuple[str, ...]:
    """As they are shown to a person."""
    return tuple(each.path for each in _judged_grants(command, state_folder))


def _judged_grants(command: ScriptCommand, state_folder: Path) -> tuple[Judged, ...]:
    """The argument that a person saw is the permission: a path where a link stands by now was not the one they saw.

    Each is opened once and judged by that; the walls show this thing or nothing.
    """
    named = [path for path in command.argument_paths if path not in command.closed_paths]
    if not named:
        return ()
    places = forbidden_paths(state_folder)
    found = [(path, judged) for path in named if (judged := judge(path)) is not None]
    return tuple(judged for path, judged in found if judged.path == path and not places.covers(path))


def named_paths(policy: ScriptPolicy, before: Mapping[Path, str] | None = None) -> dict[Path, str]:
    """Where the paths of a policy led when it was taken up; what came to it since was granted by its real path."""
    named = (*policy.readable_paths, *policy.writable_paths)
    if before is None:
        return {path: real_path(path) for path in named}
    return {path: before.get(path, str(path)) for path in named}


def _judged_paths(
    setting: str, policy: ScriptPolicy, named: Mapping[Path, str], state_folder: Path
) -> tuple[Judged, ...]:
    """Those of a policy's paths that exist; the script sees that the others are missing either way.

    `named` says where they led when the policy was taken up: what leads elsewhere by now, a script may have led there.
    """
    opened = open_paths(getattr(policy, setting), state_folder, setting=setting)
    for path, judged in opened.items():
        before = named.get(path, judged.path)
        if judged.path != before:
            raise ConfigurationError(
                f"{setting}: {path} led to {before} when the policy was taken up, and leads to {judged.path} now; a "
                f"script can have done that. If you want what it leads to, name that, and start anew."
            )
    return tuple(opened.values())


def opened_names(command: ScriptCommand) -> tuple[str, ...]:
    """Guarded names that a person gave the skill to write, each for itself and with a warning."""
    written = names_of("write", command.grants)
    return tuple(path for path in written if is_guarded_name(os.path.basename(path)))


def runs_in_place(prepared: PreparedRun, policy: ScriptPolicy, *, mounts: bool) -> bool:
    """Whether the folder itself runs: what a person approved never is, since others can write to it."""
    by_a_person = prepared.decision is Decision.ASK or prepared.channel is not None
    is_searching = policy.sandbox != "off" and prepared.command.searches_upwards
    return not (mounts or by_a_person or is_searching or policy.approval != "never")
