"""Arguments and other text -> the same without secrets, by the name of a key and by the shape of a value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from skillkit.core.record.secret_shapes import mask_shapes
from skillkit.core.values.names import kind_of_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "CUT",
    "MASK",
    "SHOWN_CHARACTERS",
    "RedactedArguments",
    "cut_text",
    "plain_text",
    "redacted_arguments",
    "redacted_text",
]

MASK = "[masked]"
CUT = "…"
SHOWN_CHARACTERS = 256

# A long text is read up to the window only. What is shown stops a margin earlier: a secret that the end of
# the window cuts short may have lost the shape it is known by. No shape below needs more than the margin.
_WINDOW_CHARACTERS = 8192
_MARGIN_CHARACTERS = 1024
_LEAST_DISTINCT = 10
_LEAST_USERINFO_LENGTH = 12
_LONGEST_RANDOM = 128
_SHORTEST_SHAPE = 12

_LABELS = ("name", "key", "header", "flag")
_USER_FLAGS = frozenset(("-u", "-U", "--user", "--userpwd", "--proxy-user"))
_TWO_NUMBERS = re.compile(r"\d+:\d+")
_PORT_OR_PATH = re.compile(r"[\d:.]+|[./~-].*", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<name>[\w.-]++)=(?=.)", re.DOTALL)


# Every pattern takes time linear in the text: what repeats is bounded, possessive, or cannot start inside itself.
_PRIVATE_KEY = (
    r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|PuTTY-User-Key-File-\d.*?(?:Private-MAC: [0-9a-f]{0,128}|\Z)"
)
_STRUCTURE = re.compile(r"[=: \t<(%]")
_USERINFO = r"(?<=://)[^\s/\"'<>]+(?=@)|(?<=:thin:)[^\s/\"'<>]{1,64}/[^\s/\"'<>]{1,128}(?=@)"
_QUOTE = r"(?:\\{0,3}+[\"']|&quot;|&#34;)?+"
_BETWEEN = rf"{_QUOTE}\]?+[ \t]{{0,4}}+(?:=>|:=|={{1,2}}|:(?!/)|%3[AaDd])[ \t]{{0,4}}+"
_HEADER = (
    r"(?P<lead>(?i:(?:authorization|cookie|passphrase|mnemonic|(?:seed|recovery)[ _-]phrase))"
    rf"{_BETWEEN}{_QUOTE})(?!\[masked\])[^\n\"'\\<>]++"
)
_BEARER = r"(?P<lead>(?<![A-Za-z0-9])(?i:bearer)[ \t]{1,4}+)(?!\[masked\])[^\s\"',;]{6,}+"
_SCHEME = (
    r"(?P<lead>(?<![A-Za-z0-9])(?i:basic|digest|negotiate|ntlm|token|bot|apikey|sso-key)[ \t]{1,4}+)"
    r"(?P<value>[A-Za-z0-9+/._:~-]{8,}+={0,2}+)"
)
_USER = (
    r"(?P<lead>(?<!\S)(?:(?:-u|-U|--user|--userpwd|--proxy-user)(?:=|[ \t]{1,4}+)|-u(?=[A-Za-z]))[\"']?+)"
    r"(?!\d{1,9}:\d{1,9}(?![\w.]))(?P<value>[^\s:=\"']{1,100}+:[^\s\"']++)"
)
_SAID = (
    r"(?P<lead>(?i:\bidentified[ \t]{1,4}+(?:with[ \t]{1,4}+\w{1,40}+[ \t]{1,4}+)?by|\bpassword|\bsshpass[ \t]{1,4}+-p"
    r"|\blogin[ \t]{1,4}+\S{1,100}+[ \t]{1,4}+password)[ \t]{1,4}+)(?P<quote>[\"'])(?!\[masked\])[^\"'\n]++"
    r"|(?P<bare>(?i:\bsshpass[ \t]{1,4}+-p|\blogin[ \t]{1,4}+\S{1,100}+[ \t]{1,4}+password)[ \t]{1,4}+)"
    r"(?!\[masked\])[^\s\"']++"
)
_TAG = r"<(?P<name>[\w.:-]{1,100}+)(?:[ \t][^<>]{0,200}+)?>(?P<value>[^<]++)"
_LABELLED = (
    r"(?P<lead>(?i:\b(?:key|name|header|flag|id))[\"']?+[ \t]{0,4}+[:=][ \t]{0,4}+"
    r"[\"'](?P<name>[^\"'<>\n]{1,100}+)[\"']"
    r"[ \t,]{0,8}+[\"']?+(?i:value)[\"']?+[ \t]{0,4}+[:=][ \t]{0,4}+)(?P<quote>[\"'])(?!\[masked\])[^\"'\n]++"
)
_NAME = re.compile(
    rf"(?<![\w-])(?P<name>[\w-]++)(?:{_BETWEEN}|\((?=[\"']))|(?<!\S)(?P<flag>--?[A-Za-z][\w-]*+)[ \t]{{1,4}}+"
)
_NAMING = re.compile(r"[=:(%]|(?<!\S)-")
_VALUE = re.compile(
    r"(?P<quote>\")(?:[^\"\\\n]|\\.)*\"?"
    r"|(?P<single>')(?:[^'\\\n]|\\.)*'?"
    r"|(?P<escaped>\\{1,3}[\"'])(?:[^\"'\\\n]|\\(?![\\\"']).)*(?:\\{1,3}[\"'])?"
    r"|[|>][+-]?\d?[ \t]{0,4}+\n[ \t]{1,40}+[^\n]++"
    r"|\[(?!masked\])[^\]\n]*+\]?"
    r"|\{[^}\n]*+\}?"
    r"|[^\s\"'<]++"
)
_KEYED = re.compile(
    r"(?P<lead>(?<![A-Za-z0-9])"
    r"(?i:(?:api)?key|secret|token|password|credential|auth|signature|sig|salt|seed|hmac)s?[^\w\n]{1,4}+)"
    r"(?P<value>[A-Za-z0-9+/_-]{32,}+={0,2}+)"
)
_RANDOM = re.compile(r"[\"']?(?P<random>[A-Za-z0-9+/_=%-]{20,128}+)")


class RedactedArguments(NamedTuple):
    """What a person may read of the arguments, and the digest that stands for all of them."""

    shown: str
    digest: str


_FOLDER = re.compile(r"/(?:[\w.@+ -]{1,100}/)*+[\w.@+ -]{0,100}")
_NO_SECRETS = {"PWD": _FOLDER, "OLDPWD": _FOLDER, "session": re.compile(r"[a-z]{2,12}(?:-[a-z]{2,12})?")}


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
    shown = cut_text("".join(pieces), SHOWN_CHARACTERS)
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
        return text if len(text) < _SHORTEST_SHAPE else _KEYED.sub(_masked_if_random, mask_shapes(text, MASK))
    lowered = text.lower()
    for hints, pattern, replacement in _STEPS:
        for hint in hints:
            if hint in lowered:
                # Compiled at first need and kept by the library: most texts need few of them.
                text = re.compile(pattern).sub(replacement, text)
                break
        if pattern is _HEADER:
            text = mask_shapes(text, MASK)
    if _NAMING.search(text) is not None:
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
        return _is_user_and_password(item)
    if before == "-p":
        # A password for some programs, a port or a folder for others: what is plainly no secret stays.
        return _PORT_OR_PATH.fullmatch(item[:_WINDOW_CHARACTERS]) is None
    return "=" not in before and _names_secret(before, item)


def _shown_value(text: str) -> str:
    """A whole text as it may be shown; of a very long one only the beginning."""
    window = text[:_WINDOW_CHARACTERS]
    assignment = _ASSIGNMENT.match(window)
    if assignment is not None:
        name, value = assignment["name"], window[assignment.end() :]
        if _names_secret(name, value) or (name in _USER_FLAGS and _is_user_and_password(value)):
            return assignment[0] + MASK
    redacted = redacted_text(window)
    if len(text) > _WINDOW_CHARACTERS:
        return cut_text(redacted, max(1, len(redacted) - _MARGIN_CHARACTERS))
    return redacted


def _names_secret(name: str, value: object) -> bool:
    """Whether a name promises a secret, however it is spelled; true, false and null are none."""
    if value is None or isinstance(value, bool) or _is_plainly_none(name, value):
        return False
    kind = kind_of_name(name[:_MARGIN_CHARACTERS])
    if kind == "counted":
        return not plain_text(value)[:_MARGIN_CHARACTERS].isdigit()
    return kind == "secret" or (kind == "weak" and isinstance(value, str) and _looks_random(value))


def _is_plainly_none(name: str, value: object) -> bool:
    """The shell's own folder, and a session that a person named by a word: names of secrets elsewhere."""
    plain = _NO_SECRETS.get(name.lstrip("-"))
    if plain is None or not isinstance(value, str):
        return False
    text = value[:_WINDOW_CHARACTERS].strip("\"'")
    return plain.fullmatch(text) is not None and not any(map(_looks_random, text.split("/")))


