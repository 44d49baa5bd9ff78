from __future__ import annotations

import os
from collections import UserDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from skillkit import ScriptPolicy, __version__
from skillkit.core.resolve.environment import script_environment, search_path
from skillkit.core.values.names import is_never_passed

BASE = Path("/skills/demo")


def built(
    own: Mapping[str, str],
    *,
    policy: ScriptPolicy | None = None,
    workspace: Path | None = None,
    version: str | None = None,
) -> dict[str, str]:
    return script_environment(
        policy or ScriptPolicy(),
        own,
        skill_name="demo",
        skill_version=version,
        base_directory=BASE,
        workspace=workspace,
    )


def test_the_environment_is_exactly_this() -> None:
    own = {"PATH": "/usr/bin", "HOME": "/home/ann", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "TMPDIR": "/t", "X": "1"}
    own["SHELL"] = "/home/ann/shell"
    assert built(own, version="1.2", workspace=Path("/work")) == {
        "PATH": "/usr/bin",
        "HOME": "/home/ann",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
        "TMPDIR": "/t",
        "SHELL": "/bin/sh",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "SKILL_NAME": "demo",
        "SKILL_BASE_DIR": "/skills/demo",
        "SKILL_DIR": "/skills/demo",
        "CLAUDE_SKILL_DIR": "/skills/demo",
        "SKILL_VERSION": "1.2",
        "SKILLKIT_VERSION": __version__,
        "SKILL_WORKSPACE": "/work",
        "CLAUDE_PROJECT_DIR": "/work",
    }


def test_the_users_own_shell_is_passed_where_policy_names_it() -> None:
    seen = built({"SHELL": "/bin/zsh"}, policy=ScriptPolicy(pass_environment=("SHELL",)))
    assert seen["SHELL"] == "/bin/zsh"


def test_what_a_caller_does_with_one_environment_is_not_seen_in_the_next() -> None:
    built(os.environ)["PATH"] = "/forged"
    assert built(os.environ)["PATH"] != "/forged"


def test_secrets_stay_behind_unless_policy_names_them() -> None:
    own = {"OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "x", "WANTED": "yes"}
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "WANTED"} & built(own).keys()
    seen = built(own, policy=ScriptPolicy(pass_environment=("WANTED", "MISSING")))
    assert (seen["WANTED"], "OPENAI_API_KEY" in seen, "MISSING" in seen) == ("yes", False, False)


DANGEROUS = (
    "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_OPTIONS BASH_ENV ENV "
    "PERL5OPT PERL5LIB RUBYOPT RUBYLIB GIT_SSH GIT_SSH_COMMAND SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS "
    "XDG_RUNTIME_DIR DOCKER_HOST SKILLKIT_STATE_DIR BASH_FUNC_ls%% PS4 SHELLOPTS PYTHONWARNINGS BUNDLE_GEMFILE "
    "PERL_USE_UNSAFE_INC GCONV_PATH OPENSSL_CONF JAVA_TOOL_OPTIONS"
).split()


def test_folders_of_code_are_passed_without_those_that_scripts_can_write(tmp_path: Path) -> None:
    own = {"NODE_PATH": f"/usr/lib/node_modules:{tmp_path}/skill/lib:lib", "GEM_HOME": f"{tmp_path}/skill/gems"}
    got = script_environment(
        ScriptPolicy(inherit_environment=True),
        own,
        skill_name="x",
        skill_version=None,
        base_directory=tmp_path / "skill",
        workspace=None,
    )
    assert got["NODE_PATH"] == "/usr/lib/node_modules"
    assert "GEM_HOME" not in got


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_takes_over_a_program_is_never_passed(name: str) -> None:
    assert is_never_passed(name)
    own = {name: "evil"}
    assert name not in built(own, policy=ScriptPolicy(pass_environment=(name,)))
    assert name not in built(own, policy=ScriptPolicy(inherit_environment=True))


def test_inheriting_passes_everything_else() -> None:
    seen = built({"EDITOR": "vi", "SKILL_NAME": "forged"}, policy=ScriptPolicy(inherit_environment=True))
    assert (seen["EDITOR"], seen["SKILL_NAME"]) == ("vi", "demo")


def test_no_policy_replaces_what_skillkit_sets() -> None:
    own = {"PATH": "bin:/usr/bin", "SKILL_NAME": "forged", "PYTHONUTF8": "0"}
    seen = built(own, policy=ScriptPolicy(pass_environment=("PATH", "SKILL_NAME", "PYTHONUTF8")))
    assert (seen["PATH"], seen["SKILL_NAME"], seen["PYTHONUTF8"]) == ("/usr/bin", "demo", "1")


