"""Text of Python -> what its code uses beyond the skill, read from the syntax tree.

Theory of operation. The tree is gone through from the top down, each node once. What an expression stands for is
worked out at its outermost node, so that `Path.home() / ".config" / "x"` is one path; its parts are then passed over.
Names that hold one literal are followed. Texts that are only printed, raised or shown as help name hosts and places
that nobody goes to, so they are passed over too. What cannot be parsed is read by patterns.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator

from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.shell_code import shell_facts
from skillkit.core.find.needs.siblings import note_reach
from skillkit.core.find.needs.texts import GAP, OWN_FILE, TEXT_LIMIT, note_hosts, note_patterns, note_place
from skillkit.core.models.detect.languages import parse_python

__all__ = ["python_facts"]

JOINED_PARTS = 50
DEPTH = 12  # parts of one expression inside each other
COMMAND_WORDS = 30
TEXT_BUDGET = 1_000_000  # characters of all texts that are put together
LOUD = re.compile(r"[A-Z][A-Z0-9_]{2,}")
PYTHON_FILE = re.compile(r"[\w./-]{1,200}\.(?:py|sh|bash|js|mjs|cjs|ts|rb|pl|ps1)")
GETTERS = ("os.getenv", "os.environ.get", "os.environ.pop", "os.environ.setdefault", "environ.get")
STARTERS = frozenset(
    "subprocess.run subprocess.Popen subprocess.call subprocess.check_call subprocess.check_output os.system os.popen "
    "subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_exec asyncio.create_subprocess_shell "
    "os.execv os.execvp os.execl os.execlp os.spawnlp shutil.which".split()
)
SAME_TEXT = frozenset(("os.path.expanduser", "pathlib.Path", "pathlib.PurePath", "str", "os.path.expandvars"))
SAME_TEXT_METHODS = frozenset("expanduser resolve absolute strip rstrip format as_posix".split())
SHOWING = frozenset(
    "print warn warning error info debug exception critical add_argument ArgumentParser echo secho exit fail "
    "add_parser write Exception RuntimeError ValueError SystemExit log die usage".split()
)
WRITING_METHODS = frozenset("write_text write_bytes mkdir touch unlink".split())
WRITERS = frozenset(("os.makedirs", "os.mkdir", "shutil.copy", "shutil.copytree", "shutil.move"))
CURRENT = frozenset(("os.getcwd", "os.getcwdb", "pathlib.Path.cwd"))
# Modules of the standard library, and packages, that exist to talk to others.
TALKERS = frozenset(
    "urllib.request http.client ftplib smtplib imaplib poplib telnetlib xmlrpc.client requests httpx aiohttp urllib3 "
    "httplib2 pycurl websocket websockets paramiko tweepy boto3 botocore feedparser curl_cffi cloudscraper selenium "
    "playwright openai anthropic litellm groq cohere replicate telethon praw yfinance wikipedia newspaper "
    "googleapiclient "
    "google.generativeai google.genai google.cloud huggingface_hub slack_sdk discord telegram stripe twilio sendgrid "
    "github gitlab notion_client tavily exa_py firecrawl elevenlabs fal_client ccxt web3 pymongo psycopg2 psycopg "
    "pymysql "
    "redis asyncpg yt_dlp duckduckgo_search ddgs spotipy pyairtable atproto imap_tools asyncssh dns whois trafilatura "
    "supabase akshare tushare alpaca resend deepl langchain_openai pinecone zhipuai dashscope".split()
)


LOOKED_AT = frozenset(
    (
        *(ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Call, ast.Subscript, ast.Compare),
        *(ast.Expr, ast.Raise, ast.Constant, ast.JoinedStr, ast.BinOp),
    )
)
# Without parts, and nothing by themselves; the rest are no nodes.
SILENT: frozenset[type] = frozenset(
    (
        *(
            ast.Name,
            ast.Load,
            ast.Store,
            ast.Del,
            ast.alias,
            ast.Pass,
            ast.Break,
            ast.Continue,
            ast.Global,
            ast.Nonlocal,
        ),
        *(each for kind in (ast.operator, ast.cmpop, ast.unaryop, ast.boolop) for each in kind.__subclasses__()),
        *(str, int, float, complex, bytes, bool, type(None), type(Ellipsis), ast.TypeIgnore),
    )
)


def python_facts(text: str, line: int = 1) -> Facts:
    """Never fails, whatever the text."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return note_patterns(text, "python", line)
    reader = _Reader(line - 1)
    reader.read(tree)
    return reader.facts


