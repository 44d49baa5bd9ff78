"""Python text -> what its code reaches for, read from the syntax tree; comments and docstrings do not count.

Theory of operation. The nodes of the tree are gone through from the leaves up, so that what each expression stands
for is worked out once from its parts: the full name of a function behind imports and aliases, and the text where the
file alone tells it. Names may be given further down than where they are used, so the tree is gone through until the
names are settled, and once more to look.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skillkit.core.ask.risk import rules
from skillkit.core.ask.risk.rules import Finding, Rule, Seen, Snippet, clip
from skillkit.core.ask.risk.texts import encoded_text, host_in, outside_place, secret_variable, sensitive_findings
from skillkit.core.models.detect.languages import parse_python

__all__ = ["UNREADABLE", "python_seen"]

UNREADABLE = "Cannot be read as Python, so what it does was only guessed."
SHORTEST_SECRET = 24  # characters of an encoded text worth a look
LONGEST_COMMAND = 4_000
NAME_LIMIT = 200
TEXT_LIMIT = 4_000  # characters of one text that is put together
TEXT_BUDGET = 1_000_000  # characters of all of them
BUILTINS = {
    *"eval exec compile execfile __import__ __builtins__ getattr open".split(),
    *"vars globals locals print str repr chr bytes".split(),
}
NAMESPACES = ("sys.modules", "globals()", "locals()", "__builtins__", "__dict__")
# Functions and methods that give their text back, so far as a flag is concerned.
SAME_TEXT = ("os.path.expanduser", "pathlib.Path", "pathlib.PurePath", "str", "os.fspath")
SAME_TEXT_METHODS = ("expanduser", "resolve", "absolute", "strip", "lower", "encode", "decode", "format")
LINE_END = re.compile(r"\r\n|\r|\n")


def python_seen(text: str, line: int = 1) -> Iterator[Seen]:
    """What cannot be parsed is said to be so: nobody can tell what it does."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        seen: Iterator[Seen] = iter([Finding("obfuscation", UNREADABLE, getattr(error, "lineno", None) or 1)])
        rest = [Snippet("unparsed python", text, line)]
    else:
        seen, rest = _seen_in(_leaves_first(tree)), []
    # A carriage return alone ends a line for Python, and for nobody who reads the file.
    own = [line]
    for end in LINE_END.findall(text):
        own.append(own[-1] + ("\n" in end))
    yield from (replace(each, line=own[min(each.line, len(own)) - 1]) for each in seen)
    yield from rest


def _leaves_first(tree: ast.AST) -> list[ast.AST]:
    nodes, pending = [], [tree]
    while pending:
        nodes.append(pending.pop())
        pending.extend(ast.iter_child_nodes(nodes[-1]))
    return nodes[::-1]


