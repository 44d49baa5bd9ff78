"""Secrets as services and files write them: none is shown; and ordinary words: all are."""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from support.growth import grows_fast, repeated

from skillkit.core.record.redaction import MASK, redacted_arguments, redacted_text
from skillkit.core.record.secret_shapes import PREFIXED, STRUCTURED, UNNAMED

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
WORD = "hunter2"


class Shape(NamedTuple):
    """How a key is made up: a text in which each letter in braces stands for random characters."""

    service: str
    form: str


# {aN} letters and digits, {hN} hexadecimal digits, {uN} capitals and digits, {dN} digits, {bN} base64. Written apart,
# so that no scanner takes this file for a leak.
SHAPES = [
    Shape(*line.split(" ", 1))
    for line in """
    github ghp_{a36}|gho_{a36}|ghs_{a36}|ghu_{a36}|ghr_{a36}|github_pat_{a22}_{a59}|v1.{h40}
    gitlab glpat-{a20}|gldt-{a20}|glptt-{h40}|glrt-{a20}|glcbt-1a_{a20}|glft-{a20}|glffct-{a20}|glimt-{a25}|glagent-{a50}
    gitlab gloas-{a64}|glsoat-{a20}|GR1348941{a20}|glpat-{a27}.01.{a9}|glrt-t1_{a27}.01{a7}
    bitbucket ATBB{a32}|ATCTT3xFfGN0{a60}={h8}
    atlassian ATATT3xFfGF0{a60}={h8}|ATTA{a64}
    slack xoxb-{d12}-{d13}-{a24}|xoxp-{d12}-{d12}-{d12}-{h32}|xoxa-2-{a24}|xoxr-{a24}|xoxs-{d10}-{d10}-{d10}-{h10}
    slack xoxe-1-{a40}|xoxe.xoxp-1-{a40}|xapp-1-A{u10}-{d13}-{h64}|xoxc-{d12}-{d12}-{a20}|xoxd-{a40}
    slack https://hooks.slack.com/services/T{u8}/B{u8}/{a24}
    stripe sk_live_{a24}|sk_test_{a24}|rk_live_{a24}|rk_test_{a24}|whsec_{a32}|sk_live_51{a90}
    aws AKIA{u16}|ASIA{u16}|AROA{u17}|AIDA{u17}|ABIA{u16}|ACCA{u16}|ABSK{b110}|amzn.mws.{h8}-{h4}-{h4}-{h4}-{h12}
    aws IQoJb3JpZ2luX2Vj{b120}|FwoGZXIvYXdz{b120}|bedrock-api-key-{b80}
    google AIza{a35}|ya29.{a60}|GOCSPX-{a28}|1//0{a60}|GOOG1E{u57}
    azure {a3}8Q~{a34}|{b86}==|{a76}AZDO{a4}
    npm npm_{a36}
    pypi pypi-AgEIcHlwaS5vcmc{a80}
    rubygems rubygems_{h48}
    registries CLOJARS_{h60}|dckr_pat_{a27}|dckr_oat_{a27}|AKCp{a69}|cmVmd{a59}|oy2{a43}|cio{a32}
    twilio SK{h32}
    sendgrid SG.{a22}.{a43}
    mailgun key-{h32}|pubkey-{h32}|{h32}-{h8}-{h8}
    mailchimp {h32}-us12|md-{a22}
    mail xkeysib-{h64}-{a16}|xsmtpsib-{h64}-{a16}|re_{a8}_{a24}|mlsn.{h64}
    huggingface hf_{a34}|api_org_{a34}
    openai sk-{a48}|sk-proj-{a60}|sk-svcacct-{a60}|sk-admin-{a60}
    anthropic sk-ant-api03-{a90}AA|sk-ant-admin01-{a90}AA
    models gsk_{a52}|pplx-{a48}|xai-{a80}|r8_{a37}|nvapi-{a64}|tvly-dev-{a32}|pcsk_{a6}_{a60}|sk-or-v1-{h64}|fw_{a24}
    models lsv2_pt_{h32}_{h10}|lsv2_sk_{h32}_{h10}|jina_{a60}|csk-{a48}|pa-{a43}|tgp_v1_{a43}|apify_api_{a36}|rpa_{a40}
    models fc-{h32}|sk_{h48}|e2b_{h40}|esecret_{a24}|bb_live_{a27}|m0-{a40}|{h8}-{h4}-{h4}-{h4}-{h12}:{h32}
    digitalocean dop_v1_{h64}|doo_v1_{h64}|dor_v1_{h64}
    shopify shpat_{h32}|shpca_{h32}|shppa_{h32}|shpss_{h32}
    square EAAA{a60}|sq0atp-{a22}|sq0csp-{a43}
    telegram {d10}:AA{a33}
    discord M{a23}.{a6}.{a38}|mfa.{a84}|https://discord.com/api/webhooks/{d18}/{a68}
    notion secret_{a43}|ntn_{d11}{a35}
    linear lin_api_{a40}|lin_oauth_{h64}
    figma figd_{a40}|figu_{a40}
    newrelic NRAK-{u27}|NRJS-{h19}|NRII-{a32}|{h36}NRAL
    sentry sntryu_{h64}|sntrys_eyJ{b120}_{b43}|https://{h32}@o1.ingest.sentry.io/2
    grafana glsa_{a32}_{h8}|glc_{b80}|eyJrIjoi{a80}
    doppler dp.pt.{a43}|dp.st.dev.{a43}|dp.ct.{a43}|dp.sa.{a43}
    vault hvs.{a95}|hvb.{a140}|s.{a24}
    databricks dapi{h32}|dapi{h32}-2
    dropbox sl.{a140}|sl.u.{a140}
    airtable pat{a14}.{h64}
    postman PMAK-{h24}-{h34}
    planetscale pscale_tkn_{a43}|pscale_oauth_{a43}|pscale_pw_{a43}
    supabase sbp_{h40}|sb_secret_{a22}_{a8}
    databases mdb_sa_sk_{a40}|AVNS_{a18}|napi_{a60}|4b1d{a38}|CCDB1_{a22}_{a40}
    age AGE-SECRET-KEY-1{u58}
    jwt eyJhbGciOiJIUzI1NiJ9.eyJ{a40}.{a43}|eyJ{a30}.{a40}.
    hosts nfp_{a36}|vcp_{a24}|rnd_{a28}|fo1_{a43}|fm2_{b120}|HRKU-AA{a58}|pul-{h40}|{a14}.atlasv1.{a67}|tskey-auth-{a16}-{a32}
    hosts tskey-api-{a16}-{a32}|ops_eyJ{b260}|A3-{u6}-{u11}-{u5}-{u5}-{u5}|2{a26}_{a22}|sha256~{a43}|cfut_{a40}
    clouds LTAI{a20}|AKID{a32}|SCW{u17}|EXO{h24}|y0_{a55}|AQVN{a36}
    money rzp_live_{a14}|FLWSECK_TEST-{h32}-X|duffel_test_{a43}|shippo_live_{h40}|EZAK{a54}|live_{a30}|test_{a30}|pdl_live_{a40}
    money access-production-{h8}-{h4}-{h4}-{h4}-{h12}|access_token$production${a16}${h32}|APP_USR-{d16}-{d6}-{h32}-{d9}
    builds CCIPAT_{a22}_{h40}|bkua_{h40}|sgp_{h16}_{h40}|squ_{h40}|sqp_{h40}|snyk_uat.{h8}.{a60}|rdme_{a70}|rootly_{h64}
    watching hcaik_{a60}|dt0c01.{u24}.{u64}|phx_{a43}|pnu_{a36}|api-{h8}-{h4}-{h4}-{h4}-{h12}|xaat-{h8}-{h4}-{h4}-{h4}-{h12}
    plans tfp_{a44}|CFPAT-{a43}|pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}|1/{d16}:{h32}|waka_{h8}-{h4}-{h4}-{h4}-{h12}|pk_{d8}_{u32}
    plans 00D{a15}!{a80}|p8e-{a32}|fio-u-{a64}|dbtu_{a40}|ory_pat_{a43}|sec-c-{b48}|API-{u26}|secret-token:{a24}
    others EAAC{a120}|{d15}|{a27}|6L{a38}|{a6}_{a29}_mmk|os_v2_app_{a100}|xprv{a107}|ZXlKaGJHY2lPaU{a40}|0x4AAAAAAA{a38}
    """.strip().splitlines()
    for line in [" ".join(line.split())]
]
# Each holds the secret once, as `@`; what is left of it is checked, not how it looks.
FRAMES = """
password=@|passwd=@|PASSWORD=@|pw=@|pwd=@|db_pw=@|userpw=@|dbpass=@|smtp_pass=@|SSHPASS=@|passphrase=@|passcode=@
export DB_PASSWORD=@|set PASSWORD=@|$env:PW = "@"|PGPASSWORD=@ psql|MYSQL_PWD=@ mysql|REDISCLI_AUTH=@ redis-cli
{"password": "@"}|{"pw":"@"}|{'pass': '@'}|{"passwords": ["@"]}|{"secret": {"value": "@"}}|{\\"token\\": \\"@\\"}
{"name": "password", "value": "@"}|{"key":"API_TOKEN","value":"@"}|{"header": "X-Api-Key", "value": "@"}
password: @|pw: @|  api_key: '@'|token: "@"|credentials: @|client_secret: @|secret_key = @|private-key = @
password: |~  @|token: >-~    @|[db]~password = @|[section]~passphrase = @ and more @
<password>@</password>|<Password type="text">@</Password>|<ns:password>@</ns:password>|<apiKey>@</apiKey>|<pw>@
<add key="Password" value="@" />|<input name="password" value="@">|<user password="@"/>|<secret>~  @~</secret>
--password @|--password=@|--pw @|--pw=@|--token @|--api-key=@|--secret '@'|--auth-token "@"|--client-secret=@
--user=me:@|--user me:@|-u me:@|-u 'me:@'|curl -ume:@ https://h|--proxy-user me:@|wget --password=@
-H 'Authorization: Bearer @'|--header 'Authorization: Basic @'|--header "X-Api-Key: @"|-H "Private-Token: @"
Authorization: Token @|authorization: @|Proxy-Authorization: Basic @|X-Auth-Token: @|Cookie: sid=@|Set-Cookie: a=@; Path=/
https://h/?token=@|https://h/?a=1&access_token=@|https://h/?api_key=@|https://h/?password=@|https://h/?auth=@
https://me:@@h/|postgres://me:@@h/db|mongodb+srv://me:@@h/db|redis://:@@h:6379/0|amqp://me:@@h
jdbc:mysql://h/db?user=me&password=@|jdbc:oracle:thin:me/@@h:1521/x|Server=h;User Id=me;Password=@;Encrypt=1
Server=h;Uid=me;Pwd=@;|AccountName=x;AccountKey=@;|SharedAccessKeyName=x;SharedAccessKey=@|SharedAccessSignature=@
'password' => '@'|:password => "@"|password := "@"|config["password"] = "@"|setPassword("@")|password == "@"
password%3D@|q=%22&token%3D@%26b|&quot;password&quot;:&quot;@&quot;|identified by '@'|ALTER USER me PASSWORD '@'
machine h login me password @|sshpass -p @ ssh h|sshpass -p '@' ssh h|ws-password: @|contraseña=@|passwort: @|пароль: @
session_id=@|sessionid=@|csrf_token=@|otp=@|recovery_code: @|jwt=@|bearer @|Bearer @|refresh_token=@|id_token=@
""".replace("\n", "|").strip("|")
# Splits at the bars that stand between frames, not at those of YAML.
FRAME_LIST = [frame for frame in re.split(r"(?<!: )\|(?!~)", FRAMES) if frame]
RANDOM_ONLY = ["?sig=@", "&X-Amz-Signature=@", "&Signature=@", '{"key": "@"}', "encryption key: @", "x_key=@", "hmac=@"]


