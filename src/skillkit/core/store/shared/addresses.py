"""A text such as `postgresql://host/db?world=acme` -> where a shared world is, without any password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from skillkit.core.exceptions import ConfigurationError

__all__ = ["WorldAddress"]

SCHEMES = ("postgresql", "postgres")
EXAMPLE = "postgresql://host/db?world=acme"
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# They would show in lists of processes and in files; `options` are ours.
SECRET_SETTINGS = frozenset(("password", "sslpassword"))
OWN_SETTINGS = frozenset(("options", "world"))


@dataclass(frozen=True, slots=True)
class WorldAddress:
    """Where a shared world is; a password is never part of it."""

    conninfo: str
    world: str
    shown: str

    @classmethod
    def from_text(cls, text: str) -> WorldAddress:
        scheme = text.partition("://")[0]
        if scheme not in SCHEMES:
            # Nothing of it is repeated: it may hold a password.
            raise ConfigurationError(
                f"A shared state is an address such as {EXAMPLE}. For a folder use the state folder."
            )
        try:
            parts = urlsplit(text)
            settings = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError as error:
            raise ConfigurationError(f"The address of the shared state cannot be read. Write {EXAMPLE}.") from error
        if ":" in parts.netloc.rpartition("@")[0] or SECRET_SETTINGS & settings.keys():
            raise ConfigurationError(
                "The address of the shared state holds a password, which others could see. Put it into the file that "
                "PGPASSFILE names, or into the service file, and leave it out of the address."
            )
        world = require_world_name(settings.get("world", ""))
        rest = {name: value for name, value in settings.items() if name not in OWN_SETTINGS}
        conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), ""))
        return cls(conninfo, world, f"postgresql://{parts.netloc}{parts.path}?world={world}")

    def role(self, name: str) -> str:
        return f"{self.world}_{name}"


def require_world_name(name: str) -> str:
    if not NAME.fullmatch(name) or name.startswith("pg_") or name in ("public", "information_schema"):
        raise ConfigurationError(
            f"{name!r} is no name of a world: 1 to 40 small letters, digits and underscores, a letter first, not "
            f"'public' or 'pg_...'. Write {EXAMPLE}."
        )
    return name
