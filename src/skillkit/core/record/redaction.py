"""Arguments and other text -> the same without secrets, by the name of a key and by the shape of a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MASK", "SHOWN_CHARACTERS", "RedactedArguments", "plain_text", "redacted_arguments", "redacted_text"]

MASK = "[masked]"
SHOWN_CHARACTERS = 256

# A long text is read up to the window only. What is shown stops a margin earlier: a secret that the end of
# the window cuts short may have lost the shape it is known by. No shape below needs more than the margin.
_WINDOW_CHARACTERS = 8192
_MARGIN_CHARACTERS = 1024
_LEAST_DISTINCT = 10
_LEAST_USERINFO_LENGTH = 12
_SHORTEST_SHAPE = 12

# The last part of a name that says the value is a secret: password, db_password, dbPassword, DBPASSWORD.
_SECRET_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authkey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "sharedkey",
    "sessionkey",
    "sshkey",
    "deploykey",
    "servicekey",
    "storagekey",
    "subscriptionkey",
    "clientkey",
    "webhookkey",
    "authorization",
    "cookie",
    "credential",
    "bearer",
    "jwt",
    "otp",
    "sessionid",
    "sessid",
)
_SECRET_WORDS = frozenset(("auth", "cred", "creds", "csrf", "oauth", "pass", "session", "sid", "xsrf"))
# A name that ends so speaks about a secret without holding one: token_count, password_file.
_HARMLESS_ENDINGS = frozenset(
    ("count", "file", "length", "limit", "path", "ttl", "type", "budget", "usage", "policy", "size")
)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LABELS = ("name", "key", "header", "flag")
_USER_FLAGS = frozenset(("-u", "--user", "--userpwd"))
_PORT_OR_PATH = re.compile(r"[\d:.]+|[./~-].*", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<name>[\w.-]++)=(?=.)", re.DOTALL)


# Every pattern takes time linear in the text: what repeats is possessive or cannot start inside itself.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_STRUCTURE = re.compile(r"[=: \t]")
_USERINFO = re.compile(r"(?<=://)[^\s/\"'<>]+(?=@)")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|gh[opsur]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{8,}"
    r"|xapp-[A-Za-z0-9-]{8,}"
    r"|A(?:KIA|SIA|GPA|IDA|ROA)[A-Z0-9]{12,}"
    r"|AIza[A-Za-z0-9_-]{24,}"
    r"|ya29\.[A-Za-z0-9_-]{16,}"
    r"|(?:npm|hf|dop_v1)_[A-Za-z0-9]{20,}"
    r"|pypi-[A-Za-z0-9_-]{16,}"
    r"|SG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{16,}"
    r"|eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)*"
    r")"
)
_BETWEEN = r"\\{0,3}+[\"']?+[ \t]{0,4}+[=:][ \t]{0,4}+"
_HEADER = re.compile(rf"(?P<lead>(?i:(?:authorization|cookie)){_BETWEEN}\\{{0,3}}+[\"']?+)(?!\[masked\])[^\n\"'\\]++")
_BEARER = re.compile(r"(?P<lead>(?<![A-Za-z0-9])(?i:bearer)[ \t]{1,4}+)(?!\[masked\])[^\s\"',;]{6,}+")
_NAME = re.compile(rf"(?<![\w-])(?P<name>[\w-]++){_BETWEEN}|(?<!\S)(?P<flag>--?[A-Za-z][\w-]*+)[ \t]{{1,4}}+")
_VALUE = re.compile(
    r"(?P<quote>\")(?:[^\"\\\n]|\\.)*\"?"
    r"|(?P<single>')(?:[^'\\\n]|\\.)*'?"
    r"|(?P<escaped>\\{1,3}[\"'])(?:[^\"'\\\n]|\\(?![\\\"']).)*(?:\\{1,3}[\"'])?"
    r"|[^\s\"']++"
)
_KEYED = re.compile(
    r"(?P<lead>(?<![A-Za-z0-9])"
    r"(?i:(?:api)?key|secret|token|password|credential|auth|signature|sig|salt|seed|hmac)s?[^\w\n]{1,4}+)"
    r"(?P<value>[A-Za-z0-9+/_-]{32,}+={0,2}+)"
)


class RedactedArguments(NamedTuple):
    """What a person may read of the arguments, and the digest that stands for all of them."""

    shown: str
    digest: str


def redacted_arguments(arguments: object, argv: Sequence[str] = ()) -> RedactedArguments:
    """Arguments of a run without their secrets, at most 256 characters, and the SHA-256 of the whole."""
    if arguments is None and not argv:
        return NO_ARGUMENTS
    pieces, length = [], 0
    for piece in _argument_pieces(arguments, argv):
        pieces.append(piece)
        length += len(piece)
        if length > SHOWN_CHARACTERS:
            break
    shown = _cut("".join(pieces), SHOWN_CHARACTERS)
    try:
        whole = json.dumps({"arguments": arguments, "argv": list(argv)}, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        # Arguments without a JSON form never reach a script, but their refusal is recorded.
        whole = shown
    return RedactedArguments(shown, sha256(whole.encode("utf-8", "surrogatepass")).hexdigest())


NO_ARGUMENTS = RedactedArguments("", sha256(b'{"arguments":null,"argv":[]}').hexdigest())


def redacted_text(text: str) -> str:
    """Text such as stderr with every secret that shows itself by name or shape masked."""
    if _STRUCTURE.search(text) is None:
        # A single word: most arguments are one, and only its shape can give it away.
        return text if len(text) < _SHORTEST_SHAPE else _KEYED.sub(_masked_if_random, _SHAPES.sub(MASK, text))
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _USERINFO.sub(_masked_userinfo, text)
    text = _HEADER.sub(_masked_after_lead, text)
    text = _SHAPES.sub(MASK, text)
    text = _BEARER.sub(_masked_after_lead, text)
    text = _masked_by_name(text)
    return _KEYED.sub(_masked_if_random, text)


def plain_text(value: object) -> str:
    """What a value says of itself, or of which kind it is: a refusal is recorded whatever it is about."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - the caller's own code may raise anything
        return _type_name(value)