def made(form: str, seed: int) -> str:
    """A key of this form; always the same one."""
    chosen = random.Random(seed)
    alphabets = {"a": LETTERS, "h": HEX, "u": BASE32, "d": string.digits, "b": LETTERS + "+/"}

    def part(match: re.Match[str]) -> str:
        characters = alphabets[match[1]]
        text = "".join(chosen.choices(characters, k=int(match[2])))
        return text if match[1] == "d" or int(match[2]) < 8 else "7" + text[1:-1] + chosen.choice(characters)

    return re.sub(r"\{([ahudb])(\d+)\}", part, form)


def forms() -> Iterator[tuple[str, str]]:
    for shape in SHAPES:
        # `{d15}|{a27}` is one key with a bar in it.
        for form in shape.form.replace("{d15}|{a27}", "{d15}&{a27}").split("|"):
            yield shape.service, form.replace("&", "|")


FORMS = list(forms())
SERVICES = sorted({service for service, _ in FORMS})


def require_hidden(secret: str, text: str) -> None:
    """No run of characters of it that would help anybody."""
    core = secret.rpartition("/")[2] if secret.startswith("http") else secret
    pieces = {core[start : start + 12] for start in range(0, max(1, len(core) - 12), 4)}
    assert MASK in text, text
    assert not [piece for piece in pieces if piece in text and len(piece) == 12], text


