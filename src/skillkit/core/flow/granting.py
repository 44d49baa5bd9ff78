"""What a person gave a skill -> what holds for its runs: in one place, between the flow and its stages.

Theory of operation. A grant holds for one skill in one folder with one content, and only where policy lets its kind be
granted. Walls are policy and grants: `policy` gives the policy that holds with them, and every stage goes by that one,
so that none has to know where a path or a name came from. Keys are no part of a policy: their values are looked up
when a run is about to start. What may be given is asked again at each use, because a name may lead elsewhere by now.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError, InterpreterNotAllowedError, ScriptRefusedError, SkillKitError
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.paths import real_path
from skillkit.core.paths.guarded_names import is_guarded_name
from skillkit.core.resolve import require_grantable
from skillkit.core.store.base import Store
from skillkit.core.store.environments import Environments
from skillkit.core.store.secrets import Secrets
from skillkit.core.store.skills import KeptGrant, StandingGrants
from skillkit.core.values.grants import grant_label, names_of, widened
from skillkit.core.values.masking import Masker
from skillkit.core.values.names import is_secret_name
from skillkit.core.values.needs import Grant, Need
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import KEEP_HOME, SAME_AGAIN, OptionAnswer, Tick
from skillkit.core.values.runs import PreparedRun, ScriptCommand

__all__ = [
    "NOTHING_GIVEN",
    "Given",
    "Granting",
    "Opened",
    "grantable",
    "is_outdated",
    "keeps_home",
    "ticked",
    "warning_of",
]

_REMEMBERED = 256
BY_GRANT = "skillkit grant "
_ALL_OR_NONE = ("landlock", "seatbelt")
_OBEYED = "Agents, editors, shells or git obey what is in it: a script that writes there can act in your name later."
_REMOVE = "'skillkit grant list' shows it, 'skillkit grant remove' ends it."
_OTHERS_CODE = "Code of another skill, which this one may run; once it changes you are asked again."
_PRIVATE = "It can reach machines of your own network by that name."


class Given(NamedTuple):
    """What a person gave a skill for good."""

    lasting: tuple[Grant, ...] = ()
    """To the content that it has now."""
    had: tuple[Grant, ...] = ()
    """To other content; a person is told, and can give it again."""


NOTHING_GIVEN = Given()


class Opened(NamedTuple):
    """What one run gets with what it was given."""

    policy: ScriptPolicy
    """The one that holds for it."""
    keys: Mapping[str, str]
    """Values for the script alone."""
    masker: Masker
    """Knows what no agent and no record may see."""


class Granting:
    """The grants of one world under one policy."""

    def __init__(self, policy: ScriptPolicy, store: Store, state_folder: Path) -> None:
        self._policy = policy
        self._store = store
        self.standing = StandingGrants(store)
        self._state_folder = state_folder
        self.secrets = Secrets()
        self._widened: dict[tuple[Grant, ...], ScriptPolicy] = {(): policy}
        self._needs: dict[tuple[str, str], tuple[Need, ...]] = {}  # by content: reading code takes its time

    def of(self, skill: Skill | None) -> Given:
        """What holds for the skill as it is now; a program has none."""
        kept = self.standing.of(skill.metadata.name, skill.base_directory) if skill else []
        return self.given(skill, kept) if skill and kept else NOTHING_GIVEN

    def given(self, skill: Skill, kept: Iterable[KeptGrant]) -> Given:
        """What of that which is kept about the skill holds for it as it is now."""
        if not self._policy.grantable:
            return NOTHING_GIVEN
        digest = manifest_of(real_path(skill.base_directory)).digest
        own = [each.grant for each in kept if each.digest == digest]
        before = [each.grant for each in kept if each.digest != digest]
        return Given(self.usable(own), (*before, *filter(is_outdated, own)))

    def usable(self, grants: Iterable[Grant]) -> tuple[Grant, ...]:
        """Those that policy lets be given; one that can never be given any more is an error, and nothing runs."""
        wanted = [each for each in grants if each.kind in self._policy.grantable and not is_outdated(each)]
        return tuple(grant for grant in wanted if self._is_there(grant))

    def _is_there(self, grant: Grant) -> bool:
        """A path that is gone opens nothing; one that leads elsewhere was led there."""
        if grant.kind in ("read", "write") and not os.path.exists(grant.name):
            return False
        try:
            found = require_grantable(grant, self._state_folder)
        except ConfigurationError as error:
            raise ConfigurationError(f"A grant does not hold any more: {error} {_REMOVE}") from error
        if found != grant:
            raise ConfigurationError(
                f"A grant does not hold any more: {grant.name} leads to {found.name} by now; a script can have done "
                f"that. {_REMOVE}"
            )
        return True

    def policy(self, grants: Sequence[Grant]) -> ScriptPolicy:
        """The one that holds with these; always the same value for the same grants."""
        key = tuple(grants)
        known = self._widened.get(key)
        if known is None:
            if len(self._widened) >= _REMEMBERED:
                self._widened = {(): self._policy}
            known = self._widened[key] = widened(self._policy, key)
        return known

    def opened(self, command: ScriptCommand) -> Opened:
        """For a run that was given something."""
        keys = self._keys(command)
        return Opened(self.policy(command.grants), keys, _masker(command, keys))

    def _keys(self, command: ScriptCommand) -> dict[str, str]:
        """The values of the keys that the run was given, and of nobody else's."""
        names = names_of("secret", (grant for grant in command.grants if grant.kind in self._policy.grantable))
        found = {name: self.secrets.value(command.skill_name, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def give(self, skill: Skill, grants: Iterable[Grant], channel: str) -> list[KeptGrant]:
        """Keeps them for the skill as it is now; ConfigurationError for what can never be given."""
        digest = manifest_of(real_path(skill.base_directory)).digest
        checked = [_bound(require_grantable(grant, self._state_folder), skill) for grant in grants]
        return self.standing.give(
            checked, skill=skill.metadata.name, folder=skill.base_directory, digest=digest, channel=channel
        )

    def kept(self, skill: Skill) -> list[KeptGrant]:
        """All that is kept about it, of whichever content."""
        return self.standing.of(skill.metadata.name, skill.base_directory)

    def revoke(self, skill: Skill, grants: Sequence[Grant] = ()) -> list[KeptGrant]:
        """What it does not have any more; without grants, all. A shared world knows skills by name, not by folder."""
        folder = None if self._store.is_shared else skill.base_directory
        return self.standing.remove(skill.metadata.name, grants or None, folder=folder)

    # What a question offers, and what of it a yes opens.

    def needs(self, skill: Skill, command: ScriptCommand, copy: Path, tier: str) -> tuple[Need, ...]:
        """What the script uses, read from `copy`, and whether it is there for it with the grants that it has."""
        here = {"runs_types": command.interpreter == "node", "workspace": command.workspace and command.workspace.path}
        found = self.looked_at(skill, self.needs_in(copy, skill, command), command.grants, tier, **here)
        if command.interpreter not in self.policy(command.grants).allowed_interpreters:
            where, remedy = f"{command.script_name}:1", _giving_interpreter(command)
            own = Need("interpreter", command.interpreter, "inferred", where, remedy=remedy)
            found = (own, *(need for need in found if need.kind != "interpreter"))
        return found

    def needs_in(self, copy: Path, skill: Skill, command: ScriptCommand) -> tuple[Need, ...]:
        """What the script uses, whether it is there or not; read once for each content."""
        from skillkit.core.find.needs import needs_of  # reads code; most runs ask nothing

        key = (command.digest, command.script_name)
        if key not in self._needs:
            if len(self._needs) >= _REMEMBERED:
                self._needs.clear()
            metadata = replace(skill.metadata, skill_path=copy / skill.metadata.skill_path.name)
            self._needs[key] = needs_of(Skill(metadata, copy), command.script_name)
        return self._needs[key]

    def needs_of(
        self, skill: Skill, script_name: str | None, tier: str, workspace: Path | None = None
    ) -> tuple[Need, ...]:
        """Of a skill as it lies in its folder, or of one of its scripts, with what it was given for good."""
        from skillkit.core.find.needs import needs_of
        from skillkit.core.resolve.locate import find_script

        name, folder = skill.metadata.name, skill.base_directory
        script = None if script_name is None else find_script(script_name, name, folder, skill.scripts)
        return self.looked_at(skill, needs_of(skill, script), self.of(skill).lasting, tier, workspace=workspace)

    def looked_at(
        self,
        skill: Skill,
        needs: Sequence[Need],
        grants: Sequence[Grant],
        tier: str,
        **here: Any,  # noqa: ANN401 - what else there is for it
    ) -> tuple[Need, ...]:
        """The same needs, each with whether it is there for the skill under this policy with these grants."""
        from skillkit.core.find.needs import met, surroundings_here

        name = skill.metadata.name
        unset = {need.name for need in needs if need.kind == "secret"} - os.environ.keys()
        around = surroundings_here(
            name,
            self.policy(grants),
            folder=skill.base_directory,
            granted=[grant.id for grant in grants],
            stored=[each for each in unset if self.secrets.has(name, each)],
            refused={each: problem for each in unset if (problem := self.secrets.problem(name, each))},
            prepared=self.packages_of(skill),
            tier=tier,
            plugin_root=skill.metadata.plugin_root,
            **here,
        )
        told = (_told(need, around.policy, tier) for need in met(needs, around))
        return tuple(_beside_a_copy(need, skill, around.policy, tier) for need in told)

    def packages_of(self, skill: Skill) -> frozenset[str]:
        """Names of packages that are there for the skill as it is now; most skills cost one look for a file."""
        environments, name, folder = Environments(self._state_folder), skill.metadata.name, skill.base_directory
        if environments.approved(name, folder) is None:
            return frozenset()
        return environments.names(name, folder, manifest_of(real_path(folder)).digest)

    def has_new_packages(self, command: ScriptCommand) -> bool:
        """Whether they were prepared, or taken away, since the command was made."""
        known = Environments(self._state_folder).of(command.skill_name, command.base_directory, command.digest)
        return not command.is_program and known != command.prepared

    def offers(
        self,
        needs: Iterable[Need],
        command: ScriptCommand,
        skill: Skill | None,
        *,
        had: Iterable[Grant] = (),
        left: Collection[str] = (),
        home: str = "",
    ) -> dict[Tick, tuple[Grant, ...]]:
        """A tick for each unmet need that it would meet here, and one for all that it had, with what each gives.

        What a person left in this session is not offered again. `home` says what is in the home of what the skill was
        before it changed.
        """
        offered: dict[Tick, tuple[Grant, ...]] = {}
        again = tuple(grant for grant in self._offered(had, skill) if grant not in command.grants)
        if again:
            listed = ", ".join((*map(grant_label, again), *([f"its home ({home})"] if home else [])))
            warnings = dict.fromkeys(filter(None, map(warning_of, again)))
            offered[Tick(SAME_AGAIN, f"the same again: {listed}", " ".join(warnings))] = again
        if home:
            offered[Tick(KEEP_HOME, f"keep its home ({home})", "What an earlier version left there stays in it.")] = ()
        # A key that has no value here is met by setting it: a tick would open nothing.
        unmet = (each for each in needs if each.kind != "working_directory" and each.remedy.startswith(BY_GRANT))
        for grant in self._offered((need.grant for need in unmet if need.grant is not None), skill):
            if grant not in command.grants and grant.id not in left:
                offered[Tick(grant.id, grant_label(grant), warning_of(grant))] = (grant,)
        return offered

    def _offered(self, grants: Iterable[Grant], skill: Skill | None) -> tuple[Grant, ...]:
        """Of these, what can be given here and now: code that comes with skills as it is now."""
        found: dict[Grant, None] = {}
        for grant in grants:
            if grant.kind in self._policy.grantable:
                with suppress(SkillKitError):
                    found[_bound(require_grantable(grant, self._state_folder), skill)] = None
        return tuple(found)


def _masker(command: ScriptCommand, keys: Mapping[str, str]) -> Masker:
    """Knows the keys, and those variables that are keys by their name."""
    named = [name for name in names_of("variable", command.grants) if is_secret_name(name)]
    return Masker([*keys.values(), *(command.environment.get(name, "") for name in named)])


def ticked(prepared: PreparedRun, answer: OptionAnswer) -> tuple[Grant, ...]:
    """What a yes opens; ScriptRefusedError for what the question did not offer."""
    if unknown := [each for each in answer.grants if each not in prepared.offered]:
        reason = f"The answer grants {unknown[0]!r}, which the question did not offer"
        raise ScriptRefusedError.because(reason, "Tick only what is offered.")
    return tuple(dict.fromkeys(grant for each in answer.grants for grant in prepared.offered[each]))


def is_outdated(grant: Grant) -> bool:
    """Whether the folder does not hold what it held when it was given."""
    if not grant.content:
        return False
    with suppress(SkillKitError):
        return manifest_of(grant.name).digest != grant.content
    return True


def _bound(grant: Grant, skill: Skill | None) -> Grant:
    """Code that comes with skills is given as it is: what it becomes nobody has seen."""
    from skillkit.core.find.needs.siblings import is_of_skills

    if grant.kind != "read" or skill is None or not is_of_skills(grant.name, skill.metadata.plugin_root):
        return replace(grant, content="")
    return replace(grant, content=manifest_of(grant.name).digest)


def grantable(error: InterpreterNotAllowedError, command: ScriptCommand) -> InterpreterNotAllowedError:
    """The same, where a person may give the skill what it names."""
    message = (
        f"{error.interpreter!r} may not run scripts here. Allowed: {', '.join(error.allowed) or 'none'}. For {{0}}:"
    )
    return InterpreterNotAllowedError(
        message.format(command.skill_name),
        interpreter=error.interpreter,
        allowed=error.allowed,
        remedy=_giving_interpreter(command),
    )


def _giving_interpreter(command: ScriptCommand) -> str:
    return f"{BY_GRANT}{shlex.quote(command.skill_name)} --interpreter {command.interpreter}"


def _told(need: Need, policy: ScriptPolicy, tier: str) -> Need:
    """Where the walls open the whole network or none, a grant meets no host, and the remedy is one that works."""
    if need.kind != "host" or policy.allow_network or tier not in _ALL_OR_NONE:
        return need
    return replace(need, is_met=False, remedy=f"--network (the {tier} walls open the whole network or none)")


def _beside_a_copy(need: Need, skill: Skill, policy: ScriptPolicy, tier: str) -> Need:
    """Without mounts an approved script runs from a copy elsewhere, and finds nothing beside it, given or not."""
    from skillkit.core.find.needs.siblings import is_of_skills

    if need.kind != "read" or tier not in _ALL_OR_NONE or policy.approval == "never":
        return need
    if not is_of_skills(need.name, skill.metadata.plugin_root):
        return need
    return replace(need, is_met=False, remedy=f"bubblewrap's walls (the {tier} walls run a copy that lies elsewhere)")


def keeps_home(answer: OptionAnswer) -> bool:
    """Whether a changed skill goes on with the home that it had."""
    return not {SAME_AGAIN, KEEP_HOME}.isdisjoint(answer.grants)


def warning_of(grant: Grant) -> str:
    if grant.is_private:
        return _PRIVATE
    if grant.content:
        return _OTHERS_CODE
    is_obeyed = grant.kind == "write" and any(map(is_guarded_name, Path(grant.name).parts))
    return _OBEYED if is_obeyed else ""


def is_same_run(before: ScriptCommand, after: ScriptCommand) -> bool:
    """But for packages that were prepared meanwhile: they come with a Python of their own."""
    if before.prepared != after.prepared:
        before, after = (replace(each, argv=each.argv[1:]) for each in (before, after))
    return _what_runs(before) == _what_runs(after)


def _what_runs(command: ScriptCommand) -> tuple[object, ...]:
    """What a tick may not change: it gives to a run, and never makes it another one."""
    named = (command.skill_name, command.digest, command.script_name, command.interpreter, command.workspace)
    return *named, command.argv, command.stdin, command.session_id, command.call_id
