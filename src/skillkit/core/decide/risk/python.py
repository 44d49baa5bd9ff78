"""Python text -> what its code reaches for, read from the syntax tree; comments and docstrings do not count."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from skillkit.core.decide.risk.encoded import decoded_preview
from skillkit.core.decide.risk.findings import Finding, Seen, Snippet, shown
from skillkit.core.decide.risk.python_names import IMPORTERS, Names, names_of
from skillkit.core.decide.risk.sensitive import (
    host_in,
    is_secret_name,
    outside_place,
    secret_variable,
    sensitive_findings,
)

__all__ = ["UNREADABLE", "python_seen"]

TALKING_MODULES = frozenset(
    "requests httpx aiohttp urllib3 urllib.request http.client http.server socketserver smtplib ftplib poplib imaplib "
    "nntplib telnetlib paramiko websocket websockets pycurl boto3 xmlrpc.client grpc dns.resolver openai anthropic "
    "slack_sdk tweepy telegram discord pymongo redis psycopg2 mysql.connector huggingface_hub playwright selenium "
    "webbrowser gdown yt_dlp".split()
)
HARMLESS_PARTS = (
    "requests.exceptions",
    "requests.structures",
    "httpx.HTTPError",
    "urllib3.util",
    "urllib3.disable_warnings",
)
TALKING = frozenset(
    "socket.socket socket.create_connection socket.create_server socket.getaddrinfo socket.gethostbyname "
    "asyncio.open_connection asyncio.start_server urllib.urlopen urllib2.urlopen ssl.get_server_certificate "
    "pandas.read_html".split()
)
STARTING = re.compile(
    r"(?:subprocess\.(?:run|Popen|call|check_call|check_output|getoutput|getstatusoutput)"
    r"|os\.(?:system|popen\d?|startfile|fork|forkpty|posix_spawnp?|exec[lv]p?e?|spawn[lv]p?e?)|pty\.spawn|commands\.getoutput"
    r"|asyncio\.create_subprocess_(?:exec|shell)|ctypes\.(?:CDLL|PyDLL|WinDLL|cdll\.LoadLibrary|windll\.\w{1,40}))\Z"
)
DELETING = frozenset(
    "shutil.rmtree os.remove os.unlink os.rmdir os.removedirs os.truncate send2trash.send2trash".split()
)
DELETING_METHODS = ("unlink", "rmdir")
EVALUATING = ("eval", "exec", "compile", "execfile")
LOADING = frozenset("marshal.loads marshal.load types.CodeType types.FunctionType code.InteractiveInterpreter".split())
PICKLES = frozenset("pickle.loads pickle.load dill.loads cloudpickle.loads _pickle.loads".split())
DECODING = frozenset(
    "base64.b64decode base64.urlsafe_b64decode base64.b85decode base64.a85decode base64.b32decode base64.b16decode "
    "base64.decodebytes bytes.fromhex binascii.unhexlify binascii.a2b_base64 zlib.decompress lzma.decompress "
    "bz2.decompress gzip.decompress codecs.decode".split()
)
STARRED = "os subprocess pty commands asyncio ctypes shutil send2trash socket urllib urllib2 ssl pandas".split()
SENSITIVE_MODULES = frozenset("os subprocess builtins sys importlib shutil socket ctypes pty __builtins__".split())
WRITING_METHODS = ("write_text", "write_bytes", "mkdir", "touch", "symlink_to", "hardlink_to", "chmod", "rename")
WRITING = {  # the place among the arguments that is written to
    **dict.fromkeys("os.mkdir os.makedirs os.chmod os.chown os.mkfifo".split(), 0),
    **dict.fromkeys("os.rename os.replace os.symlink os.link".split(), 1),
    **dict.fromkeys("shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move".split(), 1),
}
STORES = frozenset("keyring.get_password keyring.get_credential browser_cookie3.load browser_cookie3.chrome".split())
UNREADABLE = "Cannot be read as Python, so what it does was only guessed."
SHORTEST_SECRET = 24  # characters of an encoded text worth a look
LONGEST_COMMAND = 4_000

_warnings_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is called, or only named; then without arguments."""

    function: str
    node: ast.expr
    arguments: list[ast.expr]
    names: Names

    @property
    def line(self) -> int:
        return self.node.lineno

    def text(self, number: int) -> str | None:
        return self.names.text(self.arguments[number]) if len(self.arguments) > number else None


