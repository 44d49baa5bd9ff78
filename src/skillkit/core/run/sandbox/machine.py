"""This host as walls see it: its system, the folders of an interpreter, and what of it stands inside for one run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from glob import escape, glob
from typing import NamedTuple

from skillkit.core.paths import SETTLED_NANOSECONDS, is_inside, real_path
from skillkit.core.run.sandbox.base import Reach

__all__ = [
    "NEW_HOME",
    "SYSTEM",
    "Machine",
    "Mount",
    "Mounts",
    "has_socket_in",
    "home_inside",
    "interpreter_paths",
    "is_in_venv",
    "masked_files",
    "mounts_for",
    "this_machine",
]

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
STORES = ("/nix/store", "/gnu/store")  # of systems whose programs lie there
FOLDERS_OF_A_MAC = ("/System", "/Library")
# Programs below /usr link into these. Each costs a mount, 0.2 ms, where it is not a link itself.
SETTINGS = "alternatives fonts ImageMagick-6 ImageMagick-7 libreoffice texmf ld.so.cache localtime os-release".split()
NETWORK_SETTINGS = (
    "resolv.conf hosts nsswitch.conf services ssl/certs pki/tls/certs pki/ca-trust/extracted ca-certificates/extracted"
).split()
# At the top of the tree, and not users' files: the system, and where services keep their sockets.
IMPERSONAL = {each[1:] for each in SYSTEM} | {*"boot dev etc gnu lost+found nix proc run sys tmp var".split()}
ORDINARY_ID = 1000  # shown to a script that root runs: as 0 it would try what it has no capability for
LIMITS = ("data", "fsize", "nproc", "nofile", "cpu")
SOCKET_NAME_COLUMN = 7  # in /proc/net/unix
PROGRAM_FOLDERS = ("bin", "sbin", "Scripts")
HOMEBREW = "/Cellar/"  # its programs use libraries of other packages beside their own
KEY_FILES = ("pip.conf", "pip.ini", ".npmrc", "etc/npmrc", "etc/pip.conf", ".condarc", ".pypirc", ".netrc")
LONGEST_PATH_FILE = 65_536
LINK_LIMIT = 40  # the kernel's
LEAST_DEPTH = 2  # a folder at the top of the tree holds more than one program
OWN = ("/proc", "/dev", "/sys")  # inside the walls these are never the host's, whatever is granted
NEW_HOME = "/tmp/home"  # noqa: S108 - a folder inside the walls, on a file system of their own
KEPT_HOME = "/home/skill"  # always the same place: what a script notes there may name it
SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - but files may be kept here


@dataclass(frozen=True, slots=True)
class Machine:
    """What the walls have to know of the host; looked up once."""

    system: tuple[tuple[str, str], ...]
    """The system's folders that exist, each with the target of the link it is, or empty."""
    settings: tuple[tuple[str, str], ...]
    """The same for what stands below /etc."""
    network_settings: tuple[str, ...]
    personal: tuple[tuple[str, str], ...]
    """The same for the folders that hold users' files."""
    uid: int
    gid: int
    is_root: bool = False
    hard_limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    """By prlimit's names; more than these cannot be asked for."""


def this_machine() -> Machine:
    import resource

    hard = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in LIMITS}
    java = [name for name in sorted(os.listdir("/etc")) if name.startswith("java-")]
    is_root = os.geteuid() == 0
    return Machine(
        system=_with_targets((*SYSTEM, *STORES)),
        settings=_with_targets(f"/etc/{name}" for name in (*SETTINGS, *java)),
        network_settings=tuple(f"/etc/{name}" for name in NETWORK_SETTINGS if os.path.exists(f"/etc/{name}")),
        personal=_personal(),
        uid=ORDINARY_ID if is_root else os.geteuid(),
        gid=ORDINARY_ID if is_root else os.getegid(),
        is_root=is_root,
        hard_limits={name: value for name, value in hard.items() if value != resource.RLIM_INFINITY},
    )


