"""Text of Python -> its syntax tree, without a word about it to anybody."""

from __future__ import annotations

import ast
import threading
import warnings

__all__ = ["parse_python"]

_warnings_lock = threading.Lock()


def parse_python(text: str) -> ast.Module:
    """Without the warnings that odd code gives: they would reach the person as if skillkit had written them.

    SyntaxError, ValueError, RecursionError or MemoryError for what is no Python.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
