"""A name and attributes -> an OpenTelemetry span for a block, where its API is installed; else nothing.

Front and worker have a span each. Nothing but a run's id travels between them, so that is how they are told to belong
together: the attribute `skillkit.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["span"]

Say = Callable[[str, str], None]


@contextmanager
def span(name: str, **attributes: str) -> Iterator[Say]:
    """Who is inside may say more of it. Never the words or the output of a run: what they hold is not ours to show."""
    tracer = _tracer()
    if tracer is None:
        yield lambda _key, _value: None
        return
    told = {f"skillkit.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(name, attributes=told) as current:
        yield lambda key, value: current.set_attribute(f"skillkit.{key}", value)


@cache
def _tracer() -> Any:  # noqa: ANN401 - of a library that may not be there
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    from skillkit._version import __version__

    return trace.get_tracer("skillkit", __version__)
