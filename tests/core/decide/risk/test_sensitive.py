from __future__ import annotations

import pytest

from skillkit.core.decide.risk.sensitive import (
    credential_findings,
    host_in,
    is_secret_name,
    outside_place,
    secret_variable,
    sensitive_findings,
)

SECRETS = (
    ".ssh .ssh/deploy_key .aws/credentials .aws/config .gnupg .netrc .git-credentials .pypirc .kube/config "
    ".docker/config.json .password-store .config/gcloud .config/gh/hosts .local/share/keyrings .cargo/credentials "
    ".bash_history .zsh_history .config/google-chrome .config/chromium .mozilla/firefox .vault-token id_rsa id_ed25519 "
    "id_ecdsa id_dsa /etc/shadow /etc/sudoers cookies.sqlite key3.db key4.db logins.json wallet.dat login.keychain "
    "Library/Keychains 169.254.169.254 metadata.google.internal /proc/self/environ /proc/1/environ"
).split()
OTHER_SECRETS = ["Login Data", "AKIAABCDEFGHIJKLMNOP", "ghp_" + "a" * 36, "sk-ant-" + "a" * 20, "xoxb-12345678"]
STARTUP = (
    ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .config/fish/config.fish "
    ".config/autostart .config/systemd/user .git/hooks .claude/settings .claude/hooks .mcp.json .cursor/mcp.json "
    ".ssh/authorized_keys .xinitrc .xprofile .vscode/tasks.json /etc/cron.d /etc/systemd/x /etc/init.d /etc/rc.local "
    "/etc/profile /etc/ld.so.preload /etc/sudoers.d /var/spool/cron LaunchAgents LaunchDaemons CurrentVersion\\Run "
    "sitecustomize.py usercustomize.py"
).split()
MENU = ["Start Menu\\Programs\\Startup"]


@pytest.mark.parametrize(
    "text", [*SECRETS, *OTHER_SECRETS, "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"]
)
def test_where_secrets_are_kept(text: str) -> None:
    assert "credentials" in {found.kind for found in sensitive_findings(f"a '/home/me/{text}' b", 1)}


@pytest.mark.parametrize("text", [*STARTUP, *MENU])
def test_what_other_programs_run_on_their_own(text: str) -> None:
    place = text if text.startswith("/") else f"/home/me/{text}"
    assert "outside_write" in {found.kind for found in sensitive_findings(f"a '{place}' b", 1)}


@pytest.mark.parametrize(
    "text",
    [
        *(".ssh/known_hosts", "id_rsa.pub", "config.ssh", "client.profile", "my.aws/config.py", "rapid_rsa_key"),
        *("/etc/hosts", "/etc/ssl/certs", "my_history", "sk-ant-", "AKIA", "key.db", "x.bashrc"),
    ],
)
def test_what_only_looks_alike_is_not_named(text: str) -> None:
    assert list(sensitive_findings(text, 1)) == []


def test_a_key_is_not_shown_whole() -> None:
    (found,) = sensitive_findings("ghp_" + "Secret1234" * 3 + "abcdef", 1)
    assert found.message == "Holds what looks like a secret key: ghp_Secret12..."


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://a.example/x?y", "a.example"),
        ("see http://user:pass@a.example:80/", "a.example:80"),
        ("a.example", "a.example"),
        ("10.0.0.1", "10.0.0.1"),
        ("report.2024 final", ""),
        ("", ""),
        ("a" * 60 + "." + "b" * 35 + ".de", "a" * 60 + "..."),
        ("a" * 60 + "." + "b" * 36 + ".de", ""),
    ],
)
def test_whom_a_text_addresses(text: str, host: str) -> None:
    assert host_in(text) == host


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "github_token", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "TOKEN"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


def test_a_name_too_long_for_a_variable_is_none_of_a_secret() -> None:
    assert is_secret_name("A" * 95 + "_KEY")
    assert not is_secret_name("A" * 96 + "_KEY")


def test_a_secret_variable_is_named_with_its_line() -> None:
    found = secret_variable("API_KEY", 3)
    assert (found.kind, found.message, found.line) == ("credentials", "Reads the environment variable API_KEY.", 3)


def test_lines_count_from_one_unless_a_text_starts_elsewhere() -> None:
    assert [found.line for found in credential_findings("x\n~/.netrc")] == [2]
    assert [found.line for found in credential_findings("x\n~/.netrc", 5)] == [6]


@pytest.mark.parametrize("name", ["HOME", "PATH", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "A" * 200 + "_KEY"])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/x", "~/x", "$HOME/x", "../x", "a/../../x", "..", "C:\\x", "/var/lib", "/tmpx", "..\\x", "C:/x"),
        *("${HOME}/x", "%USERPROFILE%\\x", "$env:USERPROFILE/x"),
    ],
)
def test_paths_that_lead_outside(path: str) -> None:
    assert outside_place(path) == path


@pytest.mark.parametrize(
    "path", ["out.txt", "./x", "a/b", "/tmp/x", "/dev/null", "$OUT/x", "...", "a..b", "\\n", "", "1:/x"]
)
def test_paths_that_do_not(path: str) -> None:
    assert outside_place(path) == ""


def test_only_the_start_of_an_endless_path_is_looked_at() -> None:
    assert outside_place("a" * 4092 + "/../") != ""
    assert outside_place("a" * 4093 + "/../") == ""
