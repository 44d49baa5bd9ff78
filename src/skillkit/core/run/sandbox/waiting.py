"""What a run may reach -> walls that are put up ahead of it, with nothing of the user's and the skill's in them yet.

Theory of operation. Bubblewrap mounts early what the interpreter needs to start: the system, the interpreter, prepared
packages, an empty work folder. Everything else is late: skill, workspace, home and what was granted. It mounts that
too, each in the same way as for a run that starts at once, but one on the other in the place of the work folder, from
where the attacher takes it off again (`attacher.py`) before the interpreter starts. So until a run is handed over there
is no script that could start, whatever the interpreter does. What cannot be split like this has no walls ahead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skillkit.core.paths import is_inside
from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import Confined, Reach, descriptor
from skillkit.core.run.sandbox.bubblewrap import (
    CLOSED,
    NAMESPACES,
    REFUSALS,
    WITH_THREAD,
    BubblewrapSandbox,
    closing_words,
    mounter_lines,
    option_for,
)
from skillkit.core.run.sandbox.landlock import LandlockSandbox
from skillkit.core.run.sandbox.machine import Mount, Mounts, mounts_for
from skillkit.core.values.runs import Isolation

__all__ = ["Hook", "Waiting", "attaching", "limits_ahead", "walls_ahead"]

ANYTHING = (-1, -1)


class Hook(NamedTuple):
    """How an interpreter is made to wait: what it reads, and words of a shell that start it so."""

    content: bytes
    text: str
    """Gets the numbers of descriptors: the content's, to go on by, to answer by, to be told by."""
    shell: tuple[str, ...] = ()
    """Of the interpreter's own kind, already within the limits of the run; else a plain one, before they are set."""
    place: str = ""
    """Where the content stands, over what is there, until a run is handed over; else it comes as a descriptor."""
    variables: tuple[tuple[str, str | int], ...] = ()
    """What the interpreter is started with instead of by a shell; a number means that of the descriptors."""
    is_renamed: bool = False
    """Whether the command line and processor time of the run have to be set from outside."""


class Waiting(NamedTuple):
    """Walls to be put up ahead, and what is attached to them late; two that are equal are the same walls."""

    confined: Confined
    """Its `handed` are for the caller to fill: where bubblewrap says who is inside, then those of the hook."""
    late: tuple[Mount, ...]
    stage: str
    hook: Hook
    identities: tuple[tuple[str, tuple[int, int]], ...]
    is_put_together: bool = True
    """Whether something is attached late at all; walls without mounts are whole from the beginning."""


def walls_ahead(
    sandbox: BubblewrapSandbox, argv: tuple[str, ...], environment: Mapping[str, str], reach: Reach, hook: Hook
) -> Waiting | None:
    """None where a run has to put up its walls itself."""
    if reach.network or reach.filesystem:
        return None
    mounts = mounts_for(reach, sandbox.machine)
    early = [mount for mount in (*mounts.grants, *mounts.covers) if not _is_late(mount, reach)]
    late = _staged(mounts, reach)
    if not _can_wait(early, late, reach):
        return None
    unix_sockets = sandbox.may_have_unix_sockets(reach)
    program = seccomp.program(network=False, unix_sockets=unix_sockets, loopback=True)
    own_files = sandbox.own_files(reach)
    contents = (program, *own_files.values(), hook.content)
    first = len(contents)
    hooked = [descriptor(first - 1), *(descriptor(number) for number in range(first + 1, first + 4))]
    limits = [word for word in sandbox.limit_words(reach) if not word.startswith("--cpu=")]
    confined = Confined(
        argv=(
            *(sandbox.program, "--info-fd", descriptor(first), *NAMESPACES),
            *(WITH_THREAD if sandbox.dies_with_thread else ()),
            *(*sandbox.identity_words(reach), *sandbox.root_words(reach, own_files), *_options(early), *_folders(late)),
            *(*_stage(late, reach.work), *_shown(hook, hooked), *CLOSED, "--chdir", "/", "--seccomp", descriptor(0)),
            *("--", *_started(hook, hooked, limits), *argv),
        ),
        cwd="/",
        environment=sandbox.inner_environment(environment, reach),
        contents=contents,
        isolation=Isolation(tier=sandbox.tier),
        refusals=REFUSALS,
    )
    sources = {mount.source for mount in (*early, *late)}
    judged = tuple(sorted((path, seen) for path, seen in reach.identities.items() if path in sources))
    return Waiting(confined, tuple(late), reach.work, hook, judged)


