"""A grant that somebody names -> the same as it is kept, or the rule against it: what can never be given to a skill.

Asked when a grant is given, when one is offered in a question, and again at each use: what a name leads to may have
become a closed place meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.models.detect import LANGUAGE_INTERPRETERS
from skillkit.core.paths.forbidden import open_paths
from skillkit.core.resolve.environment import LISTED_AS
from skillkit.core.values.hosts import HostRule, require_openable
from skillkit.core.values.names import is_grantable_name, is_secret_name
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import FIELDS
from skillkit.core.values.text import storable

__all__ = ["require_grantable"]

INTERPRETERS = frozenset(LISTED_AS.get(name, name) for names in LANGUAGE_INTERPRETERS.values() for name in names)


def require_grantable(grant: Grant, state_folder: Path | None) -> Grant:
    """As it is kept: a path without links, a host in small letters; ConfigurationError for what is never given."""
    return _CHECKS[grant.kind](grant, state_folder)


def _host(grant: Grant, _: Path | None) -> Grant:
    rule = require_openable(HostRule.parse(grant.name, is_private=grant.is_private))
    return Grant("host", str(rule), grant.is_private)


def _variable(grant: Grant, _: Path | None) -> Grant:
    if not is_grantable_name(grant.name):
        raise ConfigurationError(
            f"{grant.name!r} can never be granted: it is no name of a variable, or it steers what a program loads, "
            "where it connects or what skillkit tells it. Let the script take it under another name."
        )
    if grant.kind == "variable" and is_secret_name(grant.name):
        raise ConfigurationError(
            f"{grant.name!r} is the name of a key, which is no plain variable: it would be shown where it is printed. "
            f"Grant it as a key, with '--secret {grant.name}'."
        )
    return grant


def _path(grant: Grant, state_folder: Path | None) -> Grant:
    flag = f"--{grant.kind}"
    try:
        path = Path(grant.name).expanduser().absolute()
        found = open_paths((path,), state_folder, setting=flag)
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder; NUL
        raise ConfigurationError(f"{flag}: {grant.name!r} cannot be found: {error} Name what exists.") from error
    if path not in found:
        raise ConfigurationError(f"{flag}: {path} does not exist, so it cannot be opened to a script. Make it first.")
    real = found[path].path
    if storable(real) != real or not real.isprintable():
        raise ConfigurationError(f"{flag}: {real!r} has characters that cannot be shown or kept. Rename it.")
    return Grant(grant.kind, real, content=grant.content)


def _working_directory(grant: Grant, _: Path | None) -> Grant:
    choices = FIELDS["working_directory"].choices
    if grant.name not in choices:
        raise ConfigurationError(f"{grant.name!r} is no working directory; it must be one of: {', '.join(choices)}.")
    return grant


def _interpreter(grant: Grant, _: Path | None) -> Grant:
    if grant.name not in INTERPRETERS:
        raise ConfigurationError(f"No script runs with {grant.name!r}; known: {', '.join(sorted(INTERPRETERS))}.")
    return grant


_CHECKS: dict[str, Callable[[Grant, Path | None], Grant]] = {
    "host": _host,
    "secret": _variable,
    "variable": _variable,
    "read": _path,
    "write": _path,
    "working_directory": _working_directory,
    "interpreter": _interpreter,
}
