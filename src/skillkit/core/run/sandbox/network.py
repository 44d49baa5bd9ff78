"""What tells programs inside walls of the one way out, and of the authorities that the caller trusts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["CERTIFICATES", "PORT", "certificates_of", "network_variables"]

PORT = 3128
CERTIFICATES = "/etc/skillkit-certificates.pem"
MOST_BYTES = 4_000_000
# Where programs look for one file of authorities; all are told of the same.
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
_INSIDE = "localhost,127.0.0.1,::1"


def network_variables(*, has_certificates: bool) -> dict[str, str]:
    """Programs that do not look at them find no network at all."""
    address = f"http://127.0.0.1:{PORT}"
    told = {**dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), address), "NO_PROXY": _INSIDE}
    told |= {name.lower(): value for name, value in told.items()}
    named = dict.fromkeys(_CERTIFICATE_VARIABLES, CERTIFICATES) if has_certificates else {}
    return {**told, **named, "NODE_USE_ENV_PROXY": "1"}


def certificates_of(environment: Mapping[str, str]) -> bytes:
    """Of the first file that the caller names; empty where none is named or can be read: then the system's count."""
    for name in _CERTIFICATE_VARIABLES:
        if path := environment.get(name):
            try:
                with Path(path).open("rb") as file:
                    content = file.read(MOST_BYTES + 1)
            except OSError:
                continue
            if b"-----BEGIN" in content and len(content) <= MOST_BYTES:
                return content
    return b""
