"""Rules for hosts -> the only way out of one run: a proxy that is there before its script starts and gone after it.

The walls (bubblewrap) say on one descriptor which process is inside, and wait on another before they start the script.
A thread takes the first, has a socket opened in the run's namespace, and says on the second that the script may start.
Where that fails the script starts all the same, and reaches nothing. Walls that stood before (`warm`) get their socket
when a run is handed over to them, which is after its start is on record.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillkit.core.run.hosts.proxy import Proxy
from skillkit.core.run.hosts.upstream import Upstreams
from skillkit.core.run.process.spawn import start_beside
from skillkit.core.run.sandbox.network import PORT
from skillkit.core.values.hosts import HostRule, HostUse
from skillkit.core.values.masking import NOTHING_MASKED, Masker
from skillkit.core.values.runs import NO_CONTROL, RunControl, ScriptExecutionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.run.sandbox.base import Confined

__all__ = ["WayOut", "told_of_inside"]

ANSWER_SECONDS = 10.0
NEWS_SECONDS = 0.5
INFO_BYTES = 65_536
TOLD_HOSTS = 3


class WayOut:
    """Of one run."""

    def __init__(
        self,
        hosts: Sequence[str],
        upstreams: Upstreams,
        grantable: Collection[str] = (),
        *,
        own_services: Collection[tuple[str, int]] = (),
        other_services: Collection[tuple[str, int]] = (),
    ) -> None:
        """`grantable` as in a policy; the services as for `Proxy`: no policy and no grant leads here."""
        self._is_grantable = "host" in grantable
        rules = [HostRule.from_id(each) for each in hosts]
        self._proxy = Proxy(rules, upstreams, own_services=own_services, other_services=other_services)
        self._told = self._go = -1
        self._ahead: threading.Thread | None = None
        self._is_ahead = False
        self._problem = ""

    @contextmanager
    def around(
        self, confined: Confined, control: RunControl = NO_CONTROL, hides: Masker = NOTHING_MASKED
    ) -> Iterator[Confined]:
        """The same walls with a way out, which is there as long as this is open."""
        news = _News(self._proxy, control, hides)
        self._proxy.on_host = news.hear
        self._told, info = os.pipe()
        block, self._go = os.pipe()
        thread = threading.Thread(target=self._serve, name="skillkit hosts", daemon=True)
        thread.start()
        try:
            yield confined._replace(handed=(info, block))
        finally:
            os.close(info)  # a thread that still waits for the walls waits no longer
            self._proxy.close()
            news.close()
            for each in filter(None, (thread, self._ahead)):
                each.join(ANSWER_SECONDS)
            for number in (self._told, block, self._go):
                os.close(number)

    def open_ahead(self, inside: Mapping[str, int]) -> None:
        """The way out of walls that stand already; OSError where there is none, and then others are put up."""
        listener = _DOOR.open_inside(inside["child-pid"], inside["net-namespace"])
        self._is_ahead = True
        self._ahead = threading.Thread(target=self._listen, args=(listener,), name="skillkit hosts", daemon=True)
        self._ahead.start()

    def used(self) -> tuple[HostUse, ...]:
        """What was reached and refused so far."""
        return self._proxy.used()

    def tell(self, result: ScriptExecutionResult, skill: str, hides: Masker) -> ScriptExecutionResult:
        """The result with what was reached; a host that was refused is named with what would open it.

        A script chooses the names, so that what it may not tell could stand in one.
        """
        used = tuple(_masked(use, hides) for use in self.used())
        isolation = result.isolation
        if self._problem:
            isolation = replace(isolation, degraded=(*isolation.degraded, self._problem))
        told = (result.hint, *self._remedies(used, skill))
        return replace(result, hosts=used, isolation=isolation, hint=" ".join(filter(None, told)))

    def _remedies(self, used: Sequence[HostUse], skill: str) -> Iterator[str]:
        """What would open a host that was refused, as it is typed; also where the script made do without it."""
        for use in [use for use in used if use.grant][:TOLD_HOSTS]:
            remedy = use.remedy(skill) if self._is_grantable else "add it to the policy key allowed_hosts"
            yield f"It may not reach {use.host}. If it should: {remedy}"

    def _serve(self) -> None:
        try:
            inside = told_of_inside(self._told)
            self._is_ahead = False  # other walls were put up after all
            listener = _DOOR.open_inside(inside["child-pid"], inside.get("net-namespace", 0))
        except (OSError, ValueError) as error:
            self._problem = "" if self._is_ahead else f"no host can be reached: {error}"
            listener = None
        with contextlib.suppress(OSError):  # the run is over
            os.write(self._go, b"\n")
        if listener is not None:
            self._listen(listener)

    def _listen(self, listener: socket.socket) -> None:
        with listener:
            self._proxy.serve(listener)


class _News:
    """What tells a caller of hosts while the run goes on; a run that uses none has no thread for it."""

    def __init__(self, proxy: Proxy, control: RunControl, hides: Masker) -> None:
        self._proxy, self._control, self._hides = proxy, control, hides
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def hear(self, use: HostUse) -> None:
        """Of the first use of a host, or the first refusal."""
        with self._lock:
            if self._thread is None and self._control.on_hosts and not self._is_over.is_set():
                self._thread = threading.Thread(target=self._tell, name="skillkit hosts news", daemon=True)
                self._thread.start()
        if self._control.on_host:
            self._control.on_host(_masked(use, self._hides))

    def _tell(self) -> None:
        told: tuple[HostUse, ...] = ()
        while not self._is_over.wait(NEWS_SECONDS):
            before, told = told, self._proxy.used()
            if told != before and self._control.on_hosts:
                with contextlib.suppress(Exception):  # the caller's own
                    self._control.on_hosts(told)

    def close(self) -> None:
        with self._lock:
            self._is_over.set()
        if self._thread is not None:
            self._thread.join(ANSWER_SECONDS)


def _masked(use: HostUse, hides: Masker) -> HostUse:
    return use._replace(host=hides.mask_text(use.host), refused=hides.mask_text(use.refused)) if hides else use


def told_of_inside(told: int) -> dict[str, int]:
    """The number of a process inside and those of its namespaces, from the few words that bubblewrap writes."""
    text = b""
    while b"}" not in text:  # the first of several
        piece = os.read(told, INFO_BYTES)
        if not piece:
            raise OSError("the walls were not put up")
        text += piece
    return {name: int(value) for name, value in json.loads(text[: text.index(b"}") + 1]).items()}


class _Door:
    """The helper that opens sockets inside (`door.py`): started at first use, one for this process, none for a fork."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._helper: socket.socket | None = None

    def open_inside(self, process: int, inode: int) -> socket.socket:
        with self._lock:
            if self._helper is not None:
                with contextlib.suppress(ConnectionError):  # it is gone
                    return self._asked(self._helper, process, inode)
            return self._asked(_start_helper(), process, inode)

    def _asked(self, helper: socket.socket, process: int, inode: int) -> socket.socket:
        """A helper that still owes an answer is asked no more: who asks next would take that for the answer to them."""
        self._helper = helper
        try:
            return _ask(helper, process, inode)
        except _RefusedError:
            raise
        except BaseException:
            helper.close()
            self._helper = None
            raise

    def forget(self) -> None:
        """In a fork: the helper is its parent's."""
        if self._helper is not None:
            self._helper.close()
        self._begin()


class _RefusedError(OSError):
    """The helper answered that it cannot."""


def _ask(helper: socket.socket, process: int, inode: int) -> socket.socket:
    helper.send(b"%d %d" % (process, inode))
    if not select.select([helper], [], [], ANSWER_SECONDS)[0]:
        raise ConnectionError("the program that opens the way out does not answer")
    said, numbers, *_ = socket.recv_fds(helper, 1024, 1)
    if numbers:
        return socket.socket(fileno=numbers[0])
    if not said:
        raise ConnectionError("the program that opens the way out is gone")
    raise _RefusedError(said.decode("utf-8", "replace"))


def _start_helper() -> socket.socket:
    text = Path(__file__).with_name("door.py").read_text(encoding="utf-8")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        program = (sys.executable, "-I", "-S", "-X", "utf8", "-c", text, "0", str(PORT), str(os.getpid()))
        try:
            start_beside(program, theirs.fileno())
        except BaseException:
            ours.close()
            raise
    return ours


_DOOR = _Door()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DOOR.forget)
