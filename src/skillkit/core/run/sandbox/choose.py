"""This machine -> the strongest walls that work here, proven by a run through all of them."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import is_roots
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.run.own_programs import own_path
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox

__all__ = ["Attempt", "Choice", "this_machines", "trusted_program"]

Run = Callable[[Confined], tuple[int, str]]
"""Runs a command to its end: its status and what it wrote to stderr. OSError when it cannot start."""

TRUSTED_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
# These pass. To take weaker walls because of them would let whoever exhausts a resource switch the walls off.
TRANSIENT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)
LASTING = (errno.EPERM, errno.EACCES, errno.ENOSPC, errno.ENOENT, errno.ENOSYS, errno.EINVAL)
COMMAND_NOT_FOUND = 127
TRUE = "/bin/true"
NOTHING = (TRUE,) if sys.platform != "win32" else (sys.executable, "-I", "-S", "-c", "")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One kind of walls: there, or why it is not."""

    tier: str
    sandbox: Sandbox | None
    reason: str = ""


class Choice:
    """What was tried so far, each kind once; a transient error is raised and not remembered."""

    def __init__(self, makers: Mapping[str, Callable[[], Sandbox]]) -> None:
        self._makers = makers
        self._attempts: dict[str, Attempt] = {}
        self._lock = threading.Lock()

    def strongest(self, run: Run) -> Sandbox | None:
        """The first kind that works; None when none does."""
        return next((each.sandbox for name in self._makers if (each := self._attempt(name, run)).sandbox), None)

    def attempts(self, run: Run) -> tuple[Attempt, ...]:
        """Every kind, strongest first, for a report on this machine."""
        return tuple(self._attempt(name, run) for name in self._makers)

    def _attempt(self, name: str, run: Run) -> Attempt:
        with self._lock:
            if name not in self._attempts:
                self._attempts[name] = _attempt(name, self._makers[name], run)
            return self._attempts[name]


def _attempt(tier: str, make: Callable[[], Sandbox], run: Run) -> Attempt:
    try:
        sandbox = make()
        status, stderr = _probe(sandbox, run)
    except SandboxUnavailableError as error:
        return Attempt(tier, None, str(error))
    except OSError as error:
        if error.errno not in LASTING:
            raise
        return Attempt(tier, None, error.strerror or str(error))
    if status == 0:
        return Attempt(tier, sandbox)
    _refuse_transient(tier, status, stderr)
    return Attempt(tier, None, stderr.strip())


def _probe(sandbox: Sandbox, run: Run) -> tuple[int, str]:
    """Run nothing, through everything."""
    with temporary_folder("probe") as folder:
        skill, work = os.path.join(os.path.realpath(folder), "skill"), os.path.join(os.path.realpath(folder), "work")
        os.mkdir(skill)
        os.mkdir(work)
        # What a kind of walls cannot limit at all is for the policy to find out, not for the probe.
        is_open = not sandbox.limits_reach
        reach = Reach(skill=skill, snapshot=None, work=work, interpreter=(), network=is_open, filesystem=is_open)
        return run(sandbox.confine(NOTHING, skill, {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, reach))


def _refuse_transient(tier: str, status: int, stderr: str) -> None:
    """A failure counts as lasting only when it says why; anything else may be gone the next time."""
    passing = next((number for number in TRANSIENT if os.strerror(number) in stderr), None)
    if passing is not None:
        raise OSError(passing, f"{os.strerror(passing)}; {tier} could not be tried: {stderr.strip()}")
    is_refusal = 0 < status <= COMMAND_NOT_FOUND and bool(stderr.strip())
    if not is_refusal:
        why = f"The {tier} walls ended with status {status} and said {stderr.strip() or 'nothing'!r}."
        raise SandboxUnavailableError(
            f"{why} Nothing was run without them; try again.", missing=(tier,), remedy="Try again."
        )


def trusted_program(name: str, path: str | None = None) -> str | None:
    """`name` in a folder that only root can change; never in the current folder or one that a skill could write."""
    entries = (own_path() if path is None else path).split(os.pathsep)
    for folder in (*TRUSTED_FOLDERS, *(each for each in entries if os.path.isabs(each) and is_roots(each))):
        candidate = os.path.join(folder, name)
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate) and is_roots(os.path.realpath(candidate)):
            return candidate
    return None


def _bubblewrap() -> Sandbox:
    from skillkit.core.run.sandbox.bubblewrap import MOUNTER, SCOPER, BubblewrapSandbox
    from skillkit.core.run.sandbox.landlock import SCOPES_ABI, abi
    from skillkit.core.run.sandbox.machine import this_machine

    program, prlimit = _required("bwrap", "bubblewrap"), _required("prlimit", "util-linux")
    # A setuid bwrap refuses to disable user namespaces; the system call filter forbids them anyway.
    is_setuid = bool(os.stat(program).st_mode & stat.S_ISUID)
    # A run is started and attended by one thread, so the kernel may end it with that thread.
    has_scopes = abi() >= SCOPES_ABI and not is_setuid  # whose privileges the scope would take
    return BubblewrapSandbox(
        program,
        prlimit,
        this_machine(),
        stat=_required("stat", "coreutils"),
        mounter=(sys.executable, "-I", "-S", "-X", "utf8", MOUNTER),
        scoper=(sys.executable, "-I", "-S", "-X", "utf8", SCOPER) if has_scopes else (),
        has_disable_userns=not is_setuid,
        # Distributions bring some of a later version's options, so that its number says little; its help text is in it.
        has_bind_fd=b"--ro-bind-fd" in Path(program).read_bytes(),
        dies_with_thread=True,
    )


def _required(name: str, package: str) -> str:
    program = trusted_program(name)
    if program is None:
        remedy = f"Install it: sudo apt-get install {package}"
        raise SandboxUnavailableError.because(f"{name} is not installed", remedy, missing=(name,))
    return program


def _landlock() -> Sandbox:
    from skillkit.core.run.sandbox.landlock import LandlockSandbox

    return LandlockSandbox(sys.executable)


def _seatbelt() -> Sandbox:
    from skillkit.core.run.sandbox.other_systems import SeatbeltSandbox

    return SeatbeltSandbox()


def _windows() -> Sandbox:
    from skillkit.core.run.sandbox.other_systems import WindowsSandbox

    return WindowsSandbox()


MAKERS: dict[str, dict[str, Callable[[], Sandbox]]] = {
    "linux": {"bubblewrap": _bubblewrap, "landlock": _landlock},
    "darwin": {"seatbelt": _seatbelt},
    "win32": {"job": _windows},
}
this_machines = Choice(MAKERS.get(sys.platform, {}))
"""Tried once a process."""