def python_seen(text: str, line: int = 1) -> Iterator[Seen]:
    """What cannot be parsed is said to be so: nobody can tell what it does."""
    try:
        nodes = list(ast.walk(parsed(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = getattr(error, "lineno", None) or 1
        yield Finding("obfuscation", UNREADABLE, line + at - 1)
        yield Snippet("unparsed python", text, line)
        return
    names = names_of(nodes)
    yield from (replace(seen, line=seen.line + line - 1) for seen in _seen_in(nodes, names))


def parsed(text: str) -> ast.Module:
    """Without the warnings that odd code gives: they would reach the person as if skillkit had written them."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _seen_in(nodes: list[ast.AST], names: Names) -> Iterator[Seen]:
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    talked: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Constant | ast.BinOp) and id(node) not in docstrings:
            yield from _of_text(node, names)
        elif isinstance(node, ast.Subscript):
            yield from _of_variable(names.dotted(node.value), names.text(node.slice), node.lineno)
        call = _call_of(node, names, is_called=id(node) in called)
        if call is not None:
            for look in LOOKS:
                for seen in look(call):
                    if isinstance(seen, Finding) and seen.kind == "network":
                        talked.add(module_of(call.function))
                    yield seen
    yield from _unused_imports(nodes, talked)


def _call_of(node: ast.AST, names: Names, *, is_called: bool) -> Call | None:
    """A call, or a function that is only named, as in `map(os.system, commands)`."""
    if isinstance(node, ast.Call):
        function = names.dotted(node.func) or _method(node.func)
        given = [*node.args, *(each.value for each in node.keywords)]
        return Call(_starred(function, names), node, given, names)
    is_reference = isinstance(node, ast.Name | ast.Attribute) and not is_called and isinstance(node.ctx, ast.Load)
    if not is_reference:
        return None
    function = _starred(names.dotted(node), names)  # type: ignore[arg-type]  # a name or an attribute
    is_dangerous = STARTING.match(function) or function in DELETING or function in ("eval", "exec")
    return Call(function, node, [], names) if is_dangerous else None  # type: ignore[arg-type]  # as above


def _method(node: ast.expr) -> str:
    return f"?.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _starred(function: str, names: Names) -> str:
    """`os.system` for `system` after `from os import *`."""
    candidates = (f"{module}.{function.removeprefix('?')}" for module in STARRED if module in names.stars)
    return next((each for each in candidates if STARTING.match(each) or each in DELETING | TALKING), function)


def _of_text(node: ast.Constant | ast.BinOp, names: Names) -> Iterator[Seen]:
    text = names.text(node)
    if text:
        yield from sensitive_findings(text, node.lineno)


def _of_variable(holder: str, name: str | None, line: int) -> Iterator[Seen]:
    if holder == "os.environ" and name and is_secret_name(name):
        yield secret_variable(name, line)


def _network(call: Call) -> Iterator[Seen]:
    module = module_of(call.function)
    is_talking = module and not call.function.startswith(HARMLESS_PARTS)
    if is_talking or call.function in TALKING:
        host = next(
            (found for found in (host_in(call.text(n) or "") for n in range(min(4, len(call.arguments)))) if found), ""
        )
        where = f": {host}" if host else ""
        yield Finding("network", f"Talks to the network with {shown(call.function)}{where}.", call.line)


def module_of(function: str) -> str:
    """The talking module that a dotted name belongs to; empty when there is none."""
    parts = function.split(".")
    return next((".".join(parts[:n]) for n in (1, 2) if ".".join(parts[:n]) in TALKING_MODULES), "")


def _unused_imports(nodes: list[ast.AST], talked: set[str]) -> Iterator[Seen]:
    """A module that talks and of which no call could be seen."""
    for node in nodes:
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [f"{node.module}.{each.name}" for each in node.names]
        for module in filter(None, map(module_of, modules)):
            if module not in talked and isinstance(node, ast.Import | ast.ImportFrom):
                yield Finding("network", f"Loads {module}, which talks to the network.", node.lineno)


def _process(call: Call) -> Iterator[Seen]:
    if not STARTING.match(call.function):
        return
    command = _command_text(call)
    yield Finding(
        "process", f"Starts programs with {shown(call.function)}{f': {shown(command)}' if command else ''}.", call.line
    )
    if command:
        yield Snippet("shell", command[:LONGEST_COMMAND], call.line)


def _command_text(call: Call) -> str:
    """The command where it is written out; parts that are not stand as `{}`."""
    if not call.arguments:
        return ""
    first = call.arguments[0]
    if isinstance(first, ast.List | ast.Tuple):
        words = (call.names.text(each) or "{}" for each in first.elts[:50])
        # A word with spaces is one argument, not several.
        return " ".join(f"'{word}'" if " " in word and "'" not in word else word for word in words)
    return call.names.text(first) or ""


def _delete(call: Call) -> Iterator[Seen]:
    method = call.function.rpartition(".")[2]
    if call.function in DELETING:
        what = call.text(0)
        yield Finding("delete", f"Deletes with {call.function}{f': {shown(what)}' if what else ''}.", call.line)
    elif method in DELETING_METHODS:
        yield Finding("delete", f"Deletes with .{method}().", call.line)


def _evaluation(call: Call) -> Iterator[Seen]:
    if call.function in EVALUATING:
        text = call.text(0)
        decodes = any(_decodes(each, call.names) for each in call.arguments[:1])
        if decodes:
            yield Finding("obfuscation", f"Runs code that it decodes first, with {call.function}.", call.line)
        elif text is None or call.function != "eval":
            yield Finding("obfuscation", f"Runs text as code with {call.function}.", call.line)
        if text:
            yield Snippet("python", text, call.line)
    elif call.function in LOADING:
        yield Finding("obfuscation", f"Makes code from bytes with {call.function}.", call.line)
    elif call.function in PICKLES and any(_decodes(each, call.names) for each in call.arguments[:1]):
        yield Finding("obfuscation", f"Loads objects, which can run code, with {call.function}.", call.line)


def _decodes(node: ast.expr, names: Names) -> bool:
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(names.dotted(each.func) in DECODING for each in calls)


def _decoding(call: Call) -> Iterator[Seen]:
    text = call.text(0) if call.function in DECODING else None
    if text and len(text) >= SHORTEST_SECRET:
        message = f"Holds an encoded text of {len(text):,} characters{decoded_preview(text)}."
        yield Finding("obfuscation", message, call.line)


def _built_names(call: Call) -> Iterator[Seen]:
    """Modules and functions whose names are not written out."""
    if call.function in IMPORTERS and call.arguments:
        name, is_plain = call.text(0), isinstance(call.arguments[0], ast.Constant)
        if not is_plain:
            what = f": {shown(name)}" if name else ""
            yield Finding("obfuscation", f"Imports a module whose name is put together{what}.", call.line)
    if not isinstance(call.node, ast.Call):
        return
    function, arguments = call.names.dotted(call.node.func), call.node.args
    is_getattr = function == "getattr" and len(arguments) > 1
    if (
        is_getattr
        and call.names.dotted(arguments[0]) in SENSITIVE_MODULES
        and not isinstance(arguments[1], ast.Constant)
    ):
        holder, name = call.names.dotted(arguments[0]), call.text(1)
        what = f": {shown(name)}" if name else ""
        yield Finding("obfuscation", f"Takes a part of {holder} whose name is put together{what}.", call.line)


def _outside(call: Call) -> Iterator[Seen]:
    path = _written_path(call)
    place = outside_place(path) if path else ""
    if place:
        yield Finding("outside_write", f"Writes outside its folder: {place}.", call.line)


def _written_path(call: Call) -> str | None:
    method = call.function.rpartition(".")[2]
    if call.function in ("open", "io.open", "codecs.open"):
        return call.text(0) if _is_writing(call.text(1)) else None
    if call.function in WRITING:
        return call.text(WRITING[call.function])
    if not isinstance(call.node, ast.Call) or not isinstance(call.node.func, ast.Attribute):
        return None
    if method in WRITING_METHODS or (method == "open" and _is_writing(call.text(0))):
        return call.names.text(call.node.func.value)
    return None


def _is_writing(mode: str | None) -> bool:
    return mode is not None and len(mode) < 5 and any(each in mode for each in "wax+")  # noqa: PLR2004 - as `rb+`


def _secrets(call: Call) -> Iterator[Seen]:
    if call.function in ("os.getenv", "os.environ.get", "os.environ.pop"):
        yield from _of_variable("os.environ", call.text(0), call.line)
    elif call.function in ("os.environ.items", "os.environ.values", "os.environ.__repr__"):
        yield Finding("credentials", "Reads the whole environment.", call.line)
    elif call.function in STORES:
        yield Finding("credentials", f"Asks for stored secrets with {call.function}.", call.line)
    elif call.function in ("json.dumps", "str", "repr", "print", "json.dump", "pickle.dumps"):
        named = ([*each.args, each.func][0] if isinstance(each, ast.Call) else each for each in call.arguments)
        if any(call.names.dotted(each) in ("os.environ", "os.environ.copy") for each in named):
            yield Finding("credentials", "Reads the whole environment.", call.line)


LOOKS: tuple[Callable[[Call], Iterator[Seen]], ...] = (
    _network,
    _process,
    _delete,
    _evaluation,
    _decoding,
    _built_names,
    _outside,
    _secrets,
)
