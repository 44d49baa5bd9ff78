"""The user's file, the project's file and the command line -> one set of settings that knows where each came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.config.files import PROJECT, PROJECT_FILE, USER, Place, project_file, read_text, user_file_place
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.policy import FIELDS, GUARDED, PROFILES, ScriptPolicy, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.config.keys import ConfigFile

__all__ = ["AGENTS_FOLDER", "MIN_AGE_DAYS", "Origin", "Settings", "load_settings", "policy_of"]

DEFAULT_PROFILE = "guarded"
MIN_AGE_DAYS = 7
AGENTS_FOLDER = "agents"
"""Beside the user's file: agent files that are the user's own word."""
DEFAULT = Place("default")


class Origin(NamedTuple):
    """A setting's value and where it stands; a list that was put together has several places."""

    value: Any
    places: tuple[Place, ...] = (DEFAULT,)

    def __str__(self) -> str:
        return ", ".join(map(str, self.places))


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds here; without any file, GUARDED and the usual places."""

    profile: str = DEFAULT_PROFILE
    policy: ScriptPolicy = GUARDED
    skill_paths: tuple[Path, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()
    packages_min_age_days: int = MIN_AGE_DAYS
    """Releases of packages that are younger need a person's own word."""
    host_folders: bool = True
    """Whether the folders of all agent hosts are searched."""
    named: Mapping[str, Origin] = field(default_factory=dict)
    """What files and the command line name; `origins` has every setting."""
    only_given_skills: bool = False
    user_file: Path | None = None
    """Where the user's file is looked for, also when it is not there."""
    project_file: Path | None = None
    is_trusted_project: bool = False

    @property
    def origins(self) -> dict[str, Origin]:
        """Every setting by its dotted key."""
        from skillkit.config.keys import KEYS

        from_profile = (Place(f"profile {self.profile}"),)
        policy = {f"policy.{name}": Origin(value_of(self.policy, name), from_profile) for name in FIELDS}
        others = {"profile": Origin(DEFAULT_PROFILE), "skills.host_folders": Origin(value=True)}
        others["packages_min_age_days"] = Origin(MIN_AGE_DAYS)
        defaults = {**dict.fromkeys(KEYS, Origin(())), **others, **policy}
        return {key: self.named.get(key) or defaults[key] for key in KEYS}

    @property
    def loosening_files(self) -> tuple[Path, ...]:
        """The files whose word may loosen, there or not: what a script writes into them would be believed."""
        trusted = self.named.get("projects.trusted")
        own = () if self.user_file is None else (self.user_file, self.user_file.parent / AGENTS_FOLDER)
        return (*own, *(folder / PROJECT_FILE for folder in (trusted.value if trusted else ())))

    def manager_arguments(self) -> dict[str, Any]:
        """For `SkillManager(**arguments)`."""
        usual_places = "" if self.only_given_skills else None
        return {
            "project_skill_dir": usual_places,
            "anthropic_config_dir": usual_places,
            "plugin_dirs": self.plugin_dirs or None,
            "additional_search_paths": self.skill_paths,
            "policy": self.policy,
            "protected_paths": self.loosening_files,
            "host_folders": self.host_folders,
        }

    def chosen(
        self,
        *,
        profile: str | None = None,
        skills: Sequence[Path] = (),
        plugins: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        network: bool = False,
        run_on_load: str | None = None,
        hosts: Sequence[str] = (),
    ) -> Settings:
        """As a person chose on the command line, which wins: a profile stands alone, without the files' policy."""
        named = dict(self.named)
        if profile is not None:
            if profile not in PROFILES:
                raise ConfigurationError(f"No profile is named {profile!r}; there are: {', '.join(PROFILES)}.")
            named = {key: origin for key, origin in named.items() if not key.startswith("policy.")}
            named["profile"] = Origin(profile, (_option_place("--policy"),))
        if skills:
            named.pop("skills.plugins", None)
            named["skills.paths"] = Origin(_absolute(skills), (_option_place("--skills"),))
        if network:
            named["policy.allow_network"] = Origin(value=True, places=(_option_place("--network"),))
        if run_on_load is not None:
            named["policy.run_on_load"] = Origin(run_on_load, (_option_place("--run-on-load"),))
        _add(named, "policy.allowed_hosts", hosts, "--host")
        _add(named, "skills.plugins", _absolute(plugins), "--plugin")
        _add(named, "policy.readable_paths", _absolute(readable), "--read")
        _add(named, "policy.writable_paths", _absolute(writable), "--write")
        return _settings_of(named, like=self, only_given_skills=self.only_given_skills or bool(skills))


