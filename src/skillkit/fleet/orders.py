"""A prepared run -> its order, and back: all that a worker is told, and the id that binds a person's answer to it.

Theory of operation. The order is a text, always the same for the same run, and its id is the digest of that text. A
question about the run carries the order and has its id; so do the run's row, which the database checks, and the
worker, which recomputes it. Nothing of one machine enters it but what a person is shown: places are roles, an
interpreter is a name. The walls in it are those that were shown: a worker runs within them, or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any

from skillkit.core.exceptions import ConfigurationError, ScriptRefusedError
from skillkit.core.store.environments import KINDS
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.policy import FIELDS, Limits, ScriptPolicy, loosenings, require_timeout, value_of
from skillkit.core.values.questions import ORDERED
from skillkit.core.values.runs import ScriptCommand

__all__ = [
    "INPUTS_BYTES",
    "MOST_INPUTS",
    "Input",
    "Lock",
    "Order",
    "policy_from",
    "policy_text",
    "portable",
    "refuse_looser",
    "travelling",
]

VERSION = 2
MOST_OUTPUT = 10_000_000
MOST_INPUTS = 1_000
INPUTS_BYTES = 500_000_000
"""Of one order, all together: a worker writes them before it knows whether anybody approved the order."""
# Of the machine that runs, and of nobody else; places cannot travel at all.
OF_THE_MACHINE = frozenset(
    ("warm", "limits.warm_sandboxes", "limits.warm_megabytes", "readable_paths", "writable_paths", "working_directory")
)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FOLDER = re.compile(r"[^/\0]{1,255}")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that goes along: what the caller named it, and what it holds."""

    path: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Lock:
    """Packages of one language: the digest of the lock that names them."""

    kind: str
    digest: str


@dataclass(frozen=True, slots=True)
class Order:
    """One run, as it was decided about; `digest` is of the whole skill, `package` of the bytes that carry it."""

    skill: str
    folder: str
    digest: str
    package: str
    script: str
    interpreter: str
    words: tuple[str, ...]
    stdin: str
    """The digest of what it is fed; empty for nothing."""
    timeout: float
    output_limit: int
    session_id: str
    call_id: str
    from_instructions: str
    workspace: str
    """Empty, or `NAME/folder/in/it` of a volume that each worker maps."""
    inputs: tuple[Input, ...]
    policy: str
    walls: str
    """The bounds that a person is shown, as text."""
    homes: str = ""
    """The name of the volume that holds the home, where its policy keeps one; else empty."""
    locks: tuple[Lock, ...] = ()
    """The packages that a person approved for this content."""
    is_plugin: bool = False
    """Whether the skill's folder is its plugin's too, which scripts are told."""

    def to_text(self) -> str:
        return json.dumps({"order": VERSION, **asdict(self)}, sort_keys=True, separators=(",", ":"))

    @property
    def id(self) -> str:
        return id_of(self.to_text())

    @property
    def blobs(self) -> tuple[str, ...]:
        """Digests of all bytes that a worker needs."""
        return tuple(dict.fromkeys(filter(None, (self.package, self.stdin, *(each.digest for each in self.inputs)))))

    @property
    def keeps_home(self) -> bool:
        """Whether it finds what earlier runs left in its home."""
        return bool(json.loads(self.policy)["home"] == "kept")

    @property
    def bounds(self) -> Bounds:
        return require_bounds(self.walls)

    @classmethod
    def from_text(cls, text: str) -> Order:
        """As it was written, or ScriptRefusedError: another text of the same meaning is another order."""
        try:
            told = json.loads(text)
            if told.pop("order") != VERSION:
                raise ScriptRefusedError.because("The order is of another version of skillkit", "Use one everywhere.")
            inputs = tuple(Input(**each) for each in told.pop("inputs"))
            locks = tuple(Lock(**each) for each in told.pop("locks"))
            order = cls(**{**told, "words": tuple(told["words"])}, inputs=inputs, locks=locks)
            is_same = order.to_text() == text and order.keeps_home == bool(order.homes)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ScriptRefusedError.because(f"The order cannot be read: {error}", "Run it again.") from error
        if not is_same or not order._is_plausible():
            raise ScriptRefusedError.because("The order is not as skillkit writes one", "Run it again.")
        return order

    def _is_plausible(self) -> bool:
        texts = (
            *("skill", "script", "interpreter", "session_id", "call_id"),
            *("from_instructions", "workspace", "policy", "homes"),
        )
        named = (*(each.digest for each in self.inputs), *(each.digest for each in self.locks))
        digests = (self.digest, self.package, *filter(None, [self.stdin]), *named)
        require_timeout(self.timeout)
        kinds = [each.kind for each in self.locks]
        paths = [each.path for each in self.inputs]
        words: tuple[object, ...] = (*(getattr(self, name) for name in texts), *self.words, *digests, *kinds, *paths)
        return (
            all(isinstance(word, str) for word in words)
            and all(_DIGEST.fullmatch(each) for each in digests)
            and bool(_FOLDER.fullmatch(self.folder))
            and self.folder not in (".", "..")
            and 0 < self.output_limit <= MOST_OUTPUT
            and kinds == sorted({*kinds} & {*KINDS})
            and self._has_plausible_inputs()
        )

    def _has_plausible_inputs(self) -> bool:
        sizes = [each.size for each in self.inputs]
        are_whole = all(type(size) is int and size >= 0 for size in sizes)
        return are_whole and len(sizes) <= MOST_INPUTS and sum(sizes) <= INPUTS_BYTES