def limits_ahead(
    sandbox: LandlockSandbox, argv: tuple[str, ...], environment: Mapping[str, str], reach: Reach, hook: Hook
) -> Waiting | None:
    """Walls without mounts, whole from the beginning but for processor time; None where a run has to put them up.

    What they open cannot be opened later, so nothing of the user's may be in it: neither workspace nor granted paths.
    """
    if reach.network or reach.hosts or reach.opens_folders:
        return None
    confined = sandbox.confine(argv, "/", environment, reach)
    instructions, program = confined.contents
    told = json.loads(instructions)
    del told["limits"]["RLIMIT_CPU"]
    words = list(confined.argv)
    end = words.index("--")
    words[end:end] = [descriptor(number) for number in (2, 3, 4)]
    contents = (json.dumps(told).encode(), program, hook.content)
    ahead = confined._replace(argv=tuple(words), contents=contents, isolation=Isolation(tier=sandbox.tier))
    judged = tuple(sorted(reach.identities.items()))
    return Waiting(ahead, (), reach.work, hook, judged, is_put_together=False)


def _shown(hook: Hook, descriptors: Sequence[str]) -> list[str]:
    told = ((name, descriptors[each] if isinstance(each, int) else each) for name, each in hook.variables)
    words = [word for name, value in told for word in ("--setenv", name, value)]
    return [*words, *(("--ro-bind-data", descriptors[0], hook.place) if hook.place else ())]


def _started(hook: Hook, descriptors: Sequence[str], limits: Sequence[str]) -> tuple[str, ...]:
    if hook.variables:
        return tuple(limits)
    words = ("-c", hook.text, "skillkit-walls", *descriptors)
    return (*limits, *hook.shell, *words) if hook.shell else ("/bin/sh", *words, *limits)


def attaching(sandbox: BubblewrapSandbox, waiting: Waiting, reach: Reach) -> bytes:
    """What the attacher is told for one run: what goes where, then all that the mounter guards and compares."""
    mounts = mounts_for(reach, sandbox.machine)
    lines = []
    for mount in (*mounts.grants, *mounts.covers):
        if not _is_late(mount, reach):
            continue
        if _is_pin(mount, reach):
            lines.append(_line("w", mount.target, ANYTHING))
        else:
            number = waiting.late.index(mount)
            lines.append(_line(f"m{number}", mount.target, reach.identities.get(mount.source, ANYTHING)))
    return b"".join(lines) + mounter_lines(mounts, reach)


def _line(kind: str, path: str, identity: tuple[int, int]) -> bytes:
    return b"%d %d %s %s\0" % (*identity, kind.encode(), os.fsencode(path))


def _is_late(mount: Mount, reach: Reach) -> bool:
    early = (*reach.interpreter, *reach.environments, reach.work)
    return not (mount.source == mount.target in early or mount.source == os.devnull)


def _is_pin(mount: Mount, reach: Reach) -> bool:
    """A folder of the user's that is mounted on itself inside another one of theirs, so that nobody renames it."""
    opened = (reach.workspace, *reach.writable)
    return mount.writable and mount.source == mount.target and mount.target not in opened


def _staged(mounts: Mounts, reach: Reach) -> list[Mount]:
    return [each for each in (*mounts.grants, *mounts.covers) if _is_late(each, reach) and not _is_pin(each, reach)]


def _can_wait(early: Sequence[Mount], late: Sequence[Mount], reach: Reach) -> bool:
    """Whether nothing early lies in a late place, or in what covers a place, and all that is late is a folder."""
    shown = {mount.target for mount in early}
    emptied = [mount.target for mount in late if not mount.source]
    return (
        all(path in shown for path in (*reach.interpreter, *reach.environments, reach.work))
        and not any(is_inside(path, mount.target) for path in shown for mount in late)
        and not any(is_inside(mount.target, path) for mount in late for path in emptied if mount.target != path)
        and all(os.path.isdir(mount.source) for mount in late if mount.source)
    )


def _options(mounts: Sequence[Mount]) -> list[str]:
    return [word for mount in mounts for word in option_for(mount)]


def _folders(late: Sequence[Mount]) -> list[str]:
    """Where the late ones will stand; what lies inside another one is there with it."""
    targets = [mount.target for mount in late]
    outer = [each for each in targets if not any(each != other and is_inside(each, other) for other in targets)]
    return [word for target in dict.fromkeys(outer) for word in ("--dir", target)]


def _stage(late: Sequence[Mount], place: str) -> list[str]:
    """One on the other; what covers something is closed at once, since nothing is mounted in it."""
    staged = [mount._replace(target=place) for mount in late]
    return [word for mount in staged for word in (*option_for(mount), *closing_words(Mounts((), (), (mount,))))]
