"""What a client says to a proxy -> which host it wants, and what may be sent there on its behalf.

Two forms are understood: `CONNECT name:port`, after which bytes pass as they are, and a plain request with a whole
address (`GET http://name/path`). Of a plain one exactly the one request goes on, rewritten: its `Host` is the host that
was judged, and the connection ends with the answer, so that no second request can hide behind the first.
Whatever could be read in two ways is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from skillkit.core.values.hosts import host_name

__all__ = ["HEAD_BYTES", "Body", "Request", "RequestError", "parse_request"]

HEAD_BYTES = 65_536
LINE_BYTES = 4_096
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIRST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\%]+)(?::([0-9]{1,5}))?")
_ADDRESS = re.compile(rb"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_TEXT = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
# About one connection only, or about the proxy: not for the host.
_HOP = frozenset(
    b"connection keep-alive proxy-connection proxy-authorization proxy-authenticate te trailer upgrade host".split()
)


class RequestError(Exception):
    """What the client sent is no request that can be passed on; `status` is what it is told."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Request(NamedTuple):
    """One host that is wanted; without a method it is a tunnel."""

    name: str
    port: int
    method: bytes = b""
    path: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    length: int | None = 0
    """Of the body in bytes; None when it comes in chunks."""

    @property
    def is_tunnel(self) -> bool:
        return not self.method

    @property
    def place(self) -> str:
        """Name and port, as people are told and as a rule is written."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def authority(self) -> bytes:
        is_usual = not self.is_tunnel and self.port == _HTTP_PORT
        return (self.place.removesuffix(f":{self.port}") if is_usual else self.place).encode("ascii")

    def head(self, *, is_absolute: bool = False, more: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
        """The request as the host gets it, or with its whole address as another proxy does."""
        path = b"http://" + self.authority + self.path if is_absolute else self.path
        lines = [self.method + b" " + path + b" HTTP/1.1", b"Host: " + self.authority]
        lines += [name + b": " + value for name, value in (*self.headers, *more)]
        return b"\r\n".join((*lines, b"Connection: close", b"", b""))


_HTTP_PORT = 80


def parse_request(head: bytes) -> Request:
    """The request in a head, which ends with its empty line."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    first = _FIRST_LINE.fullmatch(lines[0])
    if not first:
        raise RequestError("the first line is not one of HTTP/1.1")
    method, target = first.groups()
    headers = tuple(_header(line) for line in lines[1:])
    if method == b"CONNECT":
        name, port = _name_and_port(target, None)
        return Request(name, port)
    if not (address := _ADDRESS.fullmatch(target)):
        raise RequestError("the first line has no whole address (http://name/path)")
    name, port = _name_and_port(address[1], _HTTP_PORT)
    path = address[2] or b"/"
    path = path if path.startswith(b"/") else b"/" + path
    return Request(name, port, method, path, _passed_on(headers), _length(headers))


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, separator, value = line.partition(b":")
    if not separator or not _TOKEN.fullmatch(name) or not _TEXT.fullmatch(value):
        raise RequestError("a header is not a name, a colon and a text on one line")
    return name, value.strip(b" \t")


def _name_and_port(authority: bytes, usual: int | None) -> tuple[str, int]:
    """Of `name:port`; user names, escapes and a second colon are not part of one."""
    found = _AUTHORITY.fullmatch(authority)
    name = host_name(found[1].decode("ascii", "replace")) if found and authority.isascii() else None
    port = int(found[2]) if found and found[2] else usual
    if name is None or port is None or not 0 < port < 1 << 16:
        raise RequestError("the first line names no host and port")
    return name, port


def _passed_on(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """Without what is about this connection, and without what a header says is about it."""
    named = (
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    )
    left_out = {*_HOP, *named} - {b"content-length", b"transfer-encoding"}
    return tuple(each for each in headers if each[0].lower() not in left_out)


def _length(headers: tuple[tuple[bytes, bytes], ...]) -> int | None:
    """How long the body is: two answers to that are how requests are smuggled."""
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1 or any(each != b"chunked" for each in codings):
        raise RequestError("the length of the body is told in more than one way, or in an unknown one")
    if lengths and not re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
        raise RequestError("the length of the body is not a number")
    return None if codings else int(lengths[0]) if lengths else 0


class Body:
    """What belongs to the body of one request; what comes after it is not passed on."""

    def __init__(self, length: int | None) -> None:
        self._left = length or 0
        self._is_chunked = length is None
        self._line = b""
        self._state = "size" if length is None else "data"
        self.is_over = length == 0

    def take(self, data: bytes) -> int:
        """How many of these bytes belong to it."""
        if not self._is_chunked:
            taken = min(self._left, len(data))
            self._left -= taken
            self.is_over = self._left == 0
            return taken
        at = 0
        while at < len(data) and not self.is_over:
            at = self._take_data(data, at) if self._state == "data" else self._take_line(data, at)
        return at

    def _take_data(self, data: bytes, at: int) -> int:
        taken = min(self._left, len(data) - at)
        self._left -= taken
        if self._left == 0:
            self._state = "end"
        return at + taken

    def _take_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        piece = data[at : end + 1] if end >= 0 else data[at:]
        self._line += piece
        if len(self._line) > LINE_BYTES:
            raise RequestError("a chunk begins with a line that is too long")
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise RequestError("a line of a chunk does not end as lines do")
            self._read_line(line[:-2])
        return at + len(piece)

    def _read_line(self, line: bytes) -> None:
        if self._state == "end":
            if line:
                raise RequestError("a chunk is longer than it says")
            self._state = "size"
        elif self._state == "size":
            size = re.fullmatch(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?", line)
            if not size:
                raise RequestError("a chunk has no size")
            self._left = int(size[1], 16)
            self._state = "data" if self._left else "trailer"
        elif line:
            _header(line)
        else:  # the trailer is over
            self.is_over = True