class _Names:
    """What the names and expressions of one file stand for, in whatever order and scope they are given."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.meanings: dict[str, str] = {}
        """Full names of modules and their parts, by the name used in the file."""
        self.stars: list[str] = []
        """Modules all of whose names were imported."""
        self.held: dict[str, str | None] = {}
        """Texts that names hold; None where there are several."""
        for node in nodes:
            self._note_import(node)
        for is_last in (False, False, True):
            self._functions: dict[ast.AST, str] = {}
            self._texts: dict[ast.AST, str | None] = {}
            self._budget = TEXT_BUDGET
            if not is_last:
                self.held.clear()
            for node in nodes:
                self._work_out(node)
                for name, value in () if is_last else _assigned(node):
                    self._note_assignment(name, value)

    def function(self, node: ast.AST) -> str:
        """`os.system` for `o.system`, `getattr(os, "sys" + "tem")` and the like; `?x` for an x nobody imported."""
        return self._functions.get(node, "")

    def text(self, node: ast.AST) -> str | None:
        """The text an expression gives, where the file alone tells it; paths below home start with `~`."""
        return self._texts.get(node)

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                self.meanings[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                if each.name != "*":
                    self.meanings[each.asname or each.name] = _join(node.module, each.name)
                elif node.module in rules.STARRED_MODULES and node.module not in self.stars:
                    self.stars.append(node.module)

    def _note_assignment(self, name: str, value: ast.expr) -> None:
        text, meaning = self.text(value), self.function(value)
        self.held[name] = text if self.held.get(name, text) == text else None
        if meaning and "?" not in meaning:
            self.meanings.setdefault(name, meaning)

    def _work_out(self, node: ast.AST) -> None:
        """From what is known of its parts."""
        match node:
            case ast.Name(id=name):
                self._functions[node] = self.meanings.get(name, name if name in BUILTINS else f"?{name}")
                self._texts[node] = self.held.get(name)
            case ast.Constant(value=str() | bytes() as value):
                self._texts[node] = value if isinstance(value, str) else value.decode("latin-1")
            case ast.FormattedValue(value=value) | ast.NamedExpr(value=value):
                self._functions[node], self._texts[node] = self.function(value), self.text(value)
            case ast.Attribute(value=holder, attr=attribute):
                self._functions[node] = _join(self.function(holder), attribute)
            case ast.Subscript(value=holder, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp())):
                self._keep(node, (self.text(holder) or "")[::-1] or None)
            case ast.Subscript(value=holder, slice=key):
                self._functions[node] = self._look_up(self.function(holder), self.text(key))
            case ast.Call():
                self._functions[node] = self._result(node)
                self._keep(node, self._result_text(node))
            case ast.BinOp(left=left, op=ast.Add() | ast.Div() | ast.Mod() as operator, right=right):
                self._keep(node, _put_together(self.text(left), operator, self.text(right)))
            case ast.JoinedStr(values=parts):
                self._keep(node, "".join(_or_gap(self.text(part)) for part in parts))
            case _:
                pass

    def _keep(self, node: ast.AST, text: str | None) -> None:
        """Cut: what is put together again and again would take the square of its length."""
        kept = text[:TEXT_LIMIT] if text is not None and self._budget > 0 else None
        self._budget -= len(kept or "")
        self._texts[node] = kept

    def _look_up(self, holder: str, key: str | None) -> str:
        """`sys.modules["os"]`, `os.__dict__["system"]`, `globals()["eval"]`, `__builtins__["eval"]` and its dict."""
        if key and holder in NAMESPACES:
            return self.meanings.get(key, key)  # whatever it is, it is asked for by its name
        return _join(holder.removesuffix(".__dict__"), key or "") if holder.endswith(".__dict__") else ""

    def _result(self, call: ast.Call) -> str:
        function, arguments = self.function(call.func), call.args
        if rules.PYTHON.get(function) == rules.BUILDS_MODULE and arguments:
            return self.text(arguments[0]) or ""
        if function == "getattr" and len(arguments) > 1:
            return _join(self.function(arguments[0]), self.text(arguments[1]) or "")
        if function == "vars" and arguments:
            return _join(self.function(arguments[0]), "__dict__")
        return f"{function}()" if function in ("globals", "locals", "vars") else ""

    def _result_text(self, call: ast.Call) -> str | None:
        """Of what puts paths and names together; other functions give a text that nobody knows."""
        function, texts = self.function(call.func), [self.text(each) for each in call.args]
        first = texts[0] if texts else None
        if function == "pathlib.Path.home" or (rules.PYTHON.get(function) == rules.READS_VARIABLE and first == "HOME"):
            return "~"
        if function == "os.path.join" and first is not None:
            return "/".join(map(_or_gap, texts))
        if function in SAME_TEXT:
            return first
        return self._method_text(call.func, call.args, texts) if isinstance(call.func, ast.Attribute) else None

    def _method_text(self, method: ast.Attribute, arguments: list[ast.expr], texts: list[str | None]) -> str | None:
        own = self.text(method.value)
        if own is None or method.attr in SAME_TEXT_METHODS:
            return own
        if method.attr == "joinpath":
            return "/".join((own, *map(_or_gap, texts)))
        if method.attr == "join" and arguments and isinstance(arguments[0], ast.List | ast.Tuple):
            pieces = [self.text(each) for each in arguments[0].elts]
            return None if None in pieces else own.join(filter(None, pieces))
        return None


def _or_gap(text: str | None) -> str:
    return "{}" if text is None else text


def _put_together(first: str | None, operator: ast.operator, second: str | None) -> str | None:
    if first is None or isinstance(operator, ast.Mod):
        return first
    if second is None:
        return first if isinstance(operator, ast.Div) else None
    return f"{first}{'/' if isinstance(operator, ast.Div) and not first.endswith('/') else ''}{second}"


def _join(holder: str, attribute: str) -> str:
    """`__builtins__.eval` and `builtins.eval` are `eval`; longer names than anything has are none."""
    if not holder or not attribute or len(holder) > NAME_LIMIT:
        return ""
    return attribute if holder in ("builtins", "__builtins__") else f"{holder}.{attribute}"


def _assigned(node: ast.AST) -> list[tuple[str, ast.expr]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            return [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = zip(targets, values, strict=False)
            return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]
        case _:
            return []


@dataclass(frozen=True, slots=True)
class _Use:
    """A function that is called, or only named; then without arguments."""

    function: str
    node: ast.AST
    line: int
    arguments: list[ast.expr]
    names: _Names

    def text(self, number: int) -> str | None:
        return self.names.text(self.arguments[number]) if len(self.arguments) > number else None

    @property
    def rule(self) -> Rule | None:
        return _rule_for(self.function)


def _rule_for(function: str) -> Rule | None:
    return rules.STARTS if function.rpartition(".")[0] == rules.LOADED_LIBRARIES else rules.PYTHON.get(function)


def _seen_in(nodes: Sequence[ast.AST]) -> Iterator[Seen]:
    names = _Names(nodes)
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    talked: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Constant | ast.BinOp) and node not in docstrings:
            yield from sensitive_findings(names.text(node) or "", node.lineno)
        elif isinstance(node, ast.Subscript) and names.function(node.value) == "os.environ":
            yield from secret_variable(names.text(node.slice) or "", node.lineno)
        use = _use_of(node, names, is_called=node in called)
        if use is not None:
            for seen in (found for look in LOOKS for found in look(use)):
                if isinstance(seen, Finding) and seen.kind == "network":
                    talked.add(_talking_module(use.function))
                yield seen
    yield from _unused_imports(nodes, talked)


def _use_of(node: ast.AST, names: _Names, *, is_called: bool) -> _Use | None:
    """A call, or a function that is only named, as in `map(os.system, commands)`."""
    if isinstance(node, ast.Call):
        method = f"?.{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
        arguments = [*node.args, *(each.value for each in node.keywords)]
        return _Use(_starred(names.function(node.func) or method, names), node, node.lineno, arguments, names)
    if is_called or not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    function = _starred(names.function(node), names)
    is_dangerous = _rule_for(function) in (rules.STARTS, rules.DELETES) or function in ("eval", "exec")
    return _Use(function, node, node.lineno, [], names) if is_dangerous else None


def _starred(function: str, names: _Names) -> str:
    """`os.system` for `system` after `from os import *`."""
    candidates = (f"{module}.{function.removeprefix('?')}" for module in names.stars)
    return next(
        (each for each in candidates if _rule_for(each) in (rules.STARTS, rules.DELETES, rules.TALKS)), function
    )


def _talking_module(function: str) -> str:
    """The talking module that a dotted name belongs to; empty when there is none."""
    parts = function.split(".")
    return next((".".join(parts[:n]) for n in (1, 2) if ".".join(parts[:n]) in rules.TALKING_MODULES), "")


def _unused_imports(nodes: Sequence[ast.AST], talked: set[str]) -> Iterator[Seen]:
    """A module that talks and of which no call could be seen."""
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.ImportFrom) and node.level):
            continue
        before = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        modules = [f"{before}{each.name}" for each in node.names]
        for module in filter(None, map(_talking_module, modules)):
            if module not in talked:
                yield rules.LOADS_TALKER.at(node.lineno, module)


def _by_rule(use: _Use) -> Iterator[Seen]:
    """What the name of a function tells."""
    rule, line, first = use.rule, use.line, use.text(0)
    is_talking = _talking_module(use.function) and not use.function.startswith(rules.SILENT_PARTS)
    if is_talking or rule == rules.TALKS:
        hosts = (host_in(use.text(number) or "") for number in range(4))
        yield rules.TALKS.at(line, clip(use.function), next(filter(None, hosts), ""))
    elif rule == rules.STARTS:
        command = _command_text(use)
        yield rules.STARTS.at(line, clip(use.function), clip(command))
        yield from [Snippet("shell", command[:LONGEST_COMMAND], line)] if command else []
    elif rule == rules.DELETES:
        yield rules.DELETES.at(line, use.function, clip(first or ""))
    elif rule == rules.HOLDS_ENCODED:
        yield from [encoded_text(first, line)] if first and len(first) >= SHORTEST_SECRET else []
    elif rule == rules.READS_VARIABLE:
        yield from secret_variable(first or "", line)
    elif rule in (rules.MAKES_CODE, rules.ASKS_SECRETS):
        yield rule.at(line, use.function)
    elif rule == rules.READS_ENVIRONMENT:
        yield rule.at(line)


def _command_text(use: _Use) -> str:
    """The command where it is written out; parts that are not stand as `{}`."""
    first = use.arguments[0] if use.arguments else None
    if isinstance(first, ast.List | ast.Tuple):
        words = (use.names.text(each) or "{}" for each in first.elts[:50])
        # A word with spaces is one argument, not several.
        return " ".join(f"'{word}'" if " " in word and "'" not in word else word for word in words)
    return use.text(0) or ""


def _evaluation(use: _Use) -> Iterator[Seen]:
    first = use.arguments[0] if use.arguments else None
    calls = (each for each in ast.walk(first) if isinstance(each, ast.Call)) if first is not None else ()
    decodes = use.rule in (rules.RUNS_TEXT, rules.LOADS_OBJECTS) and any(
        rules.PYTHON.get(use.names.function(call.func)) == rules.HOLDS_ENCODED for call in calls
    )
    if use.rule == rules.LOADS_OBJECTS and decodes:
        yield rules.LOADS_OBJECTS.at(use.line, use.function)
    if use.rule == rules.RUNS_TEXT:
        text = use.text(0)
        if decodes:
            yield rules.RUNS_DECODED_CODE.at(use.line, use.function)
        elif text is None or use.function != "eval":
            yield rules.RUNS_TEXT.at(use.line, use.function)
        yield from [Snippet("python", text, use.line)] if text else []


def _built_names(use: _Use) -> Iterator[Seen]:
    """Modules and functions whose names are not written out."""
    if use.rule == rules.BUILDS_MODULE and use.arguments and not isinstance(use.arguments[0], ast.Constant):
        yield rules.BUILDS_MODULE.at(use.line, what=clip(use.text(0) or ""))
    if not isinstance(use.node, ast.Call) or use.names.function(use.node.func) != "getattr":
        return
    holder = use.names.function(use.node.args[0]) if len(use.node.args) > 1 else ""
    if holder in rules.SENSITIVE_MODULES and not isinstance(use.node.args[1], ast.Constant):
        yield rules.BUILDS_PART.at(use.line, holder, clip(use.text(1) or ""))


def _places(use: _Use) -> Iterator[Seen]:
    method = use.function.rpartition(".")[2]
    if use.rule != rules.DELETES and method in rules.DELETING_METHODS:
        yield rules.DELETES.at(use.line, f".{method}()")
    path: str | None = None
    if use.function in ("open", "io.open", "codecs.open"):
        path = use.text(0) if _is_writing(use.text(1)) else None
    elif use.function in rules.WRITTEN_ARGUMENT:
        path = use.text(rules.WRITTEN_ARGUMENT[use.function])
    elif isinstance(use.node, ast.Call) and isinstance(use.node.func, ast.Attribute):
        is_writing = method in rules.WRITING_METHODS or (method == "open" and _is_writing(use.text(0)))
        path = use.names.text(use.node.func.value) if is_writing else None
    if place := outside_place(path or ""):
        yield rules.WRITES_OUTSIDE.at(use.line, what=place)


def _is_writing(mode: str | None) -> bool:
    return mode is not None and len(mode) < 5 and any(each in mode for each in "wax+")  # noqa: PLR2004 - as `rb+`


def _printed_environment(use: _Use) -> Iterator[Seen]:
    if use.function in rules.PRINTING:
        named = ([*each.args, each.func][0] if isinstance(each, ast.Call) else each for each in use.arguments)
        if any(use.names.function(each) in ("os.environ", "os.environ.copy") for each in named):
            yield rules.READS_ENVIRONMENT.at(use.line)


LOOKS = (_by_rule, _evaluation, _built_names, _places, _printed_environment)
