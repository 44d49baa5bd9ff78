"""The text of a module -> the same text many times, each time with one small thing wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "faults_in", "mutants_of"]

COMPARED = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OPPOSITE_CALLS = {"max": "min", "min": "max", "any": "all", "all": "any"}
OTHER_DECISIONS = {"ALLOW": ("ASK", "DENY"), "ASK": ("ALLOW", "DENY"), "DENY": ("ALLOW", "ASK")}
# Types, decorators, texts and the names of what is exported decide nothing.
NOT_ENTERED = (ast.JoinedStr, ast.Import, ast.ImportFrom)
TYPE_FIELDS = {"annotation", "decorator_list", "returns", "type_comment"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong version of a module; `key` names the fault without line numbers, so that it can be listed."""

    line: int
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node hangs in its tree."""

    parent: ast.AST
    field: str
    index: int | None
    function: str
    is_bool: bool
    """Whether the function around it gives a truth value."""

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(text: str) -> Iterator[Mutant]:
    tree = ast.parse(text)
    for line, key in faults_in(tree):
        yield Mutant(line, key, ast.unparse(ast.fix_missing_locations(tree)))


def faults_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of one fault after another; the tree has it until the next one is asked for."""
    for place, node in [*places(tree, "module", is_bool=False)]:
        before = ast.unparse(node)
        changes = [(other, f"{before} -> {ast.unparse(other)}") for other in alternatives(node, place)]
        changes += [(other, f"without {missing}") for other, missing in shorter_collections(node, place)]
        for other, change in changes:
            place.put(other)
            yield getattr(node, "lineno", 0), f"{place.function}: {' '.join(change.split())}"
            place.put(node)


def places(parent: ast.AST, function: str, *, is_bool: bool) -> Iterator[tuple[Place, ast.AST]]:
    """Every node that may be wrong, with where it hangs."""
    for field, value in ast.iter_fields(parent):
        if field in TYPE_FIELDS:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(node, ast.AST) or isinstance(node, NOT_ENTERED) or is_type(node):
                continue
            yield Place(parent, field, index, function, is_bool), node
            if isinstance(node, ast.FunctionDef):
                gives_bool = isinstance(node.returns, ast.Name) and node.returns.id == "bool"
                yield from places(node, node.name, is_bool=gives_bool)
            elif isinstance(node, ast.ClassDef):
                yield from places(node, node.name, is_bool=False)
            else:
                yield from places(node, function, is_bool=is_bool)


def is_type(node: ast.AST) -> bool:
    """`Callable[[A], B]`: several things in brackets."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)


def alternatives(node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """What could stand there by mistake."""
    yield from wrong_conditions(place)
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            yield from (ast.Compare(left, [other()], comparators) for other in COMPARED[type(op)])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            yield from values
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Attribute(value=ast.Name(id="Decision"), attr=name) if name in OTHER_DECISIONS:
            yield from (ast.Attribute(node.value, other, ast.Load()) for other in OTHER_DECISIONS[name])
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITE_CALLS:
            yield ast.Call(ast.Name(OPPOSITE_CALLS[name], ast.Load()), node.args, node.keywords)
        case ast.Return():
            yield from wrong_returns(node, place)
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Call()) | ast.Raise():
            yield ast.Pass()
        case _:
            return


def wrong_conditions(place: Place) -> Iterator[ast.AST]:
    """Always true and always false, for what an `if` asks."""
    is_condition = (place.field == "test" and isinstance(place.parent, ast.If | ast.IfExp | ast.While)) or (
        place.field == "ifs" and isinstance(place.parent, ast.comprehension)
    )
    if is_condition and not isinstance(place.parent, ast.While):
        yield from (ast.Constant(value=True), ast.Constant(value=False))


def wrong_returns(node: ast.Return, place: Place) -> Iterator[ast.AST]:
    if node.value is None:
        yield ast.Pass()
    elif place.is_bool:
        yield ast.Return(ast.UnaryOp(ast.Not(), node.value))
    elif ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))


def shorter_collections(node: ast.AST, place: Place) -> Iterator[tuple[ast.AST, str]]:
    """A table or list with one entry missing, and what that is."""
    if is_export_list(place):
        return
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and not isinstance(getattr(node, "ctx", None), ast.Store):
        context = [] if isinstance(node, ast.Set) else [ast.Load()]
        for index, each in enumerate(node.elts):
            yield type(node)(without(node.elts, index), *context), f"an entry {ast.unparse(each)}"
    elif isinstance(node, ast.Dict):
        for index, each in enumerate(node.values):
            missing = f"an entry {ast.unparse(node.keys[index] or each)}"
            yield ast.Dict(without(node.keys, index), without(node.values, index)), missing


def without(values: list[Any], index: int) -> list[Any]:
    return values[:index] + values[index + 1 :]


def is_export_list(place: Place) -> bool:
    return isinstance(place.parent, ast.Assign) and ast.unparse(place.parent.targets[0]) == "__all__"
