"""What a run shows -> the same without the keys that it was given: what it prints, and names that it chose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from skillkit.core.run.guard import SetAside
from skillkit.core.values.masking import Masker
from skillkit.core.values.runs import Artifact, ProcessExit, RunControl

__all__ = ["masked_artifacts", "masked_exit", "masked_names", "masked_output"]


@contextmanager
def masked_output(masker: Masker, control: RunControl) -> Iterator[RunControl]:
    """The same control, and who listens hears no key, however it is split over writes."""
    listen = control.on_output
    if listen is None or not masker:
        yield control
        return
    streams = {name: masker.stream(partial(listen, name)) for name in ("stdout", "stderr")}
    yield control._replace(on_output=lambda stream, data: streams[stream].feed(data))
    for stream in streams.values():
        stream.close()


def masked_exit(masker: Masker, ended: ProcessExit) -> ProcessExit:
    """How much was left out stays as it was."""
    if not masker:
        return ended
    lost_out, lost_err = ended.stdout_bytes - len(ended.stdout), ended.stderr_bytes - len(ended.stderr)
    stdout = masker.mask(ended.stdout, is_cut=lost_out > 0)
    stderr = masker.mask(ended.stderr, is_cut=lost_err > 0)
    return ended._replace(
        stdout=stdout, stderr=stderr, stdout_bytes=len(stdout) + lost_out, stderr_bytes=len(stderr) + lost_err
    )


def masked_names(masker: Masker, moved: tuple[SetAside, ...]) -> tuple[SetAside, ...]:
    """A script chose the names; what is moved away is told to agents, logs and the record alike."""
    if not masker:
        return moved
    return tuple(each._replace(path=masker.mask_text(each.path), kept=masker.mask_text(each.kept)) for each in moved)


def masked_artifacts(masker: Masker, artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Under a name without keys; the file keeps its own."""
    if not masker:
        return artifacts
    return tuple(
        replace(
            each,
            path=Path(masker.mask_text(str(each.path))),
            relative_path=Path(masker.mask_text(str(each.relative_path))),
        )
        for each in artifacts
    )
