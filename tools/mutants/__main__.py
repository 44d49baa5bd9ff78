"""python tools/mutants [MODULE...]: puts one fault after another into what decides, and runs its tests.

A fault that no test notices is a survivor. Each one wants a test, or an entry in equivalent.toml that says why the
wrong text does the same as the right one. Ends with 1 where a survivor or an entry without its mutant is left.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import gc
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from mutations import Mutant, mutants_of

__all__ = ["main"]

PROJECT = Path(__file__).resolve().parents[2]
CORE = Path("skillkit/core")
USUAL = ("decide/rules", "decide/patterns")
PROPERTIES = "tests/properties/test_decision_properties.py"
LONGEST_SECONDS = 120
LOOK_SECONDS = 0.02
ALSO_TESTED_BY = {
    "ask/risk": ("ask/risk/cases",),
    "ask/risk/python": ("ask/risk/cases",),
    "ask/risk/shell": ("ask/risk/cases",),
    "ask/risk/texts": ("ask/risk/cases",),
    "store/requests": ("store/world",),
    "store/subscription": ("store/world",),
}
"""Modules whose tests are, in part, in the files of others."""
# Nothing that takes time and does not change what a test finds.
LIMITS = ("--timeout=20", "--timeout-method=thread", "-p", "pytest_timeout")
OPTIONS = ("-q", "-x", "--tb=line", "--assert=plain", *LIMITS, "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault in one module."""

    module: str
    mutant: Mutant
    sources: str
    """A folder with the right sources, compiled."""

    def __str__(self) -> str:
        return f"{self.module}.py:{self.mutant.line}: {self.mutant.key}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/mutants", description=__doc__.partition("\n\n")[0])
    parser.add_argument("modules", nargs="*", default=USUAL, help=f"paths below {CORE}, as ask/risk/shell")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults that have this in their names")
    chosen = parser.parse_args()
    begin = time.monotonic()
    load_test_tools()
    with tempfile.TemporaryDirectory() as folder:
        sources = compiled_sources(folder)
        every = [Trial(module, mutant, sources) for module in chosen.modules for mutant in mutants_of(text_of(module))]
        trials = [trial for trial in every if chosen.only in trial.mutant.key]
        faultless = [Trial(module, Mutant(0, "nothing wrong", text_of(module)), sources) for module in chosen.modules]
        if said := "".join(outcomes(faultless, chosen.workers)):
            print(f"Tests fail without any fault:\n{said}")
            return 2
        noticed = outcomes(trials, chosen.workers)
    survivors = [trial for trial, said in zip(trials, noticed, strict=True) if not said]
    print(f"{len(trials)} mutants of {', '.join(chosen.modules)} in {time.monotonic() - begin:.0f} s")
    return report(trials, survivors, chosen.only)


def load_test_tools() -> None:
    """Once here, so that no child has to."""
    import hypothesis.strategies  # noqa: F401

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--version"])
    gc.freeze()


def text_of(module: str) -> str:
    return (PROJECT / "src" / file_of(module)).read_text()


def file_of(module: str) -> Path:
    """A package is named as its folder."""
    file = CORE / f"{module}.py"
    return file if (PROJECT / "src" / file).exists() else CORE / module / "__init__.py"


def compiled_sources(folder: str) -> str:
    sources = os.path.join(folder, "src")
    shutil.copytree(PROJECT / "src", sources)
    compileall.compile_dir(sources, quiet=2)
    return sources


def outcomes(trials: Sequence[Trial], workers: int) -> list[str]:
    """Each in a process of its own, forked from this one, which has loaded what takes long."""
    said = [""] * len(trials)
    waiting = list(enumerate(trials))[::-1]
    running: dict[int, Attempt] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            place, trial = waiting.pop()
            attempt = Attempt(place, trial)
            running[attempt.pid] = attempt
        time.sleep(LOOK_SECONDS)
        for attempt in [*running.values()]:
            if attempt.is_over():
                del running[attempt.pid]
                said[attempt.place] = attempt.said()
                if not said[attempt.place] and attempt.trial.mutant.line:
                    print(f"not noticed: {attempt.trial}", flush=True)
    return said


class Attempt:
    """A trial in a child; it ends at once, whatever threads its tests left waiting."""

    def __init__(self, place: int, trial: Trial) -> None:
        self.place, self.trial = place, trial
        self.folder = tempfile.mkdtemp()
        self.ends = time.monotonic() + LONGEST_SECONDS
        self.pid = os.fork()  # noqa: TID251 - the tests run here, and no program is started
        if self.pid == 0:
            try:
                Path(self.folder, "said").write_text(complaints(trial, self.folder), errors="replace")
            finally:
                os._exit(0)

    def is_over(self) -> bool:
        if time.monotonic() > self.ends:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return True
        return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid

    def said(self) -> str:
        answer = Path(self.folder, "said")
        said = answer.read_text() if answer.exists() else "It ended without an answer."
        shutil.rmtree(self.folder, ignore_errors=True)
        return said


def complaints(trial: Trial, folder: str) -> str:
    """What the tests say against a fault; empty when they notice nothing."""
    sources = os.path.join(folder, "src")
    shutil.copytree(trial.sources, sources, copy_function=os.link)
    put_fault(Path(sources) / file_of(trial.module), trial.mutant)
    sys.path.insert(0, sources)
    os.environ["PYTHONPATH"] = sources
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    os.chdir(PROJECT)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main([*OPTIONS, f"--basetemp={folder}/tests", *tests_of(trial.module)])
    return "" if status == pytest.ExitCode.OK else said.getvalue() or str(status)


def put_fault(file: Path, mutant: Mutant) -> None:
    file.unlink()  # a link to the right one
    file.write_text(mutant.text)
    # Compiled files are known by time and size, and a fault may change neither.
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def tests_of(module: str) -> list[str]:
    """The module's own and those listed, else those of the whole room; and the properties of what decides."""
    names = [module, *ALSO_TESTED_BY.get(module, ())]
    found = [file for name in names for file in sorted(own_tests(name), key=size_of)]
    own = [str(file) for file in dict.fromkeys(found) if "between_processes" not in file.name]
    room = PROJECT / "tests/core" / Path(module).parent
    return [*(own or [str(room)]), *([PROPERTIES] if module in USUAL else [])]


def own_tests(module: str) -> Iterator[Path]:
    """Beside the package's folder or in it: tests lie as the modules do."""
    place = PROJECT / "tests/core" / module
    for folder in (place.parent, place):
        yield from folder.glob(f"test_{place.name}.py")
        yield from folder.glob(f"test_{place.name}_*.py")


def size_of(file: Path) -> int:
    """The shortest first: whatever it notices takes no longer."""
    return file.stat().st_size


def report(trials: Sequence[Trial], survivors: Sequence[Trial], only: str) -> int:
    """Survivors that are not listed, and entries of the list that nothing survives for."""
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())
    modules = {trial.module for trial in trials}
    known = {(module, key) for module in modules for key in listed.get(module, {}) if only in key}
    alive = {(trial.module, trial.mutant.key) for trial in survivors}
    unknown = [trial for trial in survivors if (trial.module, trial.mutant.key) not in known]
    for trial in unknown:
        print(f"survived: {trial}")
    for module, key in sorted(known - alive):
        print(f"listed as equivalent, but gone or noticed: {module}: {key}")
    print(
        f"{len(trials) - len(survivors)} noticed, {len(survivors) - len(unknown)} equivalent, {len(unknown)} survived"
    )
    return 1 if unknown or known - alive else 0


if __name__ == "__main__":
    sys.exit(main())
