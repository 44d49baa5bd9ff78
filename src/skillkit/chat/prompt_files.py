"""A person's own prompt file -> the question in it, with the output of its commands in their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillkit.chat.events import Event
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import is_inside, real_path
from skillkit.integrations.inline import InlineProcessor, Text

__all__ = ["expanded_prompt", "prompt_text"]

SIZE_LIMIT_BYTES = 1_000_000


def prompt_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}. Name another file.") from error
    if len(content) > SIZE_LIMIT_BYTES:
        raise ConfigurationError(f"{path} has more than {SIZE_LIMIT_BYTES} bytes. Ask with less.")
    return content.decode("utf-8-sig", "replace").strip()


def expanded_prompt(
    path: Path,
    processor: InlineProcessor,
    skill_folders: Sequence[Path],
    show: Callable[[Event], None],
) -> str:
    """Nothing in what a command prints runs. A file of a skill is not a person's own: it stays as it is."""
    text = prompt_text(path)
    real = real_path(path)
    if any(is_inside(real, real_path(folder)) for folder in skill_folders):
        return text
    parts = []
    for shown in processor.stream([text]):
        if isinstance(shown, Text):
            parts.append(shown.text)
            continue
        show(shown)
        if shown.command.kind == "capture" and shown.result is not None:
            parts.append(processor.as_data(shown.output).rstrip("\n"))
    return "".join(parts).strip()