def load_settings(
    start: str | Path | None, *, environ: Mapping[str, str] = os.environ, user_file: str | Path | None = None
) -> Settings:
    """From the user's file and the project's nearest to `start`; ConfigurationError says what to correct, and where.

    A key of the project's file wins over the same key of the user's, but may only tighten unless the user trusts
    the project. Folders of skills add up, the project's first.
    """
    user_path, must_exist = user_file_place(environ, None if user_file is None else Path(user_file))
    is_read = user_path is not None and (must_exist or _is_there(user_path))
    user = _read_file(Place(USER, user_path), may_loosen=True) if is_read else None
    own = replace(_layered([user] if user else []), user_file=user_path)
    project_path = project_file(None if start is None else Path(start))
    if project_path is None:
        return own

    from skillkit.config.keys import is_trusted, refuse_loosening

    trusted = is_trusted(project_path, user)
    project = _read_file(Place(PROJECT, project_path), may_loosen=trusted)
    merged = _layered([project, user] if user else [project])
    if not trusted:
        refuse_loosening(project, user, user_path, own=own.policy, own_places=own.origins, given=merged.policy)
    return replace(merged, user_file=user_path, project_file=project_path, is_trusted_project=trusted)


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # reading it says what is wrong
    return True


def _read_file(place: Place, *, may_loosen: bool) -> ConfigFile:
    from skillkit.config.keys import config_file  # only those who have a file pay for reading it

    return config_file(place, read_text(place, may_loosen=may_loosen))


def _layered(nearest_first: Sequence[ConfigFile]) -> Settings:
    named: dict[str, Origin] = {}
    for file in reversed(nearest_first):
        for key, value in file.values.items():
            before = named.get(key)
            if before and key in ("skills.paths", "skills.plugins"):
                named[key] = Origin(_unique(value, before.value), (file.place(key), *before.places))
            else:
                named[key] = Origin(value, (file.place(key),))
    return _settings_of(named, like=Settings())


def _settings_of(named: Mapping[str, Origin], *, like: Settings, only_given_skills: bool = False) -> Settings:
    values = {key: origin.value for key, origin in named.items()}
    profile = values.get("profile", DEFAULT_PROFILE)
    return replace(
        like,
        profile=profile,
        policy=policy_of(PROFILES[profile], values),
        skill_paths=values.get("skills.paths", ()),
        plugin_dirs=values.get("skills.plugins", ()),
        packages_min_age_days=values.get("packages_min_age_days", MIN_AGE_DAYS),
        host_folders=values.get("skills.host_folders", True),
        named=named,
        only_given_skills=only_given_skills,
    )


def policy_of(base: ScriptPolicy, values: Mapping[str, Any]) -> ScriptPolicy:
    """The base with what stands under `policy.` and `policy.limits.`."""
    tables: dict[str, dict[str, Any]] = {"policy": {}, "policy.limits": {}}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        tables.get(table, {})[name] = value
    policy, limits = tables.values()
    return replace(base, **policy, limits=replace(base.limits, **limits)) if policy or limits else base


def _add(named: dict[str, Origin], key: str, given: Sequence[Path | str], option: str) -> None:
    if given:
        before = named.get(key) or Origin((), ())
        value = tuple(dict.fromkeys((*given, *before.value)))
        named[key] = Origin(value, (_option_place(option), *before.places))


def _absolute(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(Path(path).expanduser().absolute() for path in paths)


def _unique(first: Sequence[Path], then: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((*first, *then)))


def _option_place(option: str) -> Place:
    return Place(f"command line {option}")
