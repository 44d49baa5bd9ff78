"""What a python3 that waits does between its start and its script; loaded there as `sitecustomize`, from memory.

Theory of operation. Python imports `sitecustomize`, where there is one, when it is ready but for the script: after it
comes nothing but the script, started as always. So this module waits, imports libraries ahead, takes one request, and
goes away: Python finds that there was no such module and starts the script. No frame, module, variable, descriptor or
word of the command line is left of it.

Command line, environment and processor time, as the kernel knows them, are set from outside where that can be (then the
request finds them set), and else by C functions that Python has no name for.

The shell that starts Python says in one variable which descriptors to talk by. Orders come as a length and a value of
`marshal`; answers are single bytes: `u` it is up, `.` one import is done, `r` all are, `x` something was imported that
another run must not have ahead, `k` the request is taken, and the script starts. Nobody hears of anything else.
"""

# ruff: noqa: ANN001, ANN002, ANN202, ANN204, ARG002, SLF001 - it runs in whatever Python a script needs
# mypy: disable-error-code="no-untyped-def,no-untyped-call,type-arg,arg-type,var-annotated"

import os
import sys

VARIABLE, MARK = "WARM_DESCRIPTORS", "SKILLKIT_RUN"
LATE = ("SKILL_WORK_DIR", "PWD")
NAME = "sitecustomize"
PR_SET_MM, PR_SET_MM_MAP = 35, 14
RLIMIT_CPU = 0
READ_AND_WRITE, OF_ITS_OWN = 3, 0x22  # of mmap: a private piece of memory
WORD = 8  # bytes
# Of /proc/self/stat, counted from 1: where code, data, heap and stack begin and end.
KEPT_FIELDS = (26, 27, 45, 46, 47, 28)
FIRST_FIELD = 3  # after the name


class _Arguments(list):
    """Stands in for `sys.argv` while libraries are imported: who looks at more than the script's name is too early."""

    was_read = False

    def __getitem__(self, key):
        if key != 0:
            _Arguments.was_read = True
        return list.__getitem__(self, key)

    def __iter__(self):
        _Arguments.was_read = True
        return list.__iter__(self)

    def __len__(self) -> int:
        _Arguments.was_read = True
        return list.__len__(self)


class _Shadows:
    """Notices the name of a file beside the script: a cold run would import that one."""

    def __init__(self, names: "frozenset[str]") -> None:
        self._names = names
        self.was_met = False

    def find_spec(self, name, path=None, target=None):
        if path is None and name in self._names:
            self.was_met = True


class _Channel:
    """The two pipes, and what else was open for them."""

    def __init__(self, numbers: "list[int]") -> None:
        self._all = numbers
        self._orders, self._answers = numbers[-1], numbers[-2]

    def say(self, word: bytes) -> None:
        while word:
            word = word[os.write(self._answers, word) :]

    def report(self) -> None:
        """All is imported, and from where: whether that is still the same, nobody here can know later."""
        files = [getattr(each, "__file__", None) for each in [*sys.modules.values()]]
        paths = {*sys.path, *(each for each in files if isinstance(each, str))}
        content = b"".join(os.fsencode(each) + b"\0" for each in paths)
        self.say(b"r" + len(content).to_bytes(WORD, "big") + content)

    def order(self):
        import marshal  # loaded already, by Python itself

        size = int.from_bytes(self._exactly(WORD), "big")
        return marshal.loads(self._exactly(size))  # noqa: S302 - from who started this process

    def has_order(self) -> bool:
        """Whether one more has come; its first byte is kept for then."""
        os.set_blocking(self._orders, False)
        try:
            self._first = os.read(self._orders, 1)
        except BlockingIOError:
            return False
        finally:
            os.set_blocking(self._orders, True)
        if not self._first:
            os._exit(0)
        return True

    _first = b""

    def _exactly(self, size: int) -> bytes:
        content, self._first = self._first, b""
        while len(content) < size:
            part = os.read(self._orders, size - len(content))
            if not part:
                os._exit(0)
            content += part
        return content

    def close(self) -> None:
        for number in self._all:
            try:
                os.close(number)
            except OSError:
                continue


def _leave_path() -> None:
    """Nothing on `sys.path` and in the caches of importing tells that this was loaded."""
    import zipimport  # loaded already, by Python itself

    place = os.environ["PYTHONPATH"]
    for path in [each for each in sys.path if each == place]:
        sys.path.remove(path)
    sys.path_importer_cache.pop(place, None)
    getattr(zipimport, "_zip_directory_cache", {}).pop(place, None)
    sys.modules.pop(NAME, None)


def _import_real() -> bool:
    """Whether the installation has a module of this name itself; it comes before everything else, as always."""
    try:
        __import__(NAME)
    except ImportError as error:
        if error.name != NAME:
            raise
        return False
    return True


def _require_no_user_module() -> None:
    """One would be imported after us and before the script: too late for what is imported ahead."""
    site = sys.modules["site"]
    if site.ENABLE_USER_SITE and sys.modules["_frozen_importlib"]._find_spec("usercustomize", None) is not None:
        raise ImportError("usercustomize")


