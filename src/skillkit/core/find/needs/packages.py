"""Names of imports -> names of packages, and which packages lead to which hosts: tables kept as data."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib.resources import files

from skillkit.core.find.needs.found import package_name

__all__ = [
    "NODE_BUILTINS",
    "hosts_of_package",
    "is_known_program",
    "is_standard",
    "npm_package_of",
    "package_of",
    "program_of",
    "program_sources",
]

PREFIX_PARTS = 4
# In the standard library of a Python that is still met, or the interpreter's own.
FORMERLY_STANDARD = frozenset(
    "asynchat asyncore imp distutils smtpd cgi cgitb crypt telnetlib nntplib pipes sndhdr imghdr audioop aifc chunk "
    "msilib nis ossaudiodev spwd sunau uu xdrlib lib2to3 mailcap formatter parser symbol macpath binhex "
    "dummy_threading "
    "tomllib __future__ __main__ winreg winsound msvcrt nt posix compression annotationlib urllib2 urlparse "
    "ConfigParser "
    "StringIO cStringIO Queue HTMLParser httplib commands _typeshed __builtin__".split()
)
# Only inside a program that brings them along; no index has them.
INSIDE_PROGRAMS = frozenset(
    "hou maya unreal c4d nuke lldb gdb idaapi idautils idc ida_hexrays ghidra java javax FreeCAD FreeCADGui Part Mesh "
    "apt apt_pkg pcbnew inkex scribus gimpfu rhinoscriptsyntax Rhino adsk bge xbmc burp mitmproxy_rs".split()
)
# What people install a package for that has several programs, or another name with another installer.
OTHER_FORMULAS = {
    "imagemagick": "convert",
    "libreoffice": "soffice",
    "nodejs": "node",
    "poppler": "pdftotext",
    "poppler-utils": "pdftotext",
}
NODE_BUILTINS = frozenset(
    "assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain "
    "events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl sea "
    "sqlite stream string_decoder sys test timers tls trace_events tty url util v8 vm wasi "
    "worker_threads zlib bun".split()
)
NPM_SPECIFIER = re.compile(r"(?:npm:)?((?:@[\w.-]{1,60}/)?[\w.-]{1,100})(?:@[^/]{1,40})?(?:/.{0,200})?")


@cache
def _tables() -> dict[str, dict[str, str]]:
    """Read at first need."""
    text = files("skillkit.core.find.needs").joinpath("tables.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = json.loads(text)
    return tables


def is_standard(module: str) -> bool:
    """Whether Python, or the program it runs in, has it without anything being installed."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in FORMERLY_STANDARD or top in INSIDE_PROGRAMS


def package_of(module: str) -> str:
    """The package that has the module: by the longest of its names that is known, else of the module's own name."""
    parts = module.split(".")[:PREFIX_PARTS]
    known = _tables()["imports"]
    for length in range(len(parts), 0, -1):
        if package := known.get(".".join(parts[:length])):
            return package
    return package_name(parts[0])


def npm_package_of(specifier: str) -> str:
    """`@scope/name` for `@scope/name/part`; empty for files, what Node has itself, and paths by an alias."""
    if specifier.startswith((".", "/", "#", "~", "@/", "node:", "bun:", "http:", "https:", "file:", "data:", "jsr:")):
        return ""
    found = NPM_SPECIFIER.fullmatch(specifier)
    name = found[1] if found else ""
    return "" if name.partition("/")[0] in NODE_BUILTINS else name


def hosts_of_package(package: str) -> tuple[str, ...]:
    """Whom a package that speaks to one service reaches."""
    return tuple(_tables()["hosts"].get(package, "").split())


def program_sources(program: str) -> str:
    """The system's package that has a program; empty where that is not known."""
    return _tables()["programs"].get(program, "")


def program_of(package: str) -> str:
    """The program that a package of the system's is installed for, where its name is another one."""
    return _programs_of_packages().get(package, package)


@cache
def _programs_of_packages() -> dict[str, str]:
    """The first program of each package in the order of the table; a program that is named as its package wins."""
    known = _tables()["programs"]
    reverse: dict[str, str] = {}
    for program, package in known.items():
        reverse.setdefault(package, program)
    return {**reverse, **{program: program for program in known}, **OTHER_FORMULAS}


def is_known_program(name: str) -> bool:
    return name in _tables()["programs"]