def _looks_random(value: str) -> bool:
    """Long, without spaces, of many characters, letters and digits among them: no word and no number."""
    text = value[:_LONGEST_RANDOM]
    has_both = any(each.isdigit() for each in text) and any(each.isalpha() for each in text)
    return has_both and len(set(text)) >= _LEAST_DISTINCT and _RANDOM.fullmatch(text) is not None


def _is_user_and_password(value: str) -> bool:
    """`user:password`; two numbers are a user and a group."""
    return ":" in value and _TWO_NUMBERS.fullmatch(value[:_MARGIN_CHARACTERS]) is None


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
            random = _RANDOM.match(text, position) if kind_of_name(name[:_MARGIN_CHARACTERS]) == "weak" else None
            if random is not None and _names_secret(name, random["random"]):
                kept += text[done : random.start("random")], MASK
                done = position = random.end()
            continue
        if not _names_secret(name, value[0]):
            position = value.end()
            continue
        quote = value["quote"] or value["single"] or value["escaped"] or ""
        kept += text[done:position], quote, MASK, quote
        done = position = value.end()
    return "".join((*kept, text[done:]))


def _masked_if_said(match: re.Match[str]) -> str:
    return f"{match['lead']}{match['quote']}{MASK}" if match["lead"] else f"{match['bare']}{MASK}"