def test_there_are_many_shapes() -> None:
    assert len(FORMS) + len(FRAME_LIST) + len(RANDOM_ONLY) > 350


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_is_known_by_its_shape_wherever_it_stands(service: str) -> None:
    for secret in (made(form, len(form)) for owner, form in FORMS if owner == service):
        for text in (
            secret,
            f"see {secret} there",
            f"x={secret}",
            f'{{"x": "{secret}"}}',
            f"({secret})",
            f"a\n{secret}\nb",
        ):
            require_hidden(secret, redacted_text(text))
        require_hidden(secret, redacted_arguments({"x": secret}, [secret]).shown)


@pytest.mark.parametrize("frame", FRAME_LIST)
def test_a_plain_word_is_hidden_where_its_surroundings_name_it_a_secret(frame: str) -> None:
    is_encoded = "Basic @" in frame or "Token @" in frame
    secret = base64.b64encode(b"me:hunter2!").decode() if is_encoded else WORD
    text = frame.replace("@@", "\0@").replace("@", secret).replace("\0" + secret, secret + "@").replace("~", "\n")
    assert secret in text
    assert secret not in redacted_text(text)
    assert secret not in redacted_arguments(None, [text]).shown
    assert secret not in redacted_arguments({"command": text}, ()).shown


@pytest.mark.parametrize("frame", RANDOM_ONLY)
@pytest.mark.parametrize("form", ["{h40}", "{a32}", "{b43}="])
def test_a_random_text_is_hidden_under_a_name_that_may_hold_one(frame: str, form: str) -> None:
    secret = made(form, 3).replace("/", "_")
    require_hidden(secret, redacted_text(frame.replace("@", secret)))
    require_hidden(secret, redacted_arguments({"key": secret, "sig": secret}, ()).shown)


