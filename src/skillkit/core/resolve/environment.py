"""Policy and the caller's environment -> the script's environment, built name by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from skillkit._version import __version__
from skillkit.core.paths import is_decided_inside
from skillkit.core.policy import ScriptPolicy

__all__ = ["is_never_passed", "script_environment", "search_path"]

PASSED = (
    "LANG TZ HOME TMPDIR LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME LC_ADDRESS "
    "LC_IDENTIFICATION LC_MEASUREMENT LC_NAME LC_PAPER LC_TELEPHONE"
).split()
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
NEVER_PASSED_PREFIXES = ("LD_", "DYLD_", "GIT_SSH", "DBUS_", "SKILLKIT_", "BASH_FUNC_")
NEVER_PASSED = frozenset(
    "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONBREAKPOINT NODE_OPTIONS BASH_ENV ENV "
    "SHELLOPTS BASHOPTS PS4 "
    "PERL5OPT PERL5LIB PERL5DB PERL_USE_UNSAFE_INC RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLE_APP_CONFIG GCONV_PATH "
    "OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS "
    "SSH_AUTH_SOCK XDG_RUNTIME_DIR DOCKER_HOST".split()
)
# Folders in which languages look for code: passed without those that scripts can write.
CODE_FOLDERS = frozenset("NODE_PATH GEM_HOME GEM_PATH PYTHONUSERBASE PYTHONPYCACHEPREFIX PERLLIB".split())
FIXED = {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
# Without it, bash looks the user's shell up in the system's list of users at each start, which takes its time.
USUAL = {"SHELL": "/bin/sh"} if os.name == "posix" else {}


def script_environment(
    policy: ScriptPolicy,
    own: Mapping[str, str],
    *,
    skill_name: str,
    skill_version: str | None,
    base_directory: Path,
    workspace: Path | None,
) -> dict[str, str]:
    """An allow-list, what policy passes by name, and what the script should know of its skill."""
    known = known_environment(own)
    place = str(base_directory), None if workspace is None else str(workspace)
    key = (skill_name, skill_version, place, policy.inherit_environment, policy.pass_environment)
    built = known.built.get(key)
    if built is None:
        path = search_path(known.plain, base_directory, workspace)
        passed = passed_of(known.plain, policy)
        folders = {
            name: outside_folders(passed.pop(name), base_directory, workspace) for name in CODE_FOLDERS & passed.keys()
        }
        passed |= {name: value for name, value in folders.items() if value}
        everything = passed | {"PATH": path} | facts_of(skill_name, skill_version, *place)
        built = {name: value for name, value in everything.items() if "\0" not in value}
        if len(known.built) >= REMEMBERED:
            known.built.clear()
        known.built[key] = built
    return dict(built)


def passed_of(own: Mapping[str, str], policy: ScriptPolicy) -> dict[str, str]:
    """What every script gets of the caller's, and what policy names."""
    named = own if policy.inherit_environment else policy.pass_environment
    return (
        USUAL
        | {name: own[name] for name in PASSED if name in own}
        | {name: own[name] for name in named if name in own and not is_never_passed(name)}
    )


class Known(NamedTuple):
    """The environment of this process as it was last seen, and what was built of it meanwhile."""

    raw: dict[bytes, bytes]
    plain: Mapping[str, str]
    built: dict[object, dict[str, str]]


REMEMBERED = 256
_known = Known({}, {}, {})
Environ = os._Environ  # noqa: SLF001 - its class by name: a program may put anything else in the place of `os.environ`


def known_environment(own: Mapping[str, str]) -> Known:
    """With a plain copy of `own`: `os.environ` itself decodes every name that it is asked for."""
    global _known  # noqa: PLW0603 - one environment, one copy of it
    raw = getattr(own, "_data", None)
    # On Windows a name in any case means the same variable, which a plain copy does not know.
    if not isinstance(own, Environ) or not isinstance(raw, dict) or own.encodekey("a") != b"a":
        return Known({}, own, {})
    known = _known
    if known.raw != raw:
        raw = dict(raw)
        plain = {own.decodekey(name): own.decodevalue(value) for name, value in raw.items()}
        known = _known = Known(raw, plain, {})
    return known


def facts_of(skill_name: str, skill_version: str | None, folder: str, workspace: str | None) -> dict[str, str]:
    """What the script should know of its skill and its place."""
    facts = FIXED | {
        "SKILL_NAME": skill_name,
        "SKILL_BASE_DIR": folder,
        "SKILL_DIR": folder,
        "CLAUDE_SKILL_DIR": folder,
        "SKILL_VERSION": skill_version or "0.0.0",
        "SKILLKIT_VERSION": __version__,
    }
    if workspace is not None:
        facts |= {"SKILL_WORKSPACE": workspace, "CLAUDE_PROJECT_DIR": workspace}
    return facts


def is_never_passed(name: str) -> bool:
    """Names through which a value takes over the program that is started, or opens a door of the user's."""
    return name in NEVER_PASSED or name.startswith(NEVER_PASSED_PREFIXES)


def search_path(own: Mapping[str, str], base_directory: Path, workspace: Path | None) -> str:
    """Absolute folders only, none of them inside the skill or the workspace."""
    return outside_folders(own.get("PATH") or DEFAULT_PATH, base_directory, workspace) or DEFAULT_PATH


@lru_cache(maxsize=256)
def outside_folders(path: str, base_directory: Path, workspace: Path | None) -> str:
    """Looked at once: following the links of a long PATH takes as long as starting a small script."""
    closed = [os.path.realpath(folder) for folder in (base_directory, workspace) if folder is not None]
    folders = filter(os.path.isabs, path.split(os.pathsep))
    return os.pathsep.join(folder for folder in folders if not is_decided_inside(folder, closed))
