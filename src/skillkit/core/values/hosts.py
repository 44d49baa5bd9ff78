"""Names of hosts that a run may reach: what a person writes -> a rule, and which host and port it opens."""

from __future__ import annotations

import ipaddress
import re
import shlex
from dataclasses import dataclass
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.addresses import is_closed, is_private_address
from skillkit.core.values.names import grant_command

__all__ = [
    "ANY",
    "NOT_LISTED",
    "NOT_PUBLIC",
    "USUAL_PORTS",
    "HostRule",
    "HostUse",
    "host_name",
    "is_address",
    "is_closed_name",
    "is_inner_name",
    "is_private_host",
    "require_openable",
]

USUAL_PORTS = (443, 80)
"""What a rule opens that names no port."""

ANY = "*"
"""Any public host."""
NOT_LISTED = "is not among the hosts that this run may reach"
NOT_PUBLIC = "is not a public address"
"""Ends of the reasons for which a host was refused that a grant could open: these two, and no other."""
_BELOW = "*."
_PRIVATE = " private"
_NAME_CHARACTERS = 253
_HIGHEST_PORT = 65535
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# Names that no public network has: "any public host" does not mean them, wherever they are resolved.
_INNER_NAMES = frozenset(("localhost", "local", "internal", "home.arpa", "lan", "intranet", "corp", "localdomain"))
# As which clouds tell their own machines of the place of their keys; the addresses of these are closed too.
_KEY_NAMES = frozenset(("metadata.google.internal", "metadata", "instance-data", "instance-data.ec2.internal"))
# The older and the newer rule for names make two hosts of them: sharp s, final sigma, and the joiners.
_READ_IN_TWO_WAYS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")
_FORMS = "api.example.com, *.example.org, host.example.com:8443 or *"


@dataclass(frozen=True, slots=True, order=True)
class HostRule:
    """One name, or all names below one, or any; on one port, or on the usual two."""

    name: str
    """As `host_name` gives it; `*.example.org` stands for every name below; `*` for any."""
    port: int | None = None
    is_private: bool = False
    """Whether the name may lead to private addresses."""

    @classmethod
    def parse(cls, text: str, *, is_private: bool = False) -> HostRule:
        """The rule in a text; what could be read in two ways is refused."""
        _refuse_address_of_page(text)
        written, port = _without_port(text)
        bare = written.removeprefix(_BELOW)
        name = written if written == ANY else host_name(bare)
        is_below = written != bare
        if name is None or (is_below and ("." not in name or is_address(name))):
            raise ConfigurationError(f"{text!r} names no host. Write {_FORMS}.")
        if is_private and written == ANY:
            raise ConfigurationError("'*' stands for public hosts only. Name each private host.")
        return cls(f"{_BELOW}{name}" if is_below else name, port, is_private)

    @classmethod
    def from_id(cls, text: str) -> HostRule:
        """The same in one text, as policies and grants keep it: the rule, and `private` behind a space where it is."""
        rule = text.removesuffix(_PRIVATE)
        return cls.parse(rule, is_private=rule != text)

    @property
    def id(self) -> str:
        return f"{self}{_PRIVATE if self.is_private else ''}"

    @property
    def ports(self) -> tuple[int, ...]:
        return USUAL_PORTS if self.port is None else (self.port,)

    def opens(self, name: str, port: int) -> bool:
        """Whether a host, named as `host_name` gives it, may be reached on this port."""
        return port in self.ports and self._names(name)

    def covers(self, other: HostRule) -> bool:
        """Whether everything that the other opens is open by this one."""
        if (other.is_private and not self.is_private) or not set(other.ports) <= set(self.ports):
            return False
        if self.name == other.name:
            return True
        if self.name == ANY:
            return not is_inner_name(other.name.removeprefix(_BELOW))
        is_wide = self.name.startswith(_BELOW) or not other.name.startswith("*")
        return is_wide and other.name != ANY and self._names(other.name.removeprefix("*"))

    def _names(self, name: str) -> bool:
        if self.name.startswith(_BELOW):
            return name.endswith(self.name[1:]) and not is_address(name)
        return self.name in (ANY, name)

    def __str__(self) -> str:
        port = "" if self.port is None else f":{self.port}"
        name = f"[{self.name}]" if port and ":" in self.name else self.name
        return f"{name}{port}"


