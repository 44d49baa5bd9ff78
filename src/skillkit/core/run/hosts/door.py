"""Numbers of processes inside walls -> listening sockets in their network namespaces, handed to the caller.

Run by its path with `python -I -S -X utf8`: `door.py SOCKET PORT CALLER`, where SOCKET is the number of a descriptor
and CALLER tells who looks at the list of processes whose it is.

Theory of operation. To open a socket in another network namespace a process has to be in it, and one with threads
cannot go there. So this program is started once beside its caller and waits. For each request (a process number, and
the inode of the namespace that is meant) it forks; the copy enters, opens the socket, sends its descriptor back, and
ends. It never opens one in its own namespace, which is the caller's. It ends when the caller does.
"""

import ctypes
import os
import socket
import sys
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

REQUEST_BYTES = 64
BACKLOG = 128
NS_GET_USERNS = 0xB701
LOOPBACK = "127.0.0.1"


def main() -> None:
    number, port, _ = map(int, sys.argv[1:])
    library = ctypes.CDLL(None, use_errno=True)
    with socket.socket(fileno=number) as caller:
        while request := caller.recv(REQUEST_BYTES):
            if not os.fork():  # noqa: TID251 - the copy that goes inside and ends there
                _answer(library, caller, request, port)
            os.wait()


def _answer(library: ctypes.CDLL, caller: socket.socket, request: bytes, port: int) -> "NoReturn":
    try:
        process, inode = map(int, request.split())
        _enter(library, process, inode)
        with socket.socket() as listener:
            listener.bind((LOOPBACK, port))
            listener.listen(BACKLOG)
            socket.send_fds(caller, [b"open"], [listener.fileno()])
    except BaseException as error:  # noqa: BLE001 - whatever it is, the run has no network
        caller.send(f"{type(error).__name__}: {error}"[:200].encode(errors="backslashreplace"))
    finally:
        os._exit(0)


def _enter(library: ctypes.CDLL, process: int, inode: int) -> None:
    """The network namespace of that process, with the rights of whoever made it."""
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    found = os.fstat(network).st_ino
    if found == os.stat("/proc/self/ns/net").st_ino or inode not in (0, found):
        raise PermissionError("the process is not inside walls of its own")
    owner = ioctl(network, NS_GET_USERNS)
    own = os.stat("/proc/self/ns/user").st_ino
    if os.fstat(owner).st_ino != own and library.setns(owner, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "user namespace")
    if library.setns(network, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "network namespace")


if __name__ == "__main__":
    main()
