"""What secrets look like, and a text without what is a secret by its shape.

The tables are from the formats that services publish. A row says how a service's keys begin, of which characters the
rest is, and how long it is at least. The least length is below the true one, so that a key that was cut is known too,
and above that of words which begin alike.

There are hundreds of shapes, and most texts hold none. So only the beginnings are looked for; what has to follow one
is compiled when the first such beginning is met.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

__all__ = [
    "PREFIXED",
    "STRUCTURED",
    "UNNAMED",
    "Prefixed",
    "mask_shapes",
]

LETTERS = "A-Za-z0-9"
WORD = "A-Za-z0-9_-"
HEX = "A-Fa-f0-9"
BASE64 = "A-Za-z0-9+/_=-"


class Prefixed(NamedTuple):
    """Keys of some services that begin alike, each beginning a literal text."""

    prefixes: str
    """Separated by spaces."""
    characters: str
    least: int
    has_digit: bool = False
    """Where words may begin so too: only with a digit among its first characters."""


PREFIXED: tuple[Prefixed, ...] = (
    # Models
    Prefixed("sk- nvapi- tvly- pcsk_ lsv2_pt_ lsv2_sk_ tgp_v1_ wandb_v1_ jina_ apify_api_ bb_live_", WORD, 16),
    Prefixed("hf_ api_org_ r8_ gsk_ pplx- xai- csk- esecret_ rpa_ alcht_ e2b_", LETTERS, 20),
    Prefixed("fw_ m0- pl_ ak- as-", LETTERS, 20, has_digit=True),
    Prefixed("fc- key_ luma-", "A-Fa-f0-9-", 30, has_digit=True),
    Prefixed("pa- BSA", WORD, 30, has_digit=True),
    # Code and builds
    Prefixed("ghp_ gho_ ghs_ ghu_ ghr_", LETTERS, 16),
    Prefixed("github_pat_ CCIPAT_ CCIPRJ_ sgp_ bkua_ bkct_ bkpt_", "A-Za-z0-9_", 16),
    Prefixed(
        "glpat- gldt- glptt- glrt- glrtr- glcbt- glft- glffct- glimt- glagent- gloas- glsoat- GR1348941 glwt-", WORD, 16
    ),
    Prefixed("ATATT3 ATCTT3 ATSTT3 ATBB ATTA", "A-Za-z0-9_=-", 20),
    Prefixed("squ_ sqp_ sqa_ sqb_ slk_ rootly_ rdme_", LETTERS, 30),
    Prefixed("nfp_ nfc_ nfo_ vcp_ vci_ vca_ vcr_ vck_ rnd_ ddp_ ddo_ ddw_ vtwn_ zpka_", LETTERS, 20),
    Prefixed("fo1_ fm1r_ fm1a_ fm2_ HRKU- tk-us- cfut_ cfat_ cfk_", BASE64, 20),
    Prefixed("pul- v1.", HEX, 30),
    # Registries
    Prefixed("npm_ CLOJARS_ rubygems_ jsrp_ jsrd_", LETTERS, 20),
    Prefixed("pypi- dckr_pat_ dckr_oat_", WORD, 16),
    Prefixed("AKCp cmVmd oy2 cio", LETTERS, 32, has_digit=True),
    # Clouds
    Prefixed("AKIA ASIA AGPA AIDA AROA ABIA ACCA AIPA ANPA ANVA", "A-Z0-9", 12),
    Prefixed("ABSK AQoDYXdz FwoGZXIvYXdz IQoJb3JpZ2lu", BASE64, 40),
    Prefixed("bedrock-api-key- amzn.mws.", BASE64, 16),
    Prefixed("AIza GOCSPX- ya29. 1//0", WORD, 16),
    Prefixed("GOOG1E LTAI AKID SCW EXO", LETTERS, 16, has_digit=True),
    Prefixed("dop_v1_ doo_v1_ dor_v1_ dapi dkea dose", HEX, 20),
    Prefixed("sha256~ AQVN y0_ vk1.a.", WORD, 30),
    Prefixed("tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-", WORD, 12),
    # Databases
    Prefixed("mdb_sa_sk_ AVNS_ sb_secret_ CCDB1_ napi_", WORD, 16),
    Prefixed("sbp_ 4b1d", LETTERS, 32),
    Prefixed("pscale_tkn_ pscale_oauth_ pscale_pw_", "A-Za-z0-9_=.-", 16),
    # Vaults
    Prefixed("hvs. hvb. hvr.", WORD, 20),
    Prefixed("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", "A-Za-z0-9_.-", 20),
    Prefixed("AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", "A-Z0-9", 16),
    Prefixed("ops_eyJ", BASE64, 16),
    # Talk and mail
    Prefixed("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- xwfp-", "A-Za-z0-9%-", 8),
    Prefixed("xoxe.xoxb- xoxe.xoxp-", "A-Za-z0-9%-", 8),
    Prefixed("SG. mfa.", WORD, 16, has_digit=True),
    Prefixed("key- pubkey- md-", LETTERS, 20, has_digit=True),
    Prefixed("xkeysib- xsmtpsib- mlsn. os_v2_ dG9rO nyk_", BASE64, 20),
    Prefixed("SK", HEX, 32),
    # Money
    Prefixed("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ sk_org_", LETTERS, 10),
    Prefixed("whsec_ rzp_live_ rzp_test_ sq0atp- sq0csp- sq0idp- pdl_live_ pdl_sdbx_", BASE64, 12),
    Prefixed("FLWSECK- FLWSECK_TEST- FLWPUBK- FLWPUBK_TEST- FLWSECK_LIVE-", WORD, 12),
    Prefixed("shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shpit_", LETTERS, 20),
    Prefixed("EAAA EZAK EZTK AQE", BASE64, 40, has_digit=True),
    Prefixed("duffel_test_ duffel_live_ shippo_live_ shippo_test_", WORD, 20, has_digit=True),
    Prefixed("live_ test_ bxt_", LETTERS, 28, has_digit=True),
    Prefixed("access-sandbox- access-production- access-development- APP_USR-", "A-Fa-f0-9-", 20, has_digit=True),
    # Watching
    Prefixed("NRAK- NRJS- NRII- NRRA- NRBR- NRSP-", WORD, 16),
    Prefixed("sntrys_ sntryu_ sntrya_ sntryi_ glsa_ glc_ phx_ phs_ pnu_ pnb_", BASE64, 20),
    Prefixed("hcaik_ hcalk_ hcbik_ hcblk_ hcxik_ hcxlk_ hcaic_ hcamk_", LETTERS, 16),
    Prefixed("snyk_uat.", "A-Za-z0-9_.-", 20),
    Prefixed("dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", "A-Za-z0-9.", 20),
    Prefixed("sdk- api- mob- xaat- xapt- cu_", "a-f0-9-", 30, has_digit=True),
    # Papers and plans
    Prefixed("secret_ ntn_", LETTERS, 28, has_digit=True),
    Prefixed("lin_api_ lin_oauth_ lin_wh_ tfp_ CFPAT- figd_ figu_ figo_ figoh_ cal_live_", WORD, 16),
    Prefixed("PMAK- PMAT- pat-na1- pat-eu1- waka_ sl.u. sl. p8e- fio-u-", WORD, 24, has_digit=True),
    Prefixed("dbtc_ dbts_ dbtu_ retool_01 samsara_api_ sm_aat_ sm_pat_ sm_sat_", BASE64, 16, has_digit=True),
    Prefixed("persona_sandbox_ persona_production_", "a-f0-9-", 16),
    Prefixed("mb_", "A-Za-z0-9+/=", 40, has_digit=True),
    Prefixed("ory_at_ ory_pat_ ory_rt_ ory_st_ ory_ac_ secret-test- secret-live- sec-c- dnkey-", BASE64, 16),
    Prefixed("API-", "A-Z0-9", 20, has_digit=True),
    Prefixed("EAA IGQ AQX AQW AQV", WORD, 60),
    Prefixed("AAAAAAAAAAAAAAAAAAAA", "A-Za-z0-9%", 30, has_digit=True),
    Prefixed("6L 0x4AAAAAAA", WORD, 38, has_digit=True),
    Prefixed("xprv yprv zprv", LETTERS, 60),
    Prefixed("ZXlK", LETTERS, 20, has_digit=True),
)

# Regular expressions where a beginning is not enough, each with a text that such a key always holds. Nothing in them
# repeats without a bound or gives back.
STRUCTURED: tuple[tuple[str, str], ...] = (
    ("eyJ", r"eyJ[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]*+)*+"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{32,}+"),
    ("at.", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{10,}+"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{30,}+"),
    ("Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{30,}+"),
    ("AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    ("==", r"[A-Za-z0-9+/]{86}=="),
    (":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{30,}+"),
    ("|", r"\d{15,16}\|[A-Za-z0-9_-]{27,}+"),
    ("%7C", r"\d{15,16}%7C[A-Za-z0-9_-]{27,}+"),
    ("-us", r"[0-9a-f]{32}-us\d{1,2}"),
    ("NRAL", r"[0-9a-fA-F]{32,36}NRAL"),
    ("00D", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{40,}+"),
    ("access_token$", r"access_token\$(?:production|sandbox)\$[A-Za-z0-9]{10,20}\$[0-9a-f]{20,}+"),
    ("sk_", r"sk_[0-9a-f]{40,}+"),
    ("pk_", r"pk_\d{5,12}_[A-Z0-9]{20,}+"),
    ("_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}"),
    ("s.", r"s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    ("re_", r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,}+"),
    ("v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{40,}+"),
    ("b.AAAAAQ", r"b\.AAAAAQ[A-Za-z0-9_-]{60,}+"),
    ("AAAA", r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{60,}+"),
    ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}+"),
    ("/webhooks/", r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{10,20}/[A-Za-z0-9_-]{20,}+"),
    ("webhook.office.com/", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{40,}+"),
    ("secret-token:", r"secret-token:[^\s\"'<>]{8,}+"),
)
# The same for keys in which nothing is always the same; looked for where there is a long word.
UNNAMED: tuple[str, ...] = (
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+",
    r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:[0-9a-f]{32}",
    r"[012]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}",
    r"[12][A-Za-z0-9]{26}_[A-Za-z0-9]{20,}+",
)

_DIGIT_WITHIN = 60
_APART = r"(?<![A-Za-z0-9])"
_BY_FIRST: dict[str, list[tuple[str, Prefixed]]] = {}
for _row in PREFIXED:
    for _prefix in _row.prefixes.split():
        _BY_FIRST.setdefault(_prefix[0], []).append((_prefix, _row))
# The first two characters decide almost everywhere; the rest is compared as text.
_BEGINNING = re.compile(
    _APART
    + "(?:"
    + "|".join(
        f"{re.escape(first)}[{''.join(sorted({re.escape(prefix[1]) for prefix, _ in rows}))}]"
        for first, rows in sorted(_BY_FIRST.items())
    )
    + ")"
)
# Every key has a run of such characters; most arguments have none.
_RUN = re.compile(r"[A-Za-z0-9_%-]{10}")
_LONG = re.compile(r"[A-Za-z0-9_-]{20}")


def mask_shapes(text: str, mask: str) -> str:
    """The text with `mask` in the place of every key whose shape is known, whatever stands around it."""
    if _RUN.search(text) is None:
        return text
    text = _mask_prefixed(text, mask)
    for hint, pattern in STRUCTURED:
        if hint in text:
            text = re.compile(_APART + pattern).sub(mask, text)
    if _LONG.search(text) is not None:
        text = re.compile(f"{_APART}(?:{'|'.join(UNNAMED)})").sub(mask, text)
    return text


def _mask_prefixed(text: str, mask: str) -> str:
    kept: list[str] = []
    done = position = 0
    while (found := _BEGINNING.search(text, position)) is not None:
        position = found.start()
        end = _end_of_key(text, position)
        if end:
            kept += text[done:position], mask
            done = position = end
        else:
            position += 1
    return "".join((*kept, text[done:])) if kept else text


def _end_of_key(text: str, start: int) -> int:
    """Where the key ends that begins here; 0 when none does."""
    for prefix, row in _BY_FIRST[text[start]]:
        if text.startswith(prefix, start):
            rest = _rest_of(row).match(text, start + len(prefix))
            if rest is not None:
                return rest.end()
    return 0


@cache
def _rest_of(row: Prefixed) -> re.Pattern[str]:
    digit = rf"(?=[{row.characters}]{{0,{_DIGIT_WITHIN}}}\d)" if row.has_digit else ""
    # What follows a dot belongs to a key that has parts.
    return re.compile(rf"{digit}[{row.characters}]{{{row.least},}}+(?:\.[A-Za-z0-9_=-]{{6,}}+)*+")
