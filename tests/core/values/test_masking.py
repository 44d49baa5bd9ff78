"""Keys in bytes and texts, in every form that is covered, however they are split."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillkit.core.values.masking import MASK, Masker

KEY = "sk-live/Ab+9=x é"
RAW = KEY.encode()

FORMS = {
    "plain": RAW,
    "base64": base64.b64encode(RAW),
    "base64 one in": base64.b64encode(b"x" + RAW),
    "base64 two in": base64.b64encode(b"xy" + RAW + b"z"),
    "base64 url": base64.urlsafe_b64encode(b"user:" + RAW + b"!"),
    "url": quote(KEY, safe="").encode(),
    "url path": quote(KEY).encode(),
    "url form": quote_plus(KEY).encode(),
    "url small": b"sk-live%2fAb%2b9%3dx%20%c3%a9",
    "hex": RAW.hex().encode(),
    "HEX": RAW.hex().upper().encode(),
    "json": json.dumps(KEY).encode(),
    "json text": json.dumps(KEY, ensure_ascii=False).replace("/", "\\/").encode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_is_masked_and_what_is_around_it_stays(form: bytes) -> None:
    masked = Masker([KEY]).mask(b"before " + form + b" after")
    assert MASK.encode() in masked
    assert masked.startswith(b"before ")
    assert masked.endswith(b" after")
    assert len(masked) - len(b"before  after") <= len(MASK) + 12, "at most what shares a byte with its neighbours"


PASSWORD = "Tr!ck(y)~p*ss/w0rd+x & 'q' é"
# What each program prints for this password.
OF_PROGRAMS = {
    "encodeURIComponent": "Tr!ck(y)~p*ss%2Fw0rd%2Bx%20%26%20'q'%20%C3%A9",
    "encodeURI": "Tr!ck(y)~p*ss/w0rd+x%20&%20'q'%20%C3%A9",
    "URLSearchParams": "Tr%21ck%28y%29%7Ep*ss%2Fw0rd%2Bx+%26+%27q%27+%C3%A9",
    "a query of URL": "Tr!ck(y)~p*ss/w0rd+x%20&%20%27q%27%20%C3%A9",
    "a path of URL": "Tr!ck(y)~p*ss/w0rd+x%20&%20'q'%20%C3%A9",
    "PHP's urlencode": "Tr%21ck%28y%29%7Ep%2Ass%2Fw0rd%2Bx+%26+%27q%27+%C3%A9",
    ".NET's HttpUtility": "Tr!ck(y)%7ep*ss%2fw0rd%2bx+%26+%27q%27+%c3%a9",
    "Go's PathEscape": "Tr%21ck%28y%29~p%2Ass%2Fw0rd+x%20&%20%27q%27%20%C3%A9",
    "Python's quote": quote(PASSWORD),
    "Python's quote_plus": quote_plus(PASSWORD),
    "every byte": "".join(f"%{byte:02x}" for byte in PASSWORD.encode()),
}


@pytest.mark.parametrize("form", OF_PROGRAMS.values(), ids=OF_PROGRAMS)
def test_a_key_is_masked_as_any_program_percent_encodes_it(form: str) -> None:
    assert Masker([PASSWORD]).mask_text(f"<{form}>") == f"<{MASK}>"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("key", [PASSWORD, "a;b,c/d?e:f@g&h=i+j$k#l", "[x]{y}|z^`w%<\\>", KEY])
def test_no_form_in_which_javascript_writes_a_key_comes_through(key: str) -> None:
    program = """
        const key = process.argv[1], url = new URL("https://example.com/");
        url.username = url.password = key;
        const said = [encodeURIComponent(key), encodeURI(key), String(new URLSearchParams({ k: key }))];
        console.log(JSON.stringify([key, ...said, url.username, url.password]));
    """
    ended = subprocess.run(["node", "-e", program, key], capture_output=True, text=True, check=True)
    for form in json.loads(ended.stdout):
        assert Masker([key]).mask_text(form) in (MASK, f"k={MASK}")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_split_anywhere_over_writes_is_masked(form: bytes) -> None:
    masker = Masker([KEY])
    whole = masker.mask(b"<" + form + b">")
    for at in range(len(form) + 2):
        data, heard = b"<" + form + b">", list[bytes]()
        stream = masker.stream(heard.append)
        for piece in (data[:at], data[at:]):
            stream.feed(piece)
        stream.close()
        assert b"".join(heard) == whole
    heard = []
    stream = masker.stream(heard.append)
    for byte in b"<" + form + b">":
        stream.feed(bytes([byte]))
    stream.close()
    assert b"".join(heard) == whole


def test_what_cannot_be_a_key_is_passed_on_at_once() -> None:
    heard: list[bytes] = []
    stream = Masker([KEY]).stream(heard.append)
    stream.feed(b"progress 10 %\n")
    assert heard == [b"progress 10 %\n"]


def test_short_values_and_none_are_left_alone() -> None:
    assert not Masker(["short", "1234567"])
    assert Masker(["short"]).mask(b"short") == b"short"
    assert Masker().mask_text("anything") == "anything"


def test_a_beginning_at_the_end_of_what_was_cut_is_masked() -> None:
    masker = Masker([KEY])
    assert masker.mask(b"a " + RAW[:9], is_cut=True) == b"a [masked]"
    assert masker.mask(b"a " + RAW[:9]) == b"a " + RAW[:9]
    assert masker.mask(b"a " + RAW[:3], is_cut=True) == b"a " + RAW[:3]


def test_keys_inside_each_other_and_beside_each_other_leave_nothing() -> None:
    masker = Masker(["aaaaaaaa", "aaaabbbb", "bbbbcccc"])
    for data in (b"aaaaaaaabbbbcccc", b"aaaabbbbcccc", b"aaaaaaaaaaaa"):
        masked = masker.mask(data)
        assert not any(value in masked for value in (b"aaaaaaaa", b"aaaabbbb", b"bbbbcccc"))


def test_structures_are_masked_with_their_names() -> None:
    told = Masker([KEY]).mask_all({"a": [f"x{KEY}", 1, None], KEY: {"b": KEY}})
    assert told == {"a": [f"x{MASK}", 1, None], MASK: {"b": MASK}}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.text(alphabet='ab/+=%é\n"', min_size=8, max_size=12), min_size=1, max_size=3),
    st.lists(st.one_of(st.integers(0, 2), st.text(alphabet="ab/+=%é ", max_size=6)), max_size=8),
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
)
def test_however_it_is_cut_no_key_comes_through(values: list[str], parts: list[int | str], sizes: list[int]) -> None:
    data = "".join(values[each % len(values)] if isinstance(each, int) else each for each in parts).encode()
    masker, heard = Masker(values), list[bytes]()
    stream = masker.stream(heard.append)
    at, turn = 0, 0
    while at < len(data):
        stream.feed(data[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    stream.close()
    streamed, whole = b"".join(heard), masker.mask(data)
    for value in values:
        if value not in MASK:
            assert value.encode() not in whole
            assert value.encode() not in streamed
