"""Walls that stand and wait -> the same walls with the user's folders, attached when a run is handed over to them.

Run by its path with `python -I -S -X utf8`: `attacher.py SOCKET CALLER`, where SOCKET is the number of a descriptor and
CALLER tells who looks at the list of processes whose it is.

Theory of operation. Whoever mounts inside other walls has to be in their namespaces, and a program with threads cannot
go there. So this program is started once beside its caller and waits. For each request (a descriptor of a mount
namespace, and one to talk by) it forks. The copy enters, and takes off what bubblewrap has put on one place, one mount
on the other, the last first: nothing of it is to be seen inside any more, and only the copy holds it. When the run is
handed over it puts each where it belongs, and then guards and compares what the mounter would. An interpreter that
cannot do it itself is stopped when it is ready and renamed to its run (`renamer.py`). It says `.` when all is taken
off, and when all is put together, or why it could not, and ends when the caller does or lets go of the walls.
"""

import _signal  # type: ignore[import-not-found]  # no stubs; the same functions as in signal
import os
import select
import sys
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from . import mounter, renamer
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import mounter
    import renamer

    sys.path.pop()

REQUEST_BYTES = 65_536
DESCRIPTORS = 2
LENGTH_BYTES = 8
DETACH, NO_FOLLOW = 2, 8
DONE = b"."
STOP, ATTACH, BECOME = b"s", b"a", b"b"
MARK = b"SKILLKIT_RUN="
TRIES, TRY_SECONDS = 500, 0.002

umount = mounter.function("umount2")


def main() -> None:
    import socket

    number = int(sys.argv[1])
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # nobody waits for the copies
    with socket.socket(fileno=number) as caller:
        while True:
            request, numbers, *_ = socket.recv_fds(caller, REQUEST_BYTES, DESCRIPTORS)
            if not request:
                return
            if len(numbers) == DESCRIPTORS and not os.fork():  # noqa: TID251 - the copy that goes inside and ends there
                caller.close()
                _serve(request, *numbers)
            for each in numbers:
                os.close(each)


def _serve(request: bytes, mounts: int, talk: int) -> "NoReturn":
    try:
        pid, count, place, stage = request.split(b" ", 3)
        inside = _Inside(int(pid)) if int(pid) else None
        owner = ioctl(mounts, mounter.NS_GET_USERNS)
        mounter.checked(mounter.setns(owner, 0), "user namespace")
        mounter.checked(mounter.setns(mounts, 0), "mount namespace")
        os.close(mounts)
        os.close(owner)
        trees = [_taken_off(os.fsdecode(stage)) for _ in range(int(count))][::-1]
        if inside:
            inside.try_it()
        os.write(talk, DONE)
        while True:
            kind, order = _order(talk)
            if kind == STOP and inside:
                inside.stop()
            elif kind == BECOME and inside:
                inside.become(order)
            elif kind == ATTACH:
                if place:
                    mounter.checked(umount(place, DETACH | NO_FOLLOW), os.fsdecode(place))
                _put_together(trees, order)
                break
        os.write(talk, DONE)
        os.read(talk, 1)  # to end takes the processor, which the run has use for now
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing is handed over
        os.write(talk, f"{type(error).__name__}: {error}"[:400].encode(errors="backslashreplace"))
    finally:
        os._exit(0)


class _Inside:
    """The process that waits; found before its walls are entered, where it has another number."""

    def __init__(self, first: int) -> None:
        if not renamer.is_known():
            raise OSError(0, "nobody knows the registers of this processor")
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        children = os.open(f"/proc/{first}/task/{first}/children", os.O_RDONLY | os.O_CLOEXEC)
        [self._pid] = map(int, os.read(children, REQUEST_BYTES).split())
        os.close(children)
        self._folder = os.open(f"/proc/{self._pid}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._mark = next(each for each in self._shown("environ").split(b"\0") if each.startswith(MARK))
        self._stopped: renamer.Stopped | None = None

    def _shown(self, name: str) -> bytes:
        return renamer.read(self._folder, name)

    def try_it(self) -> None:
        """Where it does not work, that is known before anybody counts on it."""
        stopped = self.stop()
        stopped.rename(self._shown("cmdline"), self._shown("environ"))
        stopped.let_go()
        self._stopped = None

    def stop(self) -> "renamer.Stopped":
        for _ in range(TRIES):
            try:
                self._stopped = self._stopped or renamer.Stopped(self._pid, self._folder)
            except BlockingIOError:
                select.select((), (), (), TRY_SECONDS)
            else:
                return self._stopped
        raise OSError(0, "the process does not wait")

    def become(self, order: bytes) -> None:
        """What it has been told, and the mark of the run, which only it knows."""
        seconds, size, rest = order.split(b" ", 2)
        words, variables = rest[: int(size)], rest[int(size) :]
        *others, folder, _ = variables.split(b"\0")
        stopped = self.stop()
        stopped.rename(words, b"".join(each + b"\0" for each in (*others, self._mark, folder)))
        stopped.limit(int(seconds))
        stopped.let_go()


def _put_together(trees: "list[int]", order: bytes) -> None:
    for line in order.split(b"\0")[:-1]:
        device, inode, kind, path = line.split(b" ", 3)
        identity = (int(device), int(inode))
        if kind.startswith(b"m"):
            _attach(trees[int(kind[1:])], os.fsdecode(path), identity)
        else:
            mounter.guard(os.fsdecode(path), identity, kind)


def _taken_off(stage: str) -> int:
    """What was mounted there last, as a descriptor that alone keeps it."""
    number = mounter.open_thing(stage)
    flags = mounter.CLONE | os.O_CLOEXEC | mounter.EMPTY_PATH | mounter.RECURSIVE
    tree = mounter.checked(mounter.syscall(mounter.OPEN_TREE, number, b"", flags), stage)
    os.close(number)
    mounter.checked(umount(os.fsencode(stage), DETACH | NO_FOLLOW), stage)
    return tree


def _attach(tree: int, path: str, identity: "tuple[int, int]") -> None:
    """What was judged, where it belongs; -1 stands for anything."""
    seen = os.fstat(tree)
    if identity[0] >= 0 and (seen.st_dev, seen.st_ino) != identity:
        raise OSError(0, "is not what it was when the walls were planned", path)
    number = mounter.open_thing(path)
    flags = mounter.FROM_DESCRIPTOR | mounter.ONTO_DESCRIPTOR
    mounter.checked(mounter.syscall(mounter.MOVE_MOUNT, tree, b"", number, b"", flags), path)
    os.close(number)
    os.close(tree)


def _order(talk: int) -> "tuple[bytes, bytes]":
    """What is to be done, when somebody says so; without a word the end has come."""
    size = int.from_bytes(_exactly(talk, LENGTH_BYTES), "big")
    kind = _exactly(talk, 1)
    return kind, _exactly(talk, size - 1)


def _exactly(talk: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = os.read(talk, min(size - len(content), 1 << 20))
        if not part:
            os._exit(0)
        content += part
    return content


if __name__ == "__main__":
    main()