class _Reader:
    def __init__(self, before: int) -> None:
        self.facts = Facts()
        self.before = before
        self.meanings: dict[str, str] = {}
        """Full names of modules and their parts, by the name used in the file."""
        self.held: dict[str, ast.expr | None] = {}
        """What names hold; None where they are given more than once."""
        self.passed: set[ast.AST] = set()
        """Parts of an expression that was taken as a whole."""
        self.texts: dict[ast.AST, str | None] = {}
        self.budget = TEXT_BUDGET

    def read(self, tree: ast.Module) -> None:
        nodes = list(_from_the_top(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
                self.note_import(node)
            for name, value in _assigned(node):
                self.held[name] = None if name in self.held else value
        for node in nodes:
            self.look(node)

    def look(self, node: ast.AST) -> None:
        match node:
            case ast.Call():
                self.look_at_call(node)
            case ast.Subscript(value=holder, slice=key) if self.name_of(holder) == "os.environ":
                is_read = isinstance(node.ctx, ast.Load)
                self.note_variable(key, self.line(node), is_read=is_read)
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[holder]):
                if self.name_of(holder) == "os.environ":
                    self.note_variable(key, self.line(node))
            case ast.Expr(value=ast.Constant()):
                self.passed.add(node.value)
            case ast.Raise(exc=ast.Call(args=arguments)):
                self.pass_texts(arguments)
            case _:
                pass
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call) and node not in self.passed:
            self.look_at_text(node)

    def look_at_text(self, node: ast.expr) -> None:
        text = self.text(node)
        if not text:
            return
        self.pass_parts(node)
        line = self.line(node)
        note_hosts(self.facts, text, line)
        if text.startswith(("~", "/")):
            note_place(self.facts, text, line)
        if text.startswith(f"{OWN_FILE}/"):
            self.facts.reaches.setdefault(("file", text[len(OWN_FILE) + 1 :]), line)
        else:
            note_reach(self.facts, text, line)
        if PYTHON_FILE.fullmatch(text.removeprefix(OWN_FILE).lstrip("/").rpartition(f"{GAP}/")[2]):
            self.facts.uses[text.rpartition("/")[2]] = None
        if text in ("localhost", "127.0.0.1", "0.0.0.0"):  # noqa: S104 - nothing is bound here
            self.facts.add("loopback", "localhost", line)

    def look_at_call(self, node: ast.Call) -> None:
        function, line = self.name_of(node.func), self.line(node)
        last = function.rpartition(".")[2] or getattr(node.func, "attr", "")
        first = node.args[0] if node.args else None
        if last in SHOWING:
            self.pass_texts([*node.args, *(each.value for each in node.keywords)])
        if function in GETTERS and first is not None:
            default = self.text(node.args[1]) if len(node.args) > 1 else ""
            self.note_variable(first, line, has_default=bool(default))
        elif function in STARTERS:
            self.look_at_command(function, node, line)
        elif function in CURRENT:
            self.facts.add("working_directory", "workspace", line)
        elif "env" in last.lower() and first is not None and LOUD.fullmatch(self.text(first) or ""):
            self.note_variable(first, line, has_default=len(node.args) > 1)
        self.look_at_writing(function, last, node, line)

    def look_at_writing(self, function: str, last: str, node: ast.Call, line: int) -> None:
        """A place that is written is needed for writing, whatever else is done with it."""
        place: ast.expr | None = None
        if function in ("open", "io.open") and len(node.args) > 1 and _is_writing(self.text(node.args[1])):
            place = node.args[0]
        elif function in WRITERS and node.args:
            place = node.args[-1] if function.startswith("shutil.") else node.args[0]
        elif last in WRITING_METHODS and isinstance(node.func, ast.Attribute):
            place = node.func.value
        if place is not None and (text := self.text(place)) and text.startswith(("~", "/")):
            note_place(self.facts, text, line, is_written=True)
            self.pass_parts(place)

    def look_at_command(self, function: str, node: ast.Call, line: int) -> None:
        known = ("working_directory", "workspace") in self.facts.found
        self.note_command(function, node, line)
        if not known and any(each.arg == "cwd" for each in node.keywords):  # where it is started is its own affair
            self.facts.found.pop(("working_directory", "workspace"), None)

    def note_command(self, function: str, node: ast.Call, line: int) -> None:
        first = self.holding(node.args[0]) if node.args else None
        if function == "shutil.which":
            self.facts.add_program(self.text(first) or "", line)
        elif isinstance(first, ast.List | ast.Tuple):
            words = [self.text(each) or GAP for each in first.elts[:COMMAND_WORDS]]
            self.note_words(words, line)
        elif function.rpartition(".")[2] in ("create_subprocess_exec", "execlp", "execl", "spawnlp"):
            self.note_words([self.text(each) or GAP for each in node.args[:COMMAND_WORDS]], line)
        elif first is not None and (text := self.text(first)):
            self.facts.merge(shell_facts(text, line))
            self.pass_parts(first)

    def note_words(self, words: list[str], line: int) -> None:
        """Each is one argument, however it is written."""
        quoted = (
            word if re.fullmatch(r"[\w./:@=+,{}-]+", word) else "'" + word.replace("'", "") + "'" for word in words
        )
        if words and words[0] != GAP:
            self.facts.merge(shell_facts(" ".join(quoted), line))
        elif words[1:3] == ["-m", "pip"]:  # of this very Python
            self.facts.merge(shell_facts(" ".join(words[2:]), line))

    def note_variable(self, key: ast.expr, line: int, *, is_read: bool = True, has_default: bool = False) -> None:
        name = self.text(key)
        if name and is_read:
            self.facts.add_variable(name, line, has_default=has_default)

    def note_import(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for each in names:
                    bound = each.asname or each.name.partition(".")[0]
                    self.meanings[bound] = each.name if each.asname else bound
                    self.note_module(each.name, self.line(node))
            case ast.ImportFrom(module=module, names=names, level=level):
                for each in names:
                    dotted = ".".join(filter(None, (module, each.name if each.name != "*" else "")))
                    self.meanings[each.asname or each.name] = dotted
                    if level:
                        self.facts.uses[f"{'.' * level}{dotted}"] = None
                    else:
                        self.note_module(dotted, self.line(node))
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str() as module), *_],
            ):
                self.note_module(module, self.line(node))
            case _:
                pass

    def note_module(self, dotted: str, line: int) -> None:
        self.facts.imports.setdefault(dotted, line)
        parts = dotted.split(".")
        if any(".".join(parts[:length]) in TALKERS for length in (1, 2)):
            self.facts.note_talk(line)

    def holding(self, node: ast.expr) -> ast.expr:
        held = self.held.get(node.id) if isinstance(node, ast.Name) else None
        return node if held is None else held

    def name_of(self, node: ast.AST) -> str:
        """`os.environ.get` for `environ.get` after `from os import environ`; empty for what is computed."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < DEPTH:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join((self.meanings.get(node.id, node.id), *reversed(parts)))

    def text(self, node: ast.AST | None, depth: int = DEPTH) -> str | None:
        """What an expression gives, where the file alone tells it, gaps as `{}`; paths below home start with `~`."""
        if node is None or depth == 0 or self.budget < 0:
            return None
        if node not in self.texts:
            self.texts[node] = None  # what is made of itself is not told by the file
            text = self.work_out(node, depth - 1)
            self.texts[node] = None if text is None else text[:TEXT_LIMIT]
            self.budget -= len(text or "")
        return self.texts[node]

    def work_out(self, node: ast.AST, depth: int) -> str | None:  # noqa: PLR0911 - one for each kind of node
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.Name(id=name):
                return OWN_FILE if name == "__file__" else self.text(self.held.get(name), depth)
            case ast.Attribute() | ast.Subscript():
                return self.folder_above(node, depth)
            case ast.JoinedStr(values=parts):
                return "".join(self.part(part, depth) for part in parts[:JOINED_PARTS])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first = self.text(left, depth)
                return None if first is None else first + self.part(right, depth)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"{self.part(left, depth).rstrip('/')}/{self.part(right, depth)}"
            case ast.BinOp(left=left, op=ast.Mod()):
                return self.text(left, depth)
            case ast.Call():
                return self.result(node, depth)
            case _:
                return None

    def folder_above(self, node: ast.Attribute | ast.Subscript, depth: int) -> str | None:
        match node:
            case ast.Attribute(value=inner, attr="parent"):
                return self.above(inner, 1, depth)
            case ast.Subscript(value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int() as at)):
                return self.above(inner, min(at, DEPTH) + 1, depth)
            case _:
                return None

    def above(self, node: ast.AST, levels: int, depth: int) -> str | None:
        """Of a path that is told by where this file lies; of others nobody knows what is above."""
        text = self.text(node, depth)
        return text + "/.." * levels if text is not None and text.startswith(OWN_FILE) else None

    def part(self, node: ast.AST, depth: int) -> str:
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        found = self.text(inner, depth)
        return GAP if found is None else found

    def result(self, call: ast.Call, depth: int) -> str | None:
        """Of what puts paths together; other functions give a text that nobody knows."""
        function, arguments = self.name_of(call.func), call.args[:DEPTH]
        if function == "pathlib.Path.home":
            return "~"
        if function in GETTERS and arguments:
            is_home = self.text(arguments[0], depth) in ("HOME", "USERPROFILE")
            return "~" if is_home else self.text(arguments[1] if len(arguments) > 1 else None, depth)
        if function in ("os.path.dirname", "os.path.abspath", "os.path.realpath") and arguments:
            return self.above(arguments[0], int(function == "os.path.dirname"), depth)
        if isinstance(call.func, ast.Attribute) and call.func.attr in SAME_TEXT_METHODS:
            return self.text(call.func.value, depth)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "joinpath":
            arguments = [call.func.value, *arguments]
        elif function != "os.path.join" and function not in SAME_TEXT:
            return None
        return "/".join(self.part(each, depth) for each in arguments) if arguments else None

    def pass_parts(self, node: ast.AST) -> None:
        """Down to where another call begins that is no part of the text."""
        pending: list[tuple[ast.AST, int]] = [(node, DEPTH)]
        while pending:
            each, depth = pending.pop()
            if each in self.passed or depth == 0:
                continue
            self.passed.add(each)
            if isinstance(each, ast.BinOp | ast.JoinedStr | ast.FormattedValue | ast.Call | ast.Attribute):
                pending.extend((child, depth - 1) for child in ast.iter_child_nodes(each))

    def pass_texts(self, arguments: list[ast.expr]) -> None:
        for each in arguments:
            if isinstance(each, ast.Constant | ast.JoinedStr | ast.BinOp):
                self.passed.add(each)
                if not isinstance(each, ast.Constant):
                    self.pass_parts_of_text(each)

    def pass_parts_of_text(self, node: ast.AST) -> None:
        """Only the literal pieces: a call inside does what it does."""
        pending = [node]
        while pending:
            for child in ast.iter_child_nodes(pending.pop()):
                if isinstance(child, ast.Constant | ast.JoinedStr | ast.BinOp) and child not in self.passed:
                    self.passed.add(child)
                    pending.append(child)

    def line(self, node: ast.AST) -> int:
        return getattr(node, "lineno", 1) + self.before


def _from_the_top(tree: ast.AST) -> Iterator[ast.AST]:
    """What is looked at, parents before their parts; what is only for readers of types is left out.

    As `ast.walk`, which spends most of its time on nodes that say nothing here.
    """
    pending = deque([tree])
    while pending:
        node = pending.popleft()
        if type(node) in LOOKED_AT:
            yield node
        fields = node._fields
        if isinstance(node, ast.If) and "TYPE_CHECKING" in (getattr(node.test, "id", 0), getattr(node.test, "attr", 0)):
            fields = ("orelse",)
        for name in fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending.extend([each for each in value if type(each) not in SILENT])
            elif isinstance(value, ast.AST) and type(value) not in SILENT:
                pending.append(value)


def _assigned(node: ast.AST) -> list[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [(name, value)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return [(name, value)]
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            return [(name, value)]
        case _:
            return []


def _is_writing(mode: str | None) -> bool:
    return mode is not None and len(mode) < 5 and any(each in mode for each in "wax+")  # noqa: PLR2004 - as `rb+`
