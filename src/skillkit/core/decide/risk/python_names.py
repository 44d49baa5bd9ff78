"""A Python syntax tree -> what its names stand for: modules behind aliases, texts put together from pieces."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Names", "names_of"]

DEPTH = 40
NAME_LIMIT = 200
TEXT_LIMIT = 4_000  # characters of one text that is put together
TEXT_BUDGET = 1_000_000  # characters of all of them
BUILTINS = {
    *"eval exec compile execfile __import__ __builtins__ getattr open".split(),
    *"vars globals locals print str repr chr bytes".split(),
}
IMPORTERS = ("__import__", "importlib.import_module", "importlib.__import__")
NAMESPACES = ("globals", "locals", "vars")


@dataclass(slots=True)
class Names:
    """What is known of the names in one file, whatever the order and the scope in which they are given."""

    meanings: dict[str, str] = field(default_factory=dict)
    """Dotted names of modules and their parts, by the name used in the file."""
    stars: set[str] = field(default_factory=set)
    """Modules all of whose names were imported."""
    texts: dict[str, str | None] = field(default_factory=dict)
    """Names that hold one text; None where there are several."""
    budget: int = TEXT_BUDGET
    _dotted: dict[ast.expr, str] = field(default_factory=dict)
    _texts: dict[ast.expr, str | None] = field(default_factory=dict)

    def dotted(self, node: ast.expr, depth: int = 0) -> str:
        """`os.system` for `o.system`, `getattr(os, "sys" + "tem")` and the like; `?x` for an x nobody imported."""
        if depth > DEPTH:
            return ""
        if node not in self._dotted:
            self._dotted[node] = self._dotted_of(node, depth)
        return self._dotted[node]

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """The text an expression gives, where the file alone tells it; paths below home start with `~`."""
        if isinstance(node, ast.Constant):
            return constant_text(node)
        if depth > DEPTH or self.budget < 0:
            return None
        if node not in self._texts:
            found = self._text_of(node, depth)
            self.budget -= len(found or "")
            self._texts[node] = found
        return self._texts[node]

    def forget(self) -> None:
        """What was worked out, because names have other meanings now."""
        self._dotted.clear()
        self._texts.clear()

    def _dotted_of(self, node: ast.expr, depth: int) -> str:
        match node:
            case ast.Name(id=name):
                return self.meanings.get(name, name if name in BUILTINS else f"?{name}")
            case ast.Attribute(value=value, attr=attribute):
                return joined(self.dotted(value, depth + 1), attribute)
            case ast.Subscript(value=value, slice=key):
                return self._looked_up(self.dotted(value, depth + 1), self.text(key, depth + 1))
            case ast.Call(func=function, args=arguments):
                return self._called(self.dotted(function, depth + 1), arguments, depth)
            case _:
                return ""

    def _called(self, function: str, arguments: list[ast.expr], depth: int) -> str:
        if function in IMPORTERS and arguments:
            return self.text(arguments[0], depth + 1) or ""
        if function == "getattr" and len(arguments) > 1:
            return joined(self.dotted(arguments[0], depth + 1), self.text(arguments[1], depth + 1) or "")
        if function == "vars" and arguments:
            return joined(self.dotted(arguments[0], depth + 1), "__dict__")
        return f"{function}()" if function in NAMESPACES else ""

    def _looked_up(self, holder: str, key: str | None) -> str:
        """`sys.modules["os"]`, `os.__dict__["system"]`, `globals()["eval"]`, `__builtins__["eval"]` and its dict."""
        if not key:
            return ""
        if holder in ("sys.modules", "globals()", "locals()", "__builtins__", "__dict__"):
            return self.meanings.get(key, key)  # whatever it is, it is asked for by its name
        return joined(holder.removesuffix(".__dict__"), key) if holder.endswith(".__dict__") else ""

    def _text_of(self, node: ast.expr, depth: int) -> str | None:
        match node:
            case ast.Name(id=name):
                return self.texts.get(name)
            case ast.BinOp(left=left, op=ast.Add() | ast.Div() | ast.Mod() as operator, right=right):
                return self._put_together(left, operator, right, depth)
            case ast.JoinedStr(values=parts):
                values = (part.value if isinstance(part, ast.FormattedValue) else part for part in parts)
                pieces = [self.text(value, depth + 1) for value in values]
                return within_limit("{}" if piece is None else piece for piece in pieces)
            case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub()))):
                reversed_text = self.text(value, depth + 1)
                return reversed_text and reversed_text[::-1]
            case ast.Call():
                return self._computed(node, depth)
            case _:
                return None

    def _put_together(self, left: ast.expr, operator: ast.operator, right: ast.expr, depth: int) -> str | None:
        first, second = self.text(left, depth + 1), self.text(right, depth + 1)
        if first is None:
            return None
        if isinstance(operator, ast.Mod):
            return first
        if second is None:
            return first if isinstance(operator, ast.Div) else None
        return within_limit((first, "/" if isinstance(operator, ast.Div) and not first.endswith("/") else "", second))

    def _computed(self, call: ast.Call, depth: int) -> str | None:
        function, arguments = self.dotted(call.func, depth + 1), call.args
        first = self.text(arguments[0], depth + 1) if arguments else None
        if function == "pathlib.Path.home":
            return "~"
        if function in ("os.path.expanduser", "pathlib.Path", "pathlib.PurePath", "str", "os.fspath"):
            return first
        if function == "os.path.join" and first is not None:
            rest = [self.text(each, depth + 1) or "{}" for each in arguments[1:]]
            return within_limit("/".join((first, *rest)))
        if function in ("os.getenv", "os.environ.get") and first == "HOME":
            return "~"
        if function == "chr" and arguments and isinstance(arguments[0], ast.Constant):
            number = arguments[0].value
            return chr(number) if isinstance(number, int) and 0 <= number < 0x110000 else None  # noqa: PLR2004
        return self._of_method(call, first, depth)

    def _of_method(self, call: ast.Call, first: str | None, depth: int) -> str | None:
        own = self.text(call.func.value, depth + 1) if isinstance(call.func, ast.Attribute) else None
        if own is None or not isinstance(call.func, ast.Attribute):
            return None
        match call.func.attr, call.args:
            case "join", [ast.List(elts=parts) | ast.Tuple(elts=parts)]:
                pieces = [self.text(each, depth + 1) for each in parts]
                return None if None in pieces else within_limit(own.join(filter(None, pieces)))
            case "replace", [_, ast.Constant(value="")]:
                return own.replace(first or "\0", "")
            case (("expanduser" | "resolve" | "absolute" | "strip" | "lower" | "encode" | "decode" | "format"), _):
                return own
            case "joinpath", arguments:
                return within_limit("/".join((own, *(self.text(each, depth + 1) or "{}" for each in arguments))))
            case _:
                return None


def constant_text(node: ast.Constant) -> str | None:
    value = node.value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else None


def joined(holder: str, attribute: str) -> str:
    """`__builtins__.eval` and `builtins.eval` are `eval`; longer names than anything has are none."""
    if not holder or not attribute or len(holder) > NAME_LIMIT:
        return ""
    return attribute if holder in ("builtins", "__builtins__") else f"{holder}.{attribute}"


def within_limit(pieces: Iterable[str]) -> str:
    return "".join(pieces)[:TEXT_LIMIT]


def names_of(nodes: Sequence[ast.AST]) -> Names:
    """Read twice, because a name may be given further down than where it is used; parents come before their parts."""
    names = Names()
    kept = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.NamedExpr)]
    for node in kept:
        _note_import(names, node)
    assigned = [pair for node in kept for pair in _assigned(node)]
    for _ in range(2):
        names.texts.clear()
        for name, value in assigned:
            names.forget()
            _note_assignment(names, name, value)
    names.forget()
    # Parts first: then no name is too far down to be known.
    for part in reversed(nodes):
        if isinstance(part, ast.Attribute | ast.Subscript | ast.Call):
            names.dotted(part)
    names.budget = TEXT_BUDGET
    return names


def _note_import(names: Names, node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        for each in node.names:
            name = each.asname or each.name.partition(".")[0]
            names.meanings[name] = each.name if each.asname else name
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for each in node.names:
            if each.name == "*":
                names.stars.add(node.module)
            else:
                names.meanings[each.asname or each.name] = joined(node.module, each.name)


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


def _note_assignment(names: Names, name: str, value: ast.expr) -> None:
    text = names.text(value)
    if name in names.texts and names.texts[name] != text:
        names.texts[name] = None
    else:
        names.texts[name] = text
    meaning = names.dotted(value)
    if meaning and "?" not in meaning:
        names.meanings.setdefault(name, meaning)
