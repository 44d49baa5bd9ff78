"""Redaction: what is masked, what stays readable, and that nothing slips through the cut."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit.core.record.redaction import redacted_arguments, redacted_text

SECRET_NAMES = [
    "password",
    "PASSWD",
    "db_password",
    "dbPassword",
    "DBPASSWORD",
    "client-secret",
    "token",
    "accessToken",
    "GITHUB_TOKEN",
    "api_key",
    "apikey",
    "X-API-Key",
    "APIKey",
    "Authorization",
    "cookie",
    "privateKey",
    "AWS_SECRET_ACCESS_KEY",
    "credentials",
    "session",
    "session_id",
    "sessionToken",
    "passphrase",
    "secrets",
    "auth",
]
HARMLESS_NAMES = [
    "author",
    "key",
    "path",
    "tokenizer",
    "secretary",
    "compass",
    "token_count",
    "password_file",
    "obsession",
]
SHAPES = [
    "sk-proj-abcdefghijklmnop1234",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghij0123456789",
    "xoxb-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_value_under_a_secret_name_is_masked_at_any_depth(name: str) -> None:
    arguments = {"deep": [{name: "hunter2"}, {name: ["hunter2", {"x": "hunter2"}]}]}
    masked = json.dumps({"deep": [{name: "[masked]"}, {name: "[masked]"}]}, separators=(",", ":"))
    assert redacted_arguments(arguments, ()).shown == f"arguments {masked}"


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_value_after_a_secret_flag_is_masked(name: str) -> None:
    argv = [f"--{name}", "hunter two", f"--{name}=hunter two", f"{name}=hunter two", "--out", "x.json"]
    masked = [f"--{name}", "[masked]", f"--{name}=[masked]", f"{name}=[masked]", "--out", "x.json"]
    assert redacted_arguments(None, argv).shown == "argv " + json.dumps(masked, separators=(",", ":"))


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_harmless_name_keeps_its_value(name: str) -> None:
    assert redacted_arguments({name: "plain"}, [f"--{name}", "plain"]).shown == (
        f'argv ["--{name}","plain"] arguments {{"{name}":"plain"}}'
    )


def test_numbers_of_tokens_and_truth_values_are_no_secrets() -> None:
    arguments = {"max_tokens": 4096, "password": None, "auth": True, "pin_token": 1234}
    assert redacted_arguments(arguments, ()).shown == (
        'arguments {"max_tokens":4096,"password":null,"auth":true,"pin_token":"[masked]"}'
    )


def test_lists_of_words_inside_the_arguments_are_read_as_flags() -> None:
    assert redacted_arguments({"args": ["--token", "abc", "file"]}, ()).shown == (
        'arguments {"args":["--token","[masked]","file"]}'
    )


def test_a_value_named_beside_itself_is_masked() -> None:
    arguments = {"env": [{"name": "API_TOKEN", "value": "abc"}, {"name": "LANG", "value": "C"}]}
    assert redacted_arguments(arguments, ()).shown == (
        'arguments {"env":[{"name":"API_TOKEN","value":"[masked]"},{"name":"LANG","value":"C"}]}'
    )


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        pytest.param(["-p", "hunter2"], ["-p", "[masked]"], id="a word after -p"),
        pytest.param(["-p", "8080"], ["-p", "8080"], id="a port"),
        pytest.param(["-p", "8080:80"], ["-p", "8080:80"], id="two ports"),
        pytest.param(["-p", "./build"], ["-p", "./build"], id="a path"),
        pytest.param(["-u", "me:hunter2"], ["-u", "[masked]"], id="user and password"),
        pytest.param(["-u", "me"], ["-u", "me"], id="user alone"),
        pytest.param(["-H", "Authorization: Basic bWU6cHc="], ["-H", "Authorization: [masked]"], id="header"),
    ],
)
def test_short_flags_are_masked_unless_plainly_harmless(argv: list[str], shown: list[str]) -> None:
    assert redacted_arguments(None, argv).shown == "argv " + json.dumps(shown, separators=(",", ":"))


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize("frame", ["{}", "see {} there", '{{"x": "{}"}}', "a={}", "(x-{})", "line\n{}\nline"])
def test_a_secret_known_by_its_shape_is_masked_anywhere(secret: str, frame: str) -> None:
    assert redacted_text(frame.format(secret)) == frame.format("[masked]")
    assert secret not in redacted_arguments({"x": frame.format(secret)}, [secret]).shown


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Bearer abc.def-ghi", "Bearer [masked]"),
        ("curl -H 'authorization: bearer xyz123' h", "curl -H 'authorization: [masked]' h"),
        ("Cookie: a=b; c=d\nnext", "Cookie: [masked]\nnext"),
        ("postgres://me:pa%20ss@host/db", "postgres://[masked]@host/db"),
        ("https://me:p@ss@host/", "https://[masked]@host/"),
        ("https://abcdef0123456789@host/", "https://[masked]@host/"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("http://host:8080/a@b", "http://host:8080/a@b"),
        ("https://h/?page=2&token=abc", "https://h/?page=2&token=[masked]"),
        ('{"password": "a \\"b\\" c", "x": 1}', '{"password": "[masked]", "x": 1}'),
        ('{\\"token\\":\\"abc\\",\\"y\\":2}', '{\\"token\\":\\"[masked]\\",\\"y\\":2}'),
        ("password='it is long' ok", "password='[masked]' ok"),
        ("password: hunter2 rejected", "password: [masked] rejected"),
        ("tool --secret s3cr3t --out x", "tool --secret [masked] --out x"),
        ("key 0123456789abcdef0123456789abcdef", "key [masked]"),
        ("sha256 0123456789abcdef0123456789abcdef", "sha256 0123456789abcdef0123456789abcdef"),
        ("the key is on the table", "the key is on the table"),
        ("total_tokens=42 time: 3 s", "total_tokens=42 time: 3 s"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- b",
            "a [masked] b",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "[masked]"),
        ("-----BEGIN PUBLIC KEY-----\nMIIE", "-----BEGIN PUBLIC KEY-----\nMIIE"),
    ],
)
def test_text_is_masked_where_it_says_so_and_nowhere_else(text: str, masked: str) -> None:
    assert redacted_text(text) == masked


def test_the_digest_covers_the_whole_and_the_unmasked() -> None:
    text = json.dumps({"arguments": {"token": "abc"}, "argv": ["x"]}, sort_keys=True, separators=(",", ":"))
    redacted = redacted_arguments({"token": "abc"}, ["x"])
    assert redacted.digest == hashlib.sha256(text.encode()).hexdigest()
    assert redacted.digest != redacted_arguments({"token": "abd"}, ["x"]).digest
    assert redacted_arguments(["x"], ()).digest != redacted_arguments(None, ["x"]).digest


def test_nothing_given_shows_nothing() -> None:
    assert redacted_arguments(None, ()).shown == ""


def test_a_mask_is_never_cut_open() -> None:
    for pad in range(215, 262):
        shown = redacted_arguments(None, ["x" * pad, "--token=hunter2hunter2"]).shown
        assert len(shown) <= 256, pad
        assert "hunter2" not in shown, pad
        assert shown.replace("[masked]", "").count("[") == 1, pad


@pytest.mark.parametrize("pad", [0, 200, 240, 250, 7100, 7168, 8150, 8170, 8190, 8192, 9000])
def test_a_secret_that_straddles_a_border_does_not_show_its_beginning(pad: int) -> None:
    for secret, filler in product(SHAPES, ("x ", "[ghp_abcdefghijklmnopqrstuvwxyz0123456789] ")):
        text = (filler * (pad // len(filler) + 1))[:pad] + " " + secret
        shown = redacted_arguments({"x": text}, ()).shown
        assert secret[:9] not in shown
        assert len(shown) <= 256


def test_ten_megabytes_in_any_form_are_cut_quickly_and_digested_whole() -> None:
    for text in ("a" * 10_000_000, "eyJ-" * 2_500_000, "token=" * 1_600_000, "://a:" * 2_000_000, '"\\' * 5_000_000):
        one, other = redacted_arguments({"x": text}, ()), redacted_arguments({"x": text + "!"}, ())
        assert len(one.shown) <= 256
        assert one.digest != other.digest


@pytest.mark.parametrize(
    "unit", ["token:", "://a:", 'password="', "--a ", "\\", "key ", "eyJ-", "-----BEGIN PRIVATE KEY-----"]
)
def test_repetition_does_not_make_masking_slow(unit: str) -> None:
    # Quadratic time would need hours here; the suite's own timeout is the judge.
    redacted_text(unit * (1_000_000 // len(unit)))


def test_arguments_without_a_json_form_are_shown_and_not_raised() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for arguments in (circle, {"x": object()}, {"x": {1, 2}}, float("nan")):
        redacted = redacted_arguments(arguments, ())
        assert len(redacted.shown) <= 256
        assert len(redacted.digest) == 64
    assert redacted_arguments({"x": object()}, ()).shown == 'arguments {"x":"<object>"}'


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
planted = st.text("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", min_size=12, max_size=400)


@given(plain_values, plain_values, st.sampled_from(SECRET_NAMES), planted, st.integers(0, 300))
@settings(deadline=None)
def test_a_planted_secret_never_shows(before: Any, after: Any, name: str, secret: str, pad: int) -> None:
    marked = "Q7" + secret
    filler = "." * pad
    forms = [
        redacted_arguments({"a": before, "pad": filler, name: marked, "z": after}, ()).shown,
        redacted_arguments([before, filler, {"inner": [{name: marked}]}, after], ()).shown,
        redacted_arguments({"a": before}, [filler, f"--{name}", marked]).shown,
        redacted_arguments(None, [filler, f"{name}={marked}", "end"]).shown,
        redacted_arguments(after, [f"{filler} {name}: {marked} end"]).shown,
        redacted_arguments(after, [f"https://me:{marked}@host/{filler}"]).shown,
        redacted_arguments(None, [f"{filler} ghp_{marked}{'0' * 16} end"]).shown,
        redacted_text(f"{filler} --{name} {marked} end"),
    ]
    for shown in forms:
        assert marked[:8] not in shown


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_text_is_accepted_and_masking_twice_is_masking_once(text: str, argv: list[str]) -> None:
    once = redacted_text(text)
    assert redacted_text(once) == once
    assert len(redacted_arguments(text, argv).shown) <= 256


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["PWD=/home/ana/project"], True),
        (["--env", "OLDPWD=/home/me/my project"], True),
        (["--session", "work"], True),
        (["--session=late-night"], True),
        (["PWD=hunter2"], False),
        (["Driver=x;UID=sa;PWD=/aB3xQ9zR7tK2mN8pL4wZ"], False),
        (["--session", "a8f5f167f44f4964e6c998dee827110c"], False),
        (["--session", "hunter2"], False),
        (["pwd=/not/the/shells"], False),
    ],
)
def test_the_shells_folder_and_a_session_with_a_plain_name_are_no_secrets(argv: list[str], shown: bool) -> None:
    told = redacted_arguments(None, argv).shown
    assert ("[masked]" not in told) is shown
    if shown:
        assert "[masked]" not in redacted_text(" ".join(argv))