def id_of(text: str) -> str:
    """Told from the ids of all other questions, so that no answer to one of those is an answer to an order."""
    return f"{ORDERED}{sha256(text.encode('utf-8')).hexdigest()}"


def require_bounds(text: str) -> Bounds:
    bounds = Bounds.from_text(text)
    if bounds is None:
        raise ScriptRefusedError.because("The walls of the order cannot be read", "Run it again.")
    return bounds


def portable(bounds: Bounds, workspace: str = "") -> Bounds:
    """The same without what is one machine's own: where its interpreter lies, and where a volume is mapped."""
    return replace(bounds, program=(), workspace=f"volume:{workspace}" if workspace else "")


def travelling(policy: ScriptPolicy, *, has_volume: bool = False, has_homes: bool = False) -> ScriptPolicy:
    """What of a policy holds for a run elsewhere: no path of this machine is opened, a home only in a volume kept."""
    for name in ("readable_paths", "writable_paths"):
        if paths := getattr(policy, name):
            raise ConfigurationError(
                f"{name} opens {paths[0]}, which lies on this machine: runs happen on workers, and a local path cannot "
                "travel. Leave it out, send files as inputs, or name a volume that each worker maps."
            )
    starts_in = policy.working_directory if has_volume else "skill"
    home = policy.home if has_homes else "fresh"
    return replace(policy, grant_argument_paths=False, home=home, working_directory=starts_in)


def policy_text(policy: ScriptPolicy) -> str:
    told = {name: value_of(policy, name) for name in FIELDS if name not in OF_THE_MACHINE}
    told["working_directory"] = policy.working_directory
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def policy_from(text: str, own: ScriptPolicy) -> ScriptPolicy:
    """The policy of an order on a machine with this one; what is the machine's stays its own."""
    try:
        told: Mapping[str, Any] = json.loads(text)
        limits = {each.name: told.get(f"limits.{each.name}") for each in fields(Limits)}
        ordered = replace(own.limits, **{name: value for name, value in limits.items() if value is not None})
        plain = {name: value for name, value in told.items() if not name.startswith("limits.")}
        if told.keys() != {name for name in FIELDS if name not in OF_THE_MACHINE} | {"working_directory"}:
            raise ScriptRefusedError.because("The order's policy has other fields than here", "Use one version.")
        return replace(own, **plain, readable_paths=(), writable_paths=(), limits=ordered)
    except (ValueError, TypeError, AttributeError, ConfigurationError) as error:
        raise ScriptRefusedError.because(f"The order's policy cannot be read: {error}", "Run it again.") from error


def refuse_looser(own: ScriptPolicy, ordered: ScriptPolicy) -> None:
    """An order may ask for less than the worker's own policy gives, never for more."""
    skipped = {f"policy.{name}" for name in OF_THE_MACHINE}
    for each in loosenings(own, ordered):
        if each.key not in skipped:
            reason = f"The order's {each.key} is {each.given!r}, looser than the worker's own {each.own!r}"
            raise ScriptRefusedError.because(reason, f"Order less, or let the worker allow it: {each.reason}.")


def words_with(order: Order, placed: Mapping[str, str]) -> tuple[str, ...]:
    """Its words with the inputs where they lie on this machine."""
    return tuple(_placed(word, placed) for word in order.words)


def _placed(word: str, placed: Mapping[str, str]) -> str:
    option, separator, value = word.partition("=")
    if separator and option.startswith("-") and value in placed:
        return f"{option}={placed[value]}"
    return placed.get(word, word)


def order_of(
    command: ScriptCommand,
    bounds: Bounds,
    policy: ScriptPolicy,
    *,
    package: str,
    workspace: str = "",
    inputs: tuple[Input, ...] = (),
    homes: str = "",
    locks: tuple[Lock, ...] = (),
    is_plugin: bool = False,
) -> Order:
    """`homes` is the volume that holds homes, where there is one."""
    return Order(
        skill=command.skill_name,
        folder=command.base_directory.name,
        digest=command.digest,
        package=package,
        script=command.script_name,
        interpreter=command.interpreter,
        words=command.script_arguments,
        stdin=sha256(command.stdin).hexdigest() if command.stdin else "",
        timeout=command.timeout,
        output_limit=command.output_limit,
        session_id=command.session_id or "",
        call_id=command.call_id,
        from_instructions=command.from_instructions,
        workspace=workspace,
        inputs=inputs,
        policy=policy_text(policy),
        walls=bounds.to_text(),
        homes=homes if policy.home == "kept" else "",
        locks=locks,
        is_plugin=is_plugin,
    )
