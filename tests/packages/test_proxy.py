"""A machine behind a proxy, with certificates of an authority of its own: packages come the same way."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from support.network import ProxyOutside, listening
from support.package_index import PackageIndex, serving_index

from skillkit.core.manager import SkillManager
from skillkit.packages.prepare import prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

NAME = "packages.company.example"
SCRIPT = '# /// script\n# dependencies = ["zebra"]\n# ///\nimport zebra; print(zebra.VERSION)\n'


def test_packages_come_through_the_proxy_and_by_its_certificates(
    index: PackageIndex, manager: SkillManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill_folder(manager.roots[0].path, "animals", {"scripts/run.py": SCRIPT})
    authority, other = trustme.CA(), trustme.CA()
    for name, each in (("ours", authority), ("other", other)):
        each.cert_pem.write_to_path(str(tmp_path / f"{name}.pem"))
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(secured)
    with serving_index(secured) as inside:
        inside.add("zebra", "1.0")
        outside = ProxyOutside({f"{NAME}:443": inside.port})
        with listening(outside) as proxy:
            monkeypatch.setenv("UV_DEFAULT_INDEX", f"https://{NAME}/simple/")
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
            with pytest.raises(PackagesError, match=f"{NAME} does not answer"):
                prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"), patience=5)
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy}")
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
            with pytest.raises(PackagesError, match="certificate"):
                prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"), patience=5)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
            done = prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"))
    assert done.plans[0].indexes == (NAME,)
    assert set(outside.asked) == {f"{NAME}:443"}
    assert index.asked == [], "the one without a proxy"
    assert len(outside.asked) > 2, "our own look at its pages, uv looking up, uv installing"
    (finished,) = manager.flow.audit.records(kind="finished")
    assert {each["host"] for each in finished.fields["hosts"]} == {f"{NAME}:443"}  # type: ignore[index,union-attr,call-overload]
    for name in ("https_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(name)
    assert manager.execute_skill_script("animals", "run").stdout == "1.0\n"