def _children() -> bytes:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _import_ahead(channel: _Channel, order) -> bool:
    """Whether all went well: nobody was started, nothing read that is not there yet."""
    shadows = _Shadows(frozenset(order["shadows"]))
    arguments, sys.argv = sys.argv, _Arguments(sys.argv)
    sys.meta_path.insert(0, shadows)
    own = getattr(sys, "stdlib_module_names", frozenset())
    try:
        for name, names in order["imports"]:
            if channel.has_order():
                break
            if order["own_only"] and name.partition(".")[0] not in own:
                break
            __import__(name, {}, {}, list(names), 0)
            sys.stdout.flush()
            sys.stderr.flush()
            is_alone = len(sys._current_frames()) == 1 and not _children()
            if shadows.was_met or _Arguments.was_read or not is_alone:
                return False
            channel.say(b".")
    except BaseException:  # noqa: BLE001 - the script would see it, so it has to happen there
        return False
    finally:
        sys.meta_path.remove(shadows)
        sys.argv = arguments
    return True


def _functions_of_c():
    """Calls them by name; None where that leaves a descriptor: newer libffi keep their own file open."""
    was_there, before = "_ctypes" in sys.modules, _next_descriptor()
    import _ctypes

    class Long(_ctypes._SimpleCData):
        _type_ = "l"

    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Long

    def call(name, *arguments):
        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)
        return Call(address)(*(Long(each) if isinstance(each, int) else each for each in arguments))

    if not was_there:
        del sys.modules["_ctypes"]
    return call if _next_descriptor() == before else None


def _next_descriptor() -> int:
    number = os.open(os.devnull, os.O_RDONLY)
    os.close(number)
    return number


def _take_on(request, mark, call) -> None:
    """Words, environment, folder and limits of this one run."""
    sys.argv[1:] = request["words"]
    getattr(sys, "orig_argv", []).extend(request["words"])
    os.chdir(request["folder"])
    variables = {**request["environment"], MARK: mark, **request["variables"]}
    os.environ.clear()
    os.environ.update(variables)
    if call:
        _rename(call, request["words"], variables)
        _limit(call, *request["cpu_seconds"])


def _give_compiled(hook, table) -> None:
    """Modules of the skill that need not be compiled again."""
    import marshal  # loaded already, by Python itself

    names: dict = {"__name__": ""}
    exec(marshal.loads(hook), names)  # noqa: S102, S302 - as for orders
    names["place"](os.environ["SKILL_BASE_DIR"], table)


def _rename(call, words, variables) -> None:
    """What the kernel shows as command line and environment."""
    with open("/proc/self/cmdline", "rb") as file:
        line = file.read() + b"".join(os.fsencode(word) + b"\0" for word in words)
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())
    memory = call("mmap", 0, len(line) + len(shown), READ_AND_WRITE, OF_ITS_OWN, -1, 0)
    call("memcpy", memory, line + shown, len(line) + len(shown))
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    kept = [int(fields[number - FIRST_FIELD]) for number in KEPT_FIELDS]
    middle = memory + len(line)
    numbers = (*kept[:-1], call("sbrk", 0), kept[-1], memory, middle, middle, middle + len(shown))
    layout = b"".join(number.to_bytes(WORD, sys.byteorder) for number in numbers)
    layout += bytes(WORD + WORD // 2) + b"\xff" * (WORD // 2)  # the list of the loader and the program stay
    if call("prctl", PR_SET_MM, PR_SET_MM_MAP, layout, len(layout), 0):
        raise OSError("the command line cannot be changed")


def _limit(call, soft, hard) -> None:
    """Processor time counts from here on."""
    used = int(sys.modules["time"].process_time())
    sizes = ((each + used).to_bytes(WORD, sys.byteorder) for each in (soft, hard))
    if call("setrlimit", RLIMIT_CPU, b"".join(sizes)):
        raise OSError("the processor time cannot be limited")


def wait() -> bool:
    """Whether there is a real module of this name; the run is handed over when this returns."""
    channel = _Channel([int(number) for number in os.environ.pop(VARIABLE).split(",")])
    _leave_path()
    del os.environ["PYTHONPATH"]
    is_real = _import_real()
    _require_no_user_module()
    mark = os.environ[MARK]
    for name in LATE:
        os.environ.pop(name, None)
    channel.say(b"u")
    order = channel.order()
    is_fit = _import_ahead(channel, order)
    call = None if order["is_renamed"] else _functions_of_c()
    if not (is_fit and (call or order["is_renamed"])):
        channel.say(b"x")
        os._exit(0)
    channel.report()
    request = channel.order()
    _take_on(request, mark, call)
    if request["compiled"]:
        _give_compiled(*request["compiled"])
    channel.say(b"k")
    channel.close()
    return is_real


try:
    _is_real = wait()
except BaseException:  # noqa: BLE001 - Python would go on to the script, whatever this is
    os._exit(125)
if not _is_real:
    raise ImportError(NAME, name=NAME)