class HostUse(NamedTuple):
    """What a run did with one host: how often it connected and how many bytes went each way, or why it could not."""

    host: str
    """Name and port; an address of version 6 in brackets."""
    refused: str = ""
    connections: int = 0
    sent: int = 0
    received: int = 0
    via: str = ""
    """The machine's own proxy that led there, and resolved the name; empty where it was resolved here."""

    @property
    def grant(self) -> tuple[str, ...]:
        """The words behind `skillkit grant SKILL` that would open it; none where it was reached or nothing does."""
        if not self.refused.endswith((NOT_LISTED, NOT_PUBLIC)):
            return ()
        name, _, port = self.host.rpartition(":")
        rule = name.strip("[]") if port.isdecimal() and int(port) in USUAL_PORTS else self.host
        is_private = self.refused.endswith(NOT_PUBLIC) or is_private_host(self.host)
        return ("--host", rule, "--private") if is_private else ("--host", rule)

    def remedy(self, skill: str) -> str:
        """The same as it is typed."""
        return f"{grant_command(skill)} {shlex.join(self.grant)}" if self.grant else ""


def host_name(text: str) -> str | None:
    """One spelling for each host: lower case, ASCII, no dot at its end; None for what is no plain name or address."""
    if not text.isascii():
        if not _READ_IN_TWO_WAYS.isdisjoint(text):
            return None
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = text.lower().removesuffix(".")
    inner = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        address = ipaddress.ip_address(inner)
    except ValueError:
        pass
    else:
        return str(getattr(address, "ipv4_mapped", None) or address)
    labels = name.split(".")
    is_name = len(name) <= _NAME_CHARACTERS and all(map(_LABEL.fullmatch, labels))
    # A last label of digits is an address in some reader's eyes (127.1, 0x7f.1): nobody's name ends so.
    is_numeric = bool(re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]))
    return name if is_name and not is_numeric else None


def is_inner_name(name: str) -> bool:
    """Whether it names something of a private network, as far as a name tells."""
    labels = name.split(".")
    is_inner = len(labels) == 1 or labels[-1] in _INNER_NAMES or ".".join(labels[-2:]) in _INNER_NAMES
    return is_inner and not is_address(name)


def is_closed_name(name: str) -> bool:
    """Whether it names this machine or the place of a cloud's keys, as far as a name tells."""
    return name.rpartition(".")[2] == "localhost" or name in _KEY_NAMES


def is_private_host(written: str) -> bool:
    """Whether it is an address, with or without a port, that is opened only where a person says that it is private."""
    try:
        name = host_name(_without_port(written)[0]) or ""
    except ConfigurationError:
        return False
    return is_address(name) and is_private_address(ipaddress.ip_address(name))


def require_openable(rule: HostRule) -> HostRule:
    """The same, where it opens something; a rule for what is never reached would be a yes to nothing."""
    name = rule.name.removeprefix(_BELOW)
    address = ipaddress.ip_address(name) if is_address(name) else None
    if is_closed_name(name) or (address is not None and is_closed(address)):
        raise ConfigurationError(
            f"{str(rule)!r} is never opened: this machine itself, its own link and the places where clouds keep keys "
            "are closed to every script. Leave it out; what a script starts itself it reaches without a rule."
        )
    if address is not None and is_private_address(address) and not rule.is_private:
        raise ConfigurationError(
            f"{str(rule)!r} is a private address, which is opened only where that is said: add --private to "
            f"'skillkit grant', or write '{rule} private' where hosts are listed."
        )
    return rule


def _refuse_address_of_page(text: str) -> None:
    """What people copy from a browser; they are told what of it is the host."""
    host = text.partition("://")[2] or text
    host = host.partition("/")[0].rpartition("@")[2]
    if host != text and ("://" in text or "/" in text):
        write = f"Write {host}" if host_name(host.partition(":")[0]) else f"Write {_FORMS}"
        raise ConfigurationError(f"{text!r} is more than a host, which is named without scheme and path. {write}.")


def _without_port(text: str) -> tuple[str, int | None]:
    """`[::1]:443` and `name:443` have one; a bare address of version 6 has colons and none."""
    name, separator, port = text.rpartition(":")
    if not separator or (":" in name and not name.endswith("]")) or text.endswith("]"):
        return text, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) <= _HIGHEST_PORT:
        raise ConfigurationError(f"{text!r} has no port from 1 to {_HIGHEST_PORT} after the colon. Write {_FORMS}.")
    return name, int(port)


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
