"""`python -m bench.soak.outside`: the network beyond this machine, as it stands behind a company's proxy.

Says its port and serves until its input ends. It is the proxy that `HTTP_PROXY` names, and the one host behind it:
`GET http://soak.example.com/WORD` is answered with the word, and a tunnel there repeats what it is sent.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading

__all__ = ["NAME"]

NAME = "soak.example.com"


def main() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        print(server.getsockname()[1], flush=True)
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        sys.stdin.read()


def serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=attend, args=(connection,), daemon=True).start()


def attend(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(1 << 16)
            if not piece:
                return
            head += piece
        method, target, _ = head.split(b"\r\n", 1)[0].split(b" ")
        if method == b"CONNECT" and target == f"{NAME}:443".encode():
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while data := connection.recv(1 << 16):
                connection.sendall(data)
        elif target.startswith(f"http://{NAME}/".encode()):
            word = target.rpartition(b"/")[2]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(word), word))
        else:
            connection.sendall(b"HTTP/1.1 502 Unknown\r\nContent-Length: 0\r\n\r\n")


if __name__ == "__main__":
    main()
