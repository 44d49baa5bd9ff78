"""`skillkit doctor`: which walls, interpreters and channels this machine has, what is missing, how to get it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from skillkit.cli.options import any_state_option, json_option
from skillkit.cli.output import beside, echo_json
from skillkit.config import current_folder, load_settings
from skillkit.core.exceptions import ConfigurationError, SkillKitError, StateUnavailableError
from skillkit.core.paths import REMEDY, is_inside, problem_with, require_own_folder
from skillkit.core.resolve import find_program, search_path
from skillkit.core.run.own_programs import find_own_program
from skillkit.core.run.sandbox.base import Reach
from skillkit.core.run.tiers import count_together, machine_tiers, mounter_works, run_groups
from skillkit.core.run.unwalled import read_output
from skillkit.core.run.warm.python import LEFT_OPEN
from skillkit.core.store.opening import open_store
from skillkit.core.store.secrets import has_keyring
from skillkit.core.store.state import state_folder
from skillkit.core.values.policy import INTERPRETERS
from skillkit.core.values.text import visible
from skillkit.web import require_web
from skillkit.web.desktop import BROWSERS, LAUNCHERS, has_desktop
from skillkit.web.presence import running_page

__all__ = ["doctor_command", "file_system_of", "interpreters", "state_problem", "supplies", "tiers"]

AS_ROOT = "You are root: without a group the limit of processes does not hold. Better run skillkit as an ordinary user."
TERMINAL = "/dev/tty"
NO_DESKTOP = "there is no desktop here (neither DISPLAY nor WAYLAND_DISPLAY is set)"
PACKAGES = {"python3": "python3", "bash": "bash", "node": "nodejs", "ruby": "ruby", "perl": "perl"}
# File systems where SQLite's locks are not to be trusted.
NETWORK_FILE_SYSTEMS = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs fuse.sshfs ceph glusterfs".split())
OF_COPIES = ("snapshots", "snapshots/.uses")
LAYERS = ("files", "network", "processes", "kill")
USER_NAMESPACES = (
    "Allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
    "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, start it with them allowed."
)


class _TierHealth(NamedTuple):
    """One kind of walls: its layers when it works, else why it does not."""

    name: str
    works: bool
    layers: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


class _InterpreterHealth(NamedTuple):
    """A program that policies list, where it really is, and how to get it."""

    name: str
    path: str
    version: str
    remedy: str


class _ChannelHealth(NamedTuple):
    """A way to ask a person, or to get what skills need: whether it works here, and what it is or lacks."""

    name: str
    works: bool
    remark: str


@click.command("doctor", short_help="Say what this machine can do, and what is missing.")
@any_state_option
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, state_dir: Path | None, as_json: bool) -> None:
    """Say what this machine can do, what is missing and how to get it.

    Exit code 1 when scripts would run without walls, their runs could not be recorded, or a file of settings is wrong.

    \b
    Examples:
      skillkit doctor
      skillkit doctor --json
    """
    walls, programs, folder = tiers(), interpreters(), state_folder(state_dir)
    problem, asking, getting = state_problem(folder), _channels(folder), supplies()
    wrong_settings = settings_problem()
    if as_json:
        echo_json(
            walls=[tier._asdict() for tier in walls],
            interpreters=[program._asdict() for program in programs],
            channels=[channel._asdict() for channel in asking],
            supplies=[supply._asdict() for supply in getting],
            state={"folder": str(folder), "place": open_store(folder).place, "problem": problem},
            settings={"problem": wrong_settings},
            is_root=_is_root(),
        )
    else:
        _show_walls(walls)
        _show_programs(programs)
        _show_channels("Ways to ask you before a script runs", asking)
        _show_channels("Where skills, their packages and their keys come from", getting)
        if wrong_settings:
            _heading("Settings")
            click.echo(f"  {_mark(ok=False)} {beside('', wrong_settings)}")
        _show_state(folder, problem)
    is_well = any(tier.works for tier in walls) and not problem and not wrong_settings
    ctx.exit(0 if is_well else 1)


def _show_walls(walls: list[_TierHealth]) -> None:
    _heading("Walls around scripts, strongest first")
    for tier in walls:
        click.echo(f"  {_mark(ok=tier.works)} {tier.name}")
        for name, value in tier.layers:
            click.echo(beside(f"      {name:<10} ", value))
        for remark in tier.remarks:
            click.echo(beside("      note: ", remark))
    if not any(tier.works for tier in walls):
        click.echo("  None works here: a policy that requires walls refuses to run anything.")


def _show_programs(programs: list[_InterpreterHealth]) -> None:
    _heading("Interpreters")
    for program in programs:
        label = f"  {_mark(ok=bool(program.path))} {program.name:<8} "
        found = visible(f"{program.version:<10} {program.path}")
        click.echo(f"{label}{found}" if program.path else beside(label, program.remedy))


def _show_channels(title: str, channels: list[_ChannelHealth]) -> None:
    _heading(title)
    for channel in channels:
        click.echo(beside(f"  {_mark(ok=channel.works)} {channel.name:<13} ", channel.remark))


def _show_state(folder: Path, problem: str) -> None:
    _heading("State")
    store = open_store(folder)
    place = f"{store.place}, and for this machine {folder}" if store.is_shared else str(folder)
    click.echo(f"  {_mark(ok=not problem)} {visible(place)}")
    if problem:
        click.echo(beside("      ", problem))
    if _is_root():
        click.echo(f"\n{beside('', AS_ROOT)}")


def _heading(title: str) -> None:
    click.secho(f"\n{title}", bold=True)


def _mark(*, ok: bool) -> str:
    return click.style("+", fg="green") if ok else click.style("-", fg="red")


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def tiers() -> list[_TierHealth]:
    """The kinds of walls that there are, each tried on this machine."""
    found = []
    for attempt in machine_tiers():
        if attempt.sandbox is None:
            remedy = USER_NAMESPACES if attempt.tier == "bubblewrap" and "bwrap:" in attempt.reason else ""
            remarks = tuple(filter(None, (attempt.reason, remedy)))
            found.append(_TierHealth(attempt.tier, works=False, layers=(), remarks=remarks))
            continue
        is_open = not attempt.sandbox.limits_reach
        walls = Reach(skill="/skill", snapshot=None, work="/work", interpreter=(), network=is_open, filesystem=is_open)
        with count_together(attempt.sandbox.confine(("/bin/true",), "/", {}, walls), walls.limits) as confined:
            isolation = confined.isolation
        layers = (
            *((name, getattr(isolation, name)) for name in LAYERS),
            ("hosts", "some and no others" if attempt.sandbox.opens_hosts else "all or none"),
            ("warm", _warm(attempt.tier)),
            ("limits", ", ".join(isolation.limits)),
            ("group", run_groups().what),
        )
        found.append(_TierHealth(attempt.tier, works=True, layers=layers, remarks=isolation.degraded))
    return found


def _warm(tier: str) -> str:
    """Whether the next run can be made ready ahead."""
    if tier == "landlock":
        path = search_path(os.environ, Path("/nonexistent"), None)
        python = find_program("python3", path, read_output, ())
        if python and read_output((python, "-I", "-S", "-c", LEFT_OPEN), path).strip() != "0":
            return "no: the libffi of this python3 keeps its own file open, and a script would see it"
        return "the next run of a python3 script without a workspace can be made ready ahead"
    if tier != "bubblewrap":
        return "every run starts its walls anew"
    return "the next run can be made ready ahead" if mounter_works() else "no: nothing can be mounted in its walls"


def interpreters() -> list[_InterpreterHealth]:
    path = search_path(os.environ, Path("/nonexistent"), None)
    found = []
    for name in INTERPRETERS:
        program = find_program(name, path, read_output, ())
        version = _version_of(name, program, path) if program else ""
        remedy = "" if program else f"missing; install it: sudo apt-get install {PACKAGES[name]}"
        found.append(_InterpreterHealth(name, program, version, remedy))
    return found


def _version_of(name: str, program: str, path: str) -> str:
    option = "-v" if name == "perl" else "--version"
    number = re.search(r"\d+\.\d+(\.\d+)?", read_output((program, option), path))
    return number[0] if number else "?"


def _channels(state: Path) -> list[_ChannelHealth]:
    """Of each way to ask a person, whether it works, and what it is or lacks."""
    found = {
        "terminal": terminal(),
        "elsewhere": (True, "another terminal: skillkit approvals list"),
        "page": page(state),
        "window": window() if has_desktop() else (False, NO_DESKTOP),
        "notification": notification() if has_desktop() else (False, NO_DESKTOP),
    }
    return [_ChannelHealth(name, works, remark) for name, (works, remark) in found.items()]


def terminal() -> tuple[bool, str]:
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False, "this program was started without one"
    return True, "the one you sit at"


def page(state: Path) -> tuple[bool, str]:
    try:
        require_web()
    except ConfigurationError as error:
        return False, str(error)
    running = running_page(state)
    return True, f"served at {running.address}; skillkit web gives a link" if running else "start it: skillkit web"


def window() -> tuple[bool, str]:
    if find_spec("webview") is not None:
        return True, "pywebview: skillkit approvals --window"
    program = find_own_program(*BROWSERS, *(name for names in LAUNCHERS.values() for name in names))
    remark = f"{program}: skillkit approvals --window" if program else "install Chromium, or skillkit-runtime[desktop]"
    return bool(program), remark


def notification() -> tuple[bool, str]:
    program = find_own_program("notify-send")
    if not program and find_spec("desktop_notifier") is None:
        return False, "install it: sudo apt-get install libnotify-bin"
    return True, program or "desktop-notifier"


def supplies() -> list[_ChannelHealth]:
    """What `add`, `sign`, `prepare` and `secret` need here, and how to get it."""
    return [
        _supply("git", find_own_program("git"), "skillkit add takes folders and archives only; install git"),
        _supply("ssh-keygen", find_own_program("ssh-keygen"), "nothing can be signed or verified; install OpenSSH"),
        _supply("packages", _uv(), "skillkit prepare needs uv: pip install 'skillkit-runtime[packages]'"),
        _supply("npm", shutil.which("npm") or "", "no packages of Node can be prepared; install Node with npm"),
        _supply(
            "keyring",
            "skillkit secret set" if has_keyring() else "",
            _without_keyring(),
        ),
    ]


def _supply(name: str, found: str, remedy: str) -> _ChannelHealth:
    return _ChannelHealth(name, bool(found), found or remedy)


def _uv() -> str:
    from skillkit.packages import require_packages

    try:
        require_packages()
        from skillkit.packages.tools import uv_program

        return uv_program()
    except SkillKitError:
        return ""


def _without_keyring() -> str:
    keep = (
        "this machine has no keyring; to keep some: SKILLKIT_SECRETS_DIR=FOLDER, with which 'skillkit secret set' works"
    )
    if find_spec("keyring") is None:
        keep = "to keep some: pip install 'skillkit-runtime[keyring]'"
    return f"keys come from the environment or $SKILLKIT_SECRETS_DIR; {keep}"


def settings_problem() -> str:
    """What every other command would end with; empty where settings can be read."""
    try:
        load_settings(current_folder())
    except SkillKitError as error:
        return str(error)
    return ""


def state_problem(folder: Path) -> str:
    """Empty when the world's state can be kept there."""
    existing = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))
    if existing == folder and (problem := _owner_problem(folder)):
        return problem
    kind = file_system_of(existing)
    if kind in NETWORK_FILE_SYSTEMS:
        return f"It lies on a network file system ({kind}); choose a local folder with SKILLKIT_STATE_DIR."
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            return _file_problem(folder)
    except OSError as error:
        return f"It cannot be written ({error.strerror}); choose another folder with SKILLKIT_STATE_DIR."


def _owner_problem(state: Path) -> str:
    """Of the folder, or of the first thing in it that others can have written."""
    try:
        require_own_folder(state, may_be_link=True)
        folders = [state, *(state / name for name in OF_COPIES if os.path.isdir(state / name))]
        for path in sorted(each for folder in folders for each in folder.iterdir()):
            if problem := problem_with(path):
                return f"{path} {problem}, so nobody can believe what it says. {REMEDY}"
    except StateUnavailableError as error:
        return str(error)
    except OSError as error:
        return f"It cannot be read ({error.strerror}); choose another folder with SKILLKIT_STATE_DIR."
    return ""


def _file_problem(folder: Path) -> str:
    """A folder can be well and the file in it not; none is made here."""
    store = open_store(folder)
    if not store.exists():
        return ""
    try:
        store.world()
    except StateUnavailableError as error:
        return str(error)
    finally:
        store.close()
    return ""


def file_system_of(folder: Path) -> str:
    """The kind of the file system that holds a folder; empty when the system does not tell."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(folder)
    mounts = [line.split()[1:3] for line in lines]
    holding = [(point, kind) for point, kind in mounts if is_inside(real, point)]
    return max(holding, key=lambda each: len(each[0]), default=("", ""))[1]