def _argument_pieces(arguments: object, argv: Sequence[str]) -> Iterator[str]:
    """The text to show, made piece by piece so that the rest costs nothing; `argv` first, it is short."""
    if argv:
        yield "argv "
        yield from _pieces(list(argv))
    if arguments is not None:
        yield " arguments " if argv else "arguments "
        yield from _pieces(arguments)


def _pieces(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _mapping_pieces(value)
    elif isinstance(value, (list, tuple)):
        before: object = None
        for index, item in enumerate(value):
            yield "," if index else "["
            yield from [_quoted(MASK)] if _is_flagged(before, item) else _pieces(item)
            before = item
        yield "]" if value else "[]"
    elif isinstance(value, str):
        yield _quoted(_shown_value(value))
    else:
        try:
            yield json.dumps(value, default=_type_name)[: SHOWN_CHARACTERS + 1]
        except ValueError:  # a whole number of more digits than Python writes
            yield _quoted(_type_name(value))


def _mapping_pieces(value: Mapping[object, object]) -> Iterator[str]:
    # {"name": "password", "value": "..."} names its secret beside it.
    is_labelled = any(isinstance(label := value.get(key), str) and _names_secret(label, "") for key in _LABELS)
    for index, (key, item) in enumerate(value.items()):
        yield "," if index else "{"
        name = plain_text(key)
        yield _quoted(_shown_value(name)) + ":"
        if _names_secret(name, item) or (is_labelled and name.lower() == "value"):
            yield _quoted(MASK)
        else:
            yield from _pieces(item)
    yield "}" if value else "{}"


def _is_flagged(before: object, item: object) -> bool:
    """Whether the word before says that this one is a secret: `--token VALUE`."""
    if not isinstance(before, str) or not before.startswith("-") or not isinstance(item, str):
        return False
    if before in _USER_FLAGS:
        return ":" in item
    if before == "-p":
        # A password for some programs, a port or a folder for others: what is plainly no secret stays.
        return _PORT_OR_PATH.fullmatch(item[:_WINDOW_CHARACTERS]) is None
    return "=" not in before and _names_secret(before, item)


def _shown_value(text: str) -> str:
    """A whole text as it may be shown; of a very long one only the beginning."""
    window = text[:_WINDOW_CHARACTERS]
    assignment = _ASSIGNMENT.match(window)
    if assignment is not None and _names_secret(assignment["name"], window[assignment.end() :]):
        return assignment[0] + MASK
    redacted = redacted_text(window)
    if len(text) > _WINDOW_CHARACTERS:
        return _cut(redacted, max(1, len(redacted) - _MARGIN_CHARACTERS))
    return redacted


def _names_secret(name: str, value: object) -> bool:
    """Whether a name promises a secret, however it is spelled; true, false and null are none."""
    if value is None or isinstance(value, bool):
        return False
    parts = [part.lower() for part in _NAME_PARTS.findall(name[:_MARGIN_CHARACTERS])]
    if not parts or parts[-1] in _HARMLESS_ENDINGS:
        return False
    if not _SECRET_WORDS.isdisjoint(parts):
        return True
    if "tokens" in parts and plain_text(value)[:_MARGIN_CHARACTERS].isdigit():
        return False
    joined = ""
    for part in parts:
        joined += part
        if joined.removesuffix("s").endswith(_SECRET_ENDINGS):
            return True
    return False


def _masked_by_name(text: str) -> str:
    """`password=...`, `"token": "..."` and `--secret ...` inside a text."""
    kept: list[str] = []
    done = position = 0
    while (named := _NAME.search(text, position)) is not None:
        position = named.end()
        name = named["name"] or named["flag"]
        # A harmless name's value is not skipped, it may hold names; nor read, that would be quadratic.
        value = _VALUE.match(text, position) if _names_secret(name, "") else None
        if value is None:
            continue
        if not _names_secret(name, value[0]):
            position = value.end()
            continue
        quote = value["quote"] or value["single"] or value["escaped"] or ""
        kept += text[done:position], quote, MASK, quote
        done = position = value.end()
    return "".join((*kept, text[done:]))


def _masked_after_lead(match: re.Match[str]) -> str:
    return match["lead"] + MASK


def _masked_userinfo(match: re.Match[str]) -> str:
    return MASK if ":" in match[0] or len(match[0]) >= _LEAST_USERINFO_LENGTH else match[0]


def _masked_if_random(match: re.Match[str]) -> str:
    value = match["value"]
    has_digit = any(character.isdigit() for character in value)
    return match["lead"] + MASK if has_digit and len(set(value)) >= _LEAST_DISTINCT else match[0]


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, with a sign of the cut, and no mask cut open."""
    if len(text) <= limit:
        return text
    end = limit - 1
    mask = text.rfind(MASK, max(0, end - len(MASK) + 1), end + len(MASK) - 1)
    return text[: mask if 0 <= mask < end else end] + "…"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
