"""A skill and an OpenSSH key <-> `SKILL.sig`: who says that exactly this content is this skill, and since when.

Signed are four lines: the format's name, the skill's name, its digest, and when it was signed. `ssh-keygen` makes and
checks the signature in the namespace `skillkit`, so no signature made for git or for anything else counts here.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError, SourceRefusedError, SourceUnavailableError
from skillkit.core.models.digest import SIGNATURE_FILE
from skillkit.core.paths.files import Folder
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.values.text import visible
from skillkit.sources.programs import require_program, run_program

__all__ = ["NOT_SIGNED", "Signature", "allowed_signers_file", "check_signature", "sign_skill", "signature_in"]

FORMAT, NAMESPACE = "skillkit-skill-v1", "skillkit"
SIGNATURE_BYTES = 100_000
SECONDS = 30.0
SIGNING_SECONDS = 300.0  # a person may have to touch a key
HEAD = re.compile(rf"{FORMAT}\nsigned (\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\n(?=-----BEGIN SSH SIGNATURE-----\n)")
GOOD = re.compile(r"Good \"skillkit\" signature (?:for .+ )?with [A-Z0-9-]+ key (SHA256:[A-Za-z0-9+/=]+)")
TIME = "%Y-%m-%dT%H:%M:%SZ"
PURPOSE = "to sign skills and to check signatures"


class Signature(NamedTuple):
    """`signer` is the name that `allowed_signers` gives the key; empty where it gives none."""

    key: str = ""
    signer: str = ""
    signed_at: int = 0

    @property
    def is_there(self) -> bool:
        return bool(self.key)

    @property
    def shown(self) -> str:
        """Who signed: a name that the user gave, or the key's fingerprint."""
        return self.signer or self.key

    @property
    def moment(self) -> str:
        return datetime.fromtimestamp(self.signed_at, UTC).strftime(TIME)


NOT_SIGNED = Signature()


def allowed_signers_file(given: Path | None = None) -> Path | None:
    """As given, else OpenSSH's usual place; None where there is none."""
    if given is not None:
        return given.absolute()
    usual = Path(os.path.expanduser("~/.ssh/allowed_signers"))
    return usual if os.path.isfile(usual) else None


def signature_in(folder: Path) -> bytes | None:
    """What stands in a skill's SKILL.sig, which is never a link; None where there is none."""
    try:
        with Folder.of(folder) as top, open(top.open_file(SIGNATURE_FILE), "rb") as file:
            return file.read(SIGNATURE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceRefusedError(f"{folder / SIGNATURE_FILE} is no signature: {error.strerror or error}.") from error


def sign_skill(folder: Path, name: str, digest: str, key: Path) -> Signature:
    """Writes SKILL.sig, in the place of an earlier one."""
    program, now = require_program("ssh-keygen", PURPOSE), datetime.now(UTC).replace(microsecond=0)
    moment = now.strftime(TIME)
    argv = [program, "-Y", "sign", "-q", "-f", str(key.expanduser().absolute()), "-n", NAMESPACE]
    ended = run_program(argv, stdin=_signed_text(name, digest, moment), seconds=SIGNING_SECONDS)
    if ended.status != 0:
        said = visible(" ".join(ended.stderr.decode("utf-8", "replace").split())).rstrip(".")
        raise ConfigurationError(
            f"{key} cannot sign: {said or 'ssh-keygen failed'}. Name a private key, or a public one whose private key "
            "your ssh-agent has; a key with a passphrase needs the agent."
        )
    content = f"{FORMAT}\nsigned {moment}\n".encode() + ended.stdout
    with Folder.of(folder) as top:
        top.replace(SIGNATURE_FILE, content, 0o644)
    return check_signature(name, digest, content, None)


def check_signature(name: str, digest: str, content: bytes | None, allowed: Path | None) -> Signature:
    """Who signed exactly this; SourceRefusedError where somebody signed something else."""
    if content is None:
        return NOT_SIGNED
    head = HEAD.match(content[:SIGNATURE_BYTES].decode("utf-8", "replace"))
    if head is None or len(content) > SIGNATURE_BYTES:
        raise _bad(name, "is not in the format that 'skillkit sign' writes")
    text, signed_at = _signed_text(name, digest, head[1]), _seconds(name, head[1])
    with temporary_folder("signature") as folder, Folder.of(folder) as around:
        file = Path(folder, "signature")
        around.write_new(file.name, content[head.end() :])
        key = _key_of(name, file, text)
        return Signature(key, _signer_of(file, text, allowed), signed_at)


def _signed_text(name: str, digest: str, moment: str) -> bytes:
    return f"{FORMAT}\n{name}\n{digest}\n{moment}\n".encode("utf-8", "surrogatepass")


def _seconds(name: str, moment: str) -> int:
    try:
        return int(datetime.strptime(moment, TIME).replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise _bad(name, f"has a time that is none ({moment})") from error


def _key_of(name: str, file: Path, text: bytes) -> str:
    """Whose key it is, whoever that may be."""
    program = require_program("ssh-keygen", PURPOSE)
    ended = run_program(
        [program, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)], stdin=text, seconds=SECONDS
    )
    good = GOOD.search(ended.stdout.decode("utf-8", "replace"))
    if ended.status != 0 or good is None:
        raise _bad(name, "does not fit what is in the skill now")
    return good[1]


def _signer_of(file: Path, text: bytes, allowed: Path | None) -> str:
    """The first name by which the user's file knows the key now; empty for none."""
    if allowed is None:
        return ""
    if not os.path.isfile(allowed):
        raise SourceUnavailableError(f"{allowed} is no file of allowed signers. Correct --allowed-signers.")
    program = require_program("ssh-keygen", PURPOSE)
    found = run_program([program, "-Y", "find-principals", "-s", str(file), "-f", str(allowed)], seconds=SECONDS)
    for signer in found.stdout.decode("utf-8", "replace").splitlines() if found.status == 0 else ():
        words = ["-Y", "verify", "-f", str(allowed), "-I", signer, "-n", NAMESPACE, "-s", str(file)]
        if run_program([program, *words], stdin=text, seconds=SECONDS).status == 0:
            return signer
    return ""


def _bad(name: str, why: str) -> SourceRefusedError:
    return SourceRefusedError(
        f"The signature of {name!r} {why}: the skill or its SKILL.sig was changed after it was signed. Get it again "
        "from its author; 'skillkit sign' signs what is there now."
    )