@pytest.mark.parametrize(
    "name", ["pw", "PW", "db_pw", "pass", "dbpass", "apiKey", "api-key", "cookie", "session", "psk"]
)
def test_a_value_under_such_a_key_is_hidden_in_arguments(name: str) -> None:
    shown = redacted_arguments({name: WORD, "deep": [{name: [WORD]}]}, [f"--{name}", WORD, f"--{name}={WORD}"]).shown
    assert WORD not in shown


ORDINARY = (
    """
the quick brown fox jumps over the lazy dog|please pass the salt|a basic example of a token ring network
compass=north|bypass: true-north|author: Jane Doe|authors=3|tokenizer=bert-base-uncased|max_tokens=4096|keyboard=qwerty
password_file=/etc/x|token_count=17|token_type=code|auth_url=https://h/a|token_url: https://h/t|session_timeout=30
password_policy: strict|secret_name=db-main|key=name|key: value|primary_key=id|public_key_path=/a/b|sort_key=created_at
--sort-key created --key name|--user me --group staff|docker run -u 1000:1000 image|-p 8080:80|--user=1000:1000
https://example.org/a/b?page=2&sort=name#top|https://example.org:8443/path|git@github.com:owner/repo.git|ssh://git@h/x
sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904
id: 550e8400-e29b-41d4-a716-446655440000|version 1.2.3-rc.4+build.5|2026-01-02T03:04:05Z|10.0.0.1:8080|00:1b:63:84:45:e6
test_a_skill_that_is_too_deep_is_refused_with_the_limit_2|test_module.py::test_name_of_a_long_function_number_12
key-value-store-backend-v2|sk-learn|api-gateway-service|live_stream_of_events_from_2024|secret_santa_list_for_2025
SELECT name FROM users WHERE id = 12|def token(self) -> str: return x|for key, value in items.items()|print(key)
<name>Jane</name>|<title>Basic Training</title>|<a href="x">key facts</a>|error: no such file or directory: report.csv
the basic idea|Basic authentication explained|token based systems|digest of the report|a session on security
scripts/run.py --input data.csv --output out.json --verbose|npm install --save-dev typescript|pip install requests==2.31
SKILL.md references/guide.md assets/logo.png|PATH=/usr/bin:/bin|LANG=en_US.UTF-8|HOME=/home/me|TERM=xterm-256color
asia-northeast1-docker|AKIAH is a name|SCHEMA_VERSION|hf_transfer|npm_config_registry|pypi-server|test_live_reload|doc_v1
re_export_all_modules|as-of-2024|pa-system|ghp|glpat|xox|eyJ|1//2|v1.2|s.split|SG.|ya29|rk_test|whsec|sq0|dapi|hvs.
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


def test_ordinary_words_stay_as_they_are() -> None:
    assert len(ORDINARY) > 90
    assert {text: shown for text in ORDINARY if (shown := redacted_text(text)) != text} == {}
    assert [text for text in ORDINARY if MASK in redacted_arguments({"text": text}, [text]).shown] == []


def atoms() -> Iterator[str]:
    """What each pattern begins with or repeats, so that each is tempted to try again and again."""
    for row in PREFIXED:
        prefixes = sorted(row.prefixes.split(), key=len)
        yield from (prefixes[0], prefixes[-1], f"{prefixes[0]}a1")
    yield from (
        "eyJ.",
        "pat",
        "A3-",
        "0x",
        "M.",
        "00D!",
        "-----BEGIN PRIVATE KEY-----",
        "PuTTY-User-Key-File-2",
        "Private-MAC",
    )
    yield from (
        "<password>",
        "<a b>",
        "<",
        "key='a' value='",
        "name: 'pw', value: '",
        "basic ",
        "-u a:",
        "--user=",
        "=> ",
    )
    yield from (
        "password |\n ",
        "password=[",
        "password={",
        "[",
        "{",
        "key=",
        "sig=",
        "identified by '",
        "login a password ",
    )
    yield from (
        "sshpass -p ",
        "passphrase: ",
        ":thin:a/",
        "&quot;",
        "%3D",
        "token(",
        "password%3D",
        "authorization:",
        "Bearer ",
    )


@pytest.mark.slow
def test_repetition_does_not_make_masking_slow() -> None:
    for unit in sorted(set(atoms())):
        for text_of in (repeated(unit), repeated(f"{unit} "), repeated("a", before=unit)):
            assert not grows_fast(redacted_text, text_of), f"repeated {unit!r}"


def test_a_row_has_plain_prefixes_and_a_length() -> None:
    for row in PREFIXED:
        assert row.least >= 8, row
        assert all(re.escape(prefix) for prefix in row.prefixes.split()), row
        assert not re.search(r"[\\^\]]", row.characters), row


def test_no_pattern_repeats_without_a_bound_and_gives_back() -> None:
    patterns = [*(pattern for _, pattern in STRUCTURED), *UNNAMED]
    assert [pattern for pattern in patterns if re.search(r",\}(?!\+)|\*(?!\+)", pattern)] == []