def _with_targets(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Those that exist; a link into the system can be made again, anything else has to be mounted."""
    found = []
    for path in paths:
        if os.path.exists(path):
            target = os.path.realpath(path)
            leads_into_system = target != path and any(is_inside(target, each) for each in (*SYSTEM, *STORES))
            found.append((path, target if leads_into_system else ""))
    return tuple(found)


def _personal() -> tuple[tuple[str, str], ...]:
    found = []
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        target = os.path.realpath(path)
        if name in IMPERSONAL or not os.path.isdir(path):
            continue
        found.append((path, "" if target == path else target))
        if target != path and target.split("/")[1] not in IMPERSONAL - {"var"}:
            found.append((target, ""))
    return tuple(found)


def has_socket_in(folders: tuple[str, ...]) -> bool:
    """Whether a program listens on a unix socket below one of `folders`: a mount hides no socket it contains.

    A socket that was bound by a relative name could be anywhere, so it counts.
    """
    if not folders:
        return False
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return True
    columns = (line.split(None, SOCKET_NAME_COLUMN) for line in lines)
    names = [each[SOCKET_NAME_COLUMN] for each in columns if len(each) > SOCKET_NAME_COLUMN]
    absolute = [real_path(name) for name in names if name[0] == "/"]
    is_relative = any(name[0] not in "/@" for name in names)
    return is_relative or any(is_inside(name, each) for name in absolute for each in folders)


def interpreter_paths(program: str, *, home: str) -> tuple[str, ...]:
    """Absolute paths, sorted, none inside another; empty for an interpreter of the system.

    Where the installation is not a folder of its own (`~/.local/bin/node`), only the program itself and the
    library named after it.
    """
    system = (*SYSTEM, *STORES, *FOLDERS_OF_A_MAC)
    needed: set[str] = set()
    for hop in _hops(program):
        needed.update(_places(hop, home))
    needed.update(_base_of_venv(program, home))
    kept = {path for path in needed if not any(is_inside(path, each) for each in system)}
    return tuple(sorted(path for path in kept if not any(path != each and is_inside(path, each) for each in kept)))


def _hops(program: str) -> list[str]:
    """The program, each link on the way, and the file they end at: all have to be visible."""
    hops = [os.path.normpath(program)]
    while os.path.islink(hops[-1]) and len(hops) < LINK_LIMIT:
        hops.append(os.path.normpath(os.path.join(os.path.dirname(hops[-1]), os.readlink(hops[-1]))))
    return [*hops, real_path(program)]


def _places(hop: str, home: str) -> list[str]:
    if HOMEBREW in hop:
        return [hop.partition(HOMEBREW)[0]]
    folder = os.path.dirname(hop)
    prefix = os.path.dirname(folder) if os.path.basename(folder) in PROGRAM_FOLDERS else folder
    if not _is_too_much(prefix, home):
        return [prefix]
    library = os.path.join(prefix, "lib", os.path.basename(hop))
    return [hop, library] if os.path.isdir(library) else [hop]


def _is_too_much(prefix: str, home: str) -> bool:
    """Whether it holds a person's files beside the installation."""
    shared = (home, os.path.realpath(home), os.path.join(home, ".local"), os.path.join(home, "bin"))
    return prefix.count("/") < LEAST_DEPTH or any(is_inside(each, prefix) for each in shared)


def is_in_venv(program: str) -> bool:
    return os.path.isfile(_venv_settings(program))


def _venv_settings(program: str) -> str:
    return os.path.join(os.path.dirname(os.path.dirname(os.path.normpath(program))), "pyvenv.cfg")


def _base_of_venv(program: str, home: str) -> list[str]:
    """Where the virtual environment that the program belongs to was made from."""
    try:
        with open(_venv_settings(program), encoding="utf-8", errors="replace") as file:
            lines = file.read(65_536).splitlines()
    except OSError:
        return []
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home" and os.path.isabs(value.strip()):
            return _places(os.path.join(value.strip(), os.path.basename(program)), home)
    return []


def masked_files(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Of these folders of interpreters: settings that may hold keys, and lists of folders that lead out of them."""
    found = [os.path.join(prefix, name) for prefix in prefixes for name in KEY_FILES]
    masked = [path for path in found if os.path.isfile(path)]
    for prefix in prefixes:
        for site in glob(f"{escape(prefix)}/lib*/python3*/site-packages"):
            with suppress(OSError):
                seen = tuple(_path_files(site))
                masked += _leaving(seen, (*prefixes, *SYSTEM))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in masked))


def _path_files(site: str) -> Iterator[tuple[str, int, int]]:
    """Such lists, each with its time and size. Which there are is listed anew when the folder changed."""
    folder = os.stat(site)
    key = (folder.st_dev, folder.st_ino, folder.st_mtime_ns, folder.st_ctime_ns)
    known = _listed.get(site)
    if known is None or known[0] != key:
        began = time.time_ns()
        known = key, [path for path in sorted(os.listdir(site)) if path.endswith(".pth")]
        if began - max(key[2:]) > SETTLED_NANOSECONDS:
            _listed[site] = known
    for name in known[1]:
        path = os.path.join(site, name)
        status = os.stat(path)
        yield path, status.st_mtime_ns, status.st_size


_listed: dict[str, tuple[tuple[int, ...], list[str]]] = {}


@lru_cache(maxsize=64)
def _leaving(files: tuple[tuple[str, int, int], ...], within: tuple[str, ...]) -> list[str]:
    return [path for path, _, size in files if size > LONGEST_PATH_FILE or _leads_out(path, within)]


def _leads_out(path: str, within: tuple[str, ...]) -> bool:
    """Whether a line of it names a folder elsewhere; what an editable installation brings is code elsewhere, too."""
    if os.path.basename(path).startswith("__editable__"):
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    named = [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    real = [os.path.realpath(os.path.join(os.path.dirname(path), line)) for line in named]
    inside = [os.path.realpath(each) for each in within]
    return any(not any(is_inside(folder, each) for each in inside) for folder in real)


class Mount(NamedTuple):
    """A path of the host and where it stands inside; no source means that an empty folder covers what is there."""

    source: str
    target: str
    writable: bool


class Mounts(NamedTuple):
    """In order: a later one covers an earlier one."""

    grants: tuple[Mount, ...]
    """What was granted, outer folders first."""
    guards: tuple[Mount, ...]
    """Read-only on themselves, and the folders above them writable on themselves: a mount point cannot be renamed."""
    covers: tuple[Mount, ...]
    """The skill's copy, what is hidden, and the work folder."""


def mounts_for(reach: Reach, machine: Machine) -> Mounts:
    """What of the user's stands inside one run's walls, beside the system, which is there already."""
    return _plan(reach, machine, tuple(path for path in reach.hidden if os.path.lexists(path)))


def home_inside(reach: Reach) -> str:
    """Where the script finds its home; not in the way of what else it is shown."""
    shown = (reach.skill, reach.workspace or "", reach.work, *reach.interpreter, *reach.readable, *reach.writable)
    is_free = not any(is_inside(path, KEPT_HOME) or is_inside(KEPT_HOME, path) for path in shown if path)
    return KEPT_HOME if reach.home and is_free else NEW_HOME


@lru_cache(maxsize=8)  # asked for several times in one run; it depends on nothing but what it is given
def _plan(reach: Reach, machine: Machine, hidden: tuple[str, ...]) -> Mounts:
    standing = {path: False for path, target in machine.system if not target}
    grants = _grants(reach, standing, [path for path, target in machine.personal if not target])
    guards: list[Mount] = []
    for path in sorted(set(reach.protected) - {reach.skill, *reach.hidden}, key=_depth):
        root = _nearest(path, standing)
        if root is not None and standing[root]:
            guards += (*_pins(path, root, standing), Mount(path, path, writable=False))
            standing[path] = False
    covers: list[Mount] = []
    for path in sorted({reach.skill, *hidden}, key=_depth):
        root = _nearest(path, standing)
        if path != reach.skill and root is None:
            continue
        if root is not None and standing[root]:
            covers += _pins(path, root, standing)
        covers.append(Mount(reach.snapshot or path if path == reach.skill else "", path, writable=False))
        standing[path] = False
    covers += [Mount(os.devnull, path, writable=False) for path in reach.masked]
    covers += [Mount(path, path, writable=False) for path in reach.environments]
    if reach.apart and reach.node_modules:
        covers.append(Mount(reach.node_modules, f"{os.path.dirname(reach.apart)}/node_modules", writable=False))
    if reach.apart:
        covers.append(Mount(reach.snapshot or reach.skill, reach.apart, writable=False))
        covers += _beside(reach, reach.apart)
    if reach.home and not reach.filesystem:
        covers.append(Mount(reach.home, home_inside(reach), writable=True))
    covers.append(Mount(reach.work, reach.work, writable=True))
    return Mounts(tuple(grants), tuple(guards), tuple(covers))


def _beside(reach: Reach, apart: str) -> list[Mount]:
    """Folders that lie beside the skill stand beside its second place too, where they are reached by relative names."""
    top = os.path.dirname(apart)
    near = [(copy, os.path.basename(path)) for path, copy in reach.copies if _is_neighbour(path, reach.skill)]
    return [Mount(copy, f"{top}/{name}", writable=False) for copy, name in near if name != "node_modules"]


def _is_neighbour(path: str, other: str) -> bool:
    return os.path.dirname(path) == os.path.dirname(other)


def _grants(reach: Reach, standing: dict[str, bool], personal: list[str]) -> list[Mount]:
    """What was granted, outer folders first, without what is there already; notes it in `standing`."""
    written = (*([reach.workspace] if reach.workspace else []), *reach.writable, *(personal * reach.filesystem))
    asked = [(path, False) for path in _grantable((*reach.interpreter, *reach.readable), personal)]
    asked += [(path, True) for path in _grantable(written, personal)]
    kept = (*reach.protected, reach.skill)
    copies = dict(reach.copies)
    mounts = []
    for path, is_wanted_writable in sorted(asked, key=lambda each: (_depth(each[0]), not each[1])):
        writable = is_wanted_writable and not any(is_inside(path, each) for each in kept)
        root = _nearest(path, standing)
        if root is None or path in copies or (writable and not standing[root]):
            mounts.append(Mount(copies.get(path, path), path, writable))
            standing[path] = writable
    return mounts


def _grantable(paths: Iterable[str], personal: list[str]) -> list[str]:
    """Instead of the whole tree, users' files: it would bring the host's sockets, processes and devices along."""
    spelled_out = [each for path in paths for each in (personal if path == "/" else (path,))]
    return [
        path for path in spelled_out if path.startswith(SHARED_MEMORY) or not any(is_inside(path, own) for own in OWN)
    ]


def _pins(path: str, root: str, standing: dict[str, bool]) -> list[Mount]:
    """Mounts on every folder between: a mount point cannot be renamed, so `path` cannot be put aside with them."""
    pins = []
    folder = os.path.dirname(path)
    while folder != root and is_inside(folder, root):
        pins.append(Mount(folder, folder, writable=True))
        standing[folder] = True
        folder = os.path.dirname(folder)
    return pins[::-1]


def _nearest(path: str, standing: Mapping[str, bool]) -> str | None:
    """The innermost standing folder that holds `path`."""
    while path not in standing:
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path