def test_a_version_is_always_given() -> None:
    assert (built({})["SKILL_VERSION"], built({}, version="")["SKILL_VERSION"]) == ("0.0.0", "0.0.0")


def test_the_search_path_has_absolute_folders_outside_skill_and_workspace_only(tmp_path: Path) -> None:
    base, workspace = tmp_path / "skill", tmp_path / "work"
    for folder in (base / "bin", workspace / "bin", tmp_path / "skill-2"):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(workspace / "bin")
    entries = [
        "",
        ".",
        "bin",
        str(base),
        f"{base}/bin",
        f"{workspace}/bin/../bin",
        f"{tmp_path}/link",
        f"{tmp_path}/skill-2",
        "/usr/bin",
    ]
    own = {"PATH": os.pathsep.join(entries)}
    assert search_path(own, base, workspace) == f"{tmp_path}/skill-2:/usr/bin"
    assert search_path(own, base, None) == f"{workspace}/bin/../bin:{tmp_path}/link:{tmp_path}/skill-2:/usr/bin"


def test_a_link_in_the_workspace_is_not_searched_wherever_it_leads(tmp_path: Path) -> None:
    """Whoever may write there may let it lead elsewhere at any time."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "bin").symlink_to("/usr/bin")
    (workspace / "usr").symlink_to("/usr")
    (tmp_path / "alias").symlink_to("work")
    through = [f"{workspace}/bin", f"{workspace}/usr/bin", f"{tmp_path}/alias/bin", f"{tmp_path}/alias/usr/bin"]
    beside = f"{workspace}/../tools"
    own = {"PATH": os.pathsep.join([*through, beside, "/usr/bin"])}
    assert search_path(own, BASE, workspace) == f"{beside}:/usr/bin"
    assert search_path(own, BASE, None) == own["PATH"]


@pytest.mark.parametrize("path", ["", ".:bin", "/skills/demo/bin"])
def test_without_a_usable_path_the_systems_is_taken(path: str) -> None:
    assert search_path({"PATH": path}, BASE, None) == "/usr/local/bin:/usr/bin:/bin"


def test_a_value_that_no_program_can_receive_is_left_out() -> None:
    own = {"A": "x\0y", "B": "1"}
    assert built(own, policy=ScriptPolicy(pass_environment=("A", "B"))).keys() & {"A", "B"} == {"B"}


def test_a_name_in_another_case_means_the_same_variable_where_the_system_says_so() -> None:
    windows = os._Environ({"PROGRAMFILES": "p", "PATH": "/usr/bin"}, str.upper, str, str, str)
    seen = built(windows, policy=ScriptPolicy(pass_environment=("ProgramFiles",)))
    assert (seen["ProgramFiles"], seen["PATH"]) == ("p", "/usr/bin")


class OwnKind(UserDict[str, str]):
    """What some test tools put in the place of `os.environ`."""

    _data: ClassVar = {b"kept": b"elsewhere"}


def test_another_object_in_the_place_of_the_environment_is_read_like_any_mapping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", OwnKind({"HOME": "/home/ann", "PATH": "/usr/bin"}))
    assert built(os.environ)["HOME"] == "/home/ann"


def test_a_name_that_another_thread_removes_meanwhile_is_no_error() -> None:
    class Losing(Mapping[str, str]):
        """Of what it lists and says it has, nothing is there when it is asked for."""

        def __getitem__(self, name: str) -> str:
            raise KeyError(name)

        def __contains__(self, name: object) -> bool:
            return name in ("LANG", "TOKEN")

        def __iter__(self) -> Iterator[str]:
            return iter(("LANG", "TOKEN"))

        def __len__(self) -> int:
            return 2

    assert "TOKEN" not in built(Losing(), policy=ScriptPolicy(pass_environment=("TOKEN",)))
    assert "LANG" not in built(Losing(), policy=ScriptPolicy(inherit_environment=True))


def test_every_change_of_the_environment_is_seen_and_no_name_is_too_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = ScriptPolicy(inherit_environment=True)
    monkeypatch.setitem(os.environb, b"ODD\xff", b"\xfe\n")
    assert built(os.environ, policy=policy)[os.fsdecode(b"ODD\xff")] == os.fsdecode(b"\xfe\n")
    monkeypatch.delitem(os.environb, b"ODD\xff")
    monkeypatch.setenv("HOME", "/home/eve")
    seen = built(os.environ, policy=policy)
    assert (seen["HOME"], os.fsdecode(b"ODD\xff") in seen) == ("/home/eve", False)