def _masked_element(match: re.Match[str]) -> str:
    value = match["value"]
    if MASK in value or not _names_secret(match["name"].rpartition(":")[2], value.strip()):
        return match[0]
    return match[0][: -len(value)] + MASK


def _masked_if_labelled(match: re.Match[str]) -> str:
    return f"{match['lead']}{match['quote']}{MASK}" if _names_secret(match["name"], "") else match[0]


def _masked_if_encoded(match: re.Match[str]) -> str:
    """Of plain words there is one in any text after `basic` or `token`."""
    value = match["value"]
    is_word = not any(character.isdigit() or character == "=" for character in value)
    return match[0] if is_word else match["lead"] + MASK


def _masked_after_lead(match: re.Match[str]) -> str:
    return match["lead"] + MASK


def _masked_userinfo(match: re.Match[str]) -> str:
    has_two = ":" in match[0] or "/" in match[0]
    return MASK if has_two or len(match[0]) >= _LEAST_USERINFO_LENGTH else match[0]


def _masked_if_random(match: re.Match[str]) -> str:
    value = match["value"]
    has_digit = any(character.isdigit() for character in value)
    return match["lead"] + MASK if has_digit and len(set(value)) >= _LEAST_DISTINCT else match[0]


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters, with a sign of the cut, and no mask cut open."""
    if len(text) <= limit:
        return text
    end = limit - 1
    mask = text.rfind(MASK, max(0, end - len(MASK) + 1), end + len(MASK) - 1)
    return text[: mask if 0 <= mask < end else end] + CUT


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


# Before a pattern is tried, one of its hints must stand in the text; in this order.
_STEPS: tuple[tuple[tuple[str, ...], str, str | Callable[[re.Match[str]], str]], ...] = (
    (("private key", "putty-user"), _PRIVATE_KEY, MASK),
    (("@",), _USERINFO, _masked_userinfo),
    (("authorization", "cookie", "phrase", "mnemonic"), _HEADER, _masked_after_lead),
    (("bearer",), _BEARER, _masked_after_lead),
    (("basic", "digest", "negotiate", "ntlm", "token", "bot", "apikey", "sso-key"), _SCHEME, _masked_if_encoded),
    (("-u", "--proxy-user"), _USER, _masked_after_lead),
    (("password", "identified", "sshpass"), _SAID, _masked_if_said),
    (("<",), _TAG, _masked_element),
    (("value",), _LABELLED, _masked_if_labelled),
)
