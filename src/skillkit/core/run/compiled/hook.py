"""Compiled files of a skill's modules -> Python takes them instead of compiling; it runs inside, before the script.

Theory of operation. Python makes the finder of a folder when something is first imported from it, by a function that
knows which loader each kind of file has. `place` gives that function another loader of source files: the usual one,
which for a file of the skill has its code ready. It is used only where the file that stands there is, by its content,
what was compiled. No list of Python's gets another entry, nothing lies in the skill's folder, and the module that comes
out, its loader and its `__cached__` are those of a file that was compiled just now.

A cold run loads this as `sitecustomize`, from memory, as a spare does with its own (`warm/python_hook`), and then goes
away: no variable, descriptor, path or module is left of it. A spare is handed it with the run.
"""

# ruff: noqa: ANN001, ANN002, ANN202, SLF001 - it runs in whatever Python a script needs
# mypy: disable-error-code="no-untyped-def,no-untyped-call,attr-defined,index,type-arg,arg-type,name-defined"

import os
import sys

NAME, VARIABLE, FOLDER = "sitecustomize", "PYTHONPATH", "SKILL_BASE_DIR"
TABLE = "table"
FINDERS = "path_hook_for_FileFinder"
SALT = 0x5EED
PR_SET_MM, PR_SET_MM_MAP = 35, 14
READ_AND_WRITE, OF_ITS_OWN = 3, 0x22  # of mmap: a private piece of memory
WORD = 8  # bytes
# Of /proc/self/stat, counted from 3: where code, data, heap, stack, words and environment begin and end.
CODE, DATA, HEAP, STACK, WORDS = (23, 24), (42, 43), 44, 25, (45, 46)


def place(folder, table) -> None:
    """From now on files in that folder come from the table where they are what was compiled."""
    import _imp
    import marshal

    plain = sys.modules["_frozen_importlib_external"].SourceFileLoader
    start, compiled = f"{folder}/", marshal.loads(table)  # noqa: S302 - from who started this process

    def load(name, path):
        loader = plain(name, path)
        found = compiled.get(path[len(start) :]) if path.startswith(start) else None

        def get_code(fullname):
            del loader.get_code
            if _imp.source_hash(SALT, loader.get_data(path)) != found[0]:
                return loader.get_code(fullname)
            code = marshal.loads(found[1])  # noqa: S302 - as above
            _imp._fix_co_filename(code, path)
            return code

        if found:
            loader.get_code = get_code
        return loader

    for make in sys.path_hooks:
        if getattr(make, "__name__", "") == FINDERS:
            cell = make.__closure__[make.__code__.co_freevars.index("loader_details")]
            cell.cell_contents = tuple((load if each is plain else each, ends) for each, ends in cell.cell_contents)


def begin(loader) -> None:
    """In a cold run: take the table, and leave no trace."""
    import zipimport  # loaded already, by Python itself

    shown = os.environ.pop(VARIABLE)
    table = loader.get_data(f"{shown}/{TABLE}")  # first: since Python 3.13 it reads the archive's list again
    sys.path.remove(shown)
    sys.path_importer_cache.pop(shown, None)
    getattr(zipimport, "_zip_directory_cache", {}).pop(shown, None)
    sys.modules.pop(NAME, None)
    os.close(int(shown.rpartition("/")[2]))
    place(os.environ[FOLDER], table)
    _show_without(f"{VARIABLE}={shown}\0".encode())


def _show_without(variable) -> None:
    """What the kernel shows as this process's environment."""
    with open("/proc/self/environ", "rb") as file:
        before, _, after = file.read().partition(variable)
    was_there = "_ctypes" in sys.modules
    import _ctypes

    class Long(_ctypes._SimpleCData):
        _type_ = "l"

    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Long

    def call(name, *arguments):
        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)
        return Call(address)(*(Long(each) if isinstance(each, int) else each for each in arguments))

    shown = before + after
    memory = call("mmap", 0, len(shown), READ_AND_WRITE, OF_ITS_OWN, -1, 0)
    call("memcpy", memory, shown, len(shown))
    with open("/proc/self/stat", "rb") as file:
        fields = [int(each) if each.isdigit() else 0 for each in file.read().rpartition(b")")[2].split()]
    numbers = [fields[at] for at in (*CODE, *DATA, HEAP)] + [call("sbrk", 0), fields[STACK]]
    numbers += [fields[at] for at in WORDS] + [memory, memory + len(shown)]
    layout = b"".join(number.to_bytes(WORD, sys.byteorder) for number in numbers)
    layout += bytes(WORD + WORD // 2) + b"\xff" * (WORD // 2)  # the list of the loader and the program stay
    call("prctl", PR_SET_MM, PR_SET_MM_MAP, layout, len(layout), 0)
    if not was_there:
        del sys.modules["_ctypes"]


def is_real() -> bool:
    """Whether the installation has a module of this name itself; it comes now, as always."""
    try:
        __import__(NAME)
    except ImportError as error:
        if error.name != NAME:
            raise
        return False
    return True


if __name__ == NAME:
    try:
        begin(__loader__)
    except BaseException:  # noqa: BLE001 - Python compiles by itself, as it would have
        sys.modules.pop(NAME, None)
    if not is_real():
        raise ImportError(NAME, name=NAME)
