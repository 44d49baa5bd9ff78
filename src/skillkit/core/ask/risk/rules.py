"""What is looked for in a skill's files: each rule has a kind and a sentence, each language a table of what it matches.

Python is matched by the full names of functions, shell by programs, every other text by regular expressions. Each of
those starts with a fixed word or sign and repeats nothing without a bound, so that no text is slow to read; its group
is what a person is told was found, the whole match where it has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from skillkit.core.paths.forbidden import CREDENTIALS

__all__ = [
    "KINDS",
    "PATTERNS",
    "PROGRAMS",
    "PYTHON",
    "WEIGHTS",
    "Finding",
    "Rule",
    "Seen",
    "Snippet",
    "clip",
    "number_lines",
]

WEIGHTS = {
    "obfuscation": 60,
    "unread": 65,
    "hidden_text": 85,
    "credentials": 60,
    "outside_write": 60,
    "delete": 50,
    "network": 40,
    "process": 20,
}
"""What a reader should care about, of a hundred, where a rule says nothing else."""
KINDS = tuple(WEIGHTS)
# Deleting everything, or all that is somebody's, is not like deleting a file that was made before.
EVERYTHING = re.compile(r"""(?:^|[\s'"=])(?:/\*?|~/?\*?|\$\{?HOME\}?/?\*?|\*|\.)(?:$|[\s'";|&)])|\bmkfs|\bof=/dev/""")
EVERYTHING_WEIGHT = 95
SHOWN_CHARACTERS = 60
LOOKED_AT = 2_000  # matches of one pattern in one text


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in one file; line 0 speaks of the file as a whole."""

    kind: str
    message: str
    line: int
    weight: int = 0
    """Nothing means that of its kind."""
    wall: str = ""
    """Which wall would stop it: network, home, secrets, writes, variables, programs, or `variable NAME`."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code of another language inside a file: a command in a program, a program in a command."""

    language: str
    text: str
    line: int


Seen = Finding | Snippet


class Rule(NamedTuple):
    """A kind of risk, and how a person is told of it."""

    kind: str
    sentence: str
    weight: int = 0
    wall: str = ""

    def at(self, line: int, name: str = "", what: str = "") -> Finding:
        """`name` is what was matched: it stands where the sentence has `{}`, else behind it; `what` is done with it."""
        said = self.sentence.format(name) if "{" in self.sentence else self.sentence + (name and f" with {name}")
        is_all = self.kind == "delete" and EVERYTHING.search(what) is not None
        wall = f"variable {name}" if self.wall == "variable" else self.wall
        weight = EVERYTHING_WEIGHT if is_all else self.weight
        return Finding(self.kind, f"{said}{what and f': {what}'}.", line, weight, wall)


def clip(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """On one line, cut, every character that cannot be seen written as its number."""
    start = " ".join(text[: 4 * limit].split())
    cut = start[:limit] + "..." if len(start) > limit or len(text) > 4 * limit else start
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in cut)


def number_lines(pattern: re.Pattern[str], text: str, line: int = 1) -> Iterator[tuple[int, re.Match[str]]]:
    """The first matches, each with its line; lines are counted from one match to the next, so no text is read twice."""
    counted = 0
    for match in islice(pattern.finditer(text), LOOKED_AT):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield line, match


TALKS = Rule("network", "Talks to the network", wall="network")
LOADS_TALKER = Rule("network", "Loads {}, which talks to the network", 30, "network")
FETCHES = Rule("network", "Fetches from the network", wall="network")
CONNECTS = Rule("network", "Opens a connection through {}", 60, "network")
STARTS = Rule("process", "Starts programs")
ENDS = Rule("process", "Ends other programs", 40, "programs")
ASKS_RIGHTS = Rule("process", "Asks for another user's rights", 60)
RUNS_AT_INSTALL = Rule("process", "Runs a command when npm installs it", 50)
RUNS_AT_LOADING = Rule("process", "Asks the agent to run a command when the skill is read", 70)
DELETES = Rule("delete", "Deletes", wall="writes")
WRITES_OUTSIDE = Rule("outside_write", "Writes outside its folder", wall="writes")
WRITES_HOME = Rule("outside_write", "Writes below the home folder", 45, "home")
NAMES_STARTUP = Rule("outside_write", "Names {}, which other programs run or read on their own", 75, "home")
SETS_UP = Rule("outside_write", "Sets up what runs later", 75)
CHANGES_REGISTRY = Rule("outside_write", "Sets up what runs later or changes the registry", 75)
NAMES_SECRETS = Rule("credentials", "Names {}, where secrets are kept", 75, "secrets")
READS_VARIABLE = Rule("credentials", "Reads the environment variable {}", 35, "variable")
READS_ENVIRONMENT = Rule("credentials", "Reads the whole environment", 60, "variables")
ASKS_SECRETS = Rule("credentials", "Asks for stored secrets", 75)
RUNS_TEXT = Rule("obfuscation", "Runs text as code", 55)
RUNS_WORDS = Rule("obfuscation", "Runs text as a command")
RUNS_OR_DECODES = Rule("obfuscation", "Runs or decodes text as code")
RUNS_DECODED = Rule("obfuscation", "Runs what it decodes", 95)
RUNS_DECODED_CODE = Rule("obfuscation", "Runs code that it decodes first, with {}", 95)
RUNS_DOWNLOAD = Rule("obfuscation", "Runs what it downloads", 95, "network")
RUNS_REMOTE = Rule("obfuscation", "Runs code from the network", 95, "network")
MAKES_CODE = Rule("obfuscation", "Makes code from bytes")
LOADS_OBJECTS = Rule("obfuscation", "Loads objects, which can run code, with {}")
LOADS_FOREIGN = Rule("obfuscation", "Loads foreign code")
DECODES = Rule("obfuscation", "Decodes a hidden text")
DECODES_OBJECT = Rule("obfuscation", "Decodes a hidden text or object")
HOLDS_ENCODED = Rule("obfuscation", "Holds an encoded text of {}", 50)
WRITES_NUMBERS = Rule("obfuscation", "Writes a text as numbers")
HIDES_SPACES = Rule("obfuscation", "Writes ${{IFS}} in place of spaces, which hides a command")
BUILDS_NAME = Rule("obfuscation", "Puts a name together from pieces")
BUILDS_MODULE = Rule("obfuscation", "Imports a module whose name is put together")
BUILDS_PART = Rule("obfuscation", "Takes a part of {} whose name is put together")
CALLS_BY_NAME = Rule("obfuscation", "Calls {} by its name")
REACHES_PAST = Rule("obfuscation", "Reaches past the runtime")

# Python: modules of which every part talks, but for a few; functions by name; what decides otherwise by arguments.
TALKING_MODULES = frozenset(
    "requests httpx aiohttp urllib3 urllib.request http.client http.server socketserver smtplib ftplib poplib imaplib "
    "nntplib telnetlib paramiko websocket websockets pycurl boto3 xmlrpc.client grpc dns.resolver openai anthropic "
    "slack_sdk tweepy telegram discord pymongo redis psycopg2 mysql.connector huggingface_hub playwright selenium "
    "webbrowser gdown yt_dlp".split()
)
SILENT_PARTS = tuple(
    "requests.exceptions requests.structures httpx.HTTPError urllib3.util urllib3.disable_warnings".split()
)
_PYTHON_BY_RULE = {
    TALKS: "socket.socket socket.create_connection socket.create_server socket.getaddrinfo socket.gethostbyname "
    "asyncio.open_connection asyncio.start_server urllib.urlopen urllib2.urlopen ssl.get_server_certificate "
    "pandas.read_html",
    STARTS: "subprocess.run subprocess.Popen subprocess.call subprocess.check_call subprocess.check_output "
    "subprocess.getoutput subprocess.getstatusoutput os.system os.popen os.popen2 os.popen3 os.popen4 os.startfile "
    "os.fork os.forkpty os.posix_spawn os.posix_spawnp os.execl os.execle os.execlp os.execlpe os.execv os.execve "
    "os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe "
    "pty.spawn commands.getoutput asyncio.create_subprocess_exec asyncio.create_subprocess_shell ctypes.CDLL "
    "ctypes.PyDLL ctypes.WinDLL ctypes.cdll.LoadLibrary",
    DELETES: "shutil.rmtree os.remove os.unlink os.rmdir os.removedirs os.truncate send2trash.send2trash",
    RUNS_TEXT: "eval exec compile execfile",
    MAKES_CODE: "marshal.loads marshal.load types.CodeType types.FunctionType code.InteractiveInterpreter",
    LOADS_OBJECTS: "pickle.loads pickle.load dill.loads cloudpickle.loads _pickle.loads",
    HOLDS_ENCODED: "base64.b64decode base64.urlsafe_b64decode base64.b85decode base64.a85decode base64.b32decode "
    "base64.b16decode base64.decodebytes bytes.fromhex binascii.unhexlify binascii.a2b_base64 zlib.decompress "
    "lzma.decompress bz2.decompress gzip.decompress codecs.decode",
    BUILDS_MODULE: "__import__ importlib.import_module importlib.__import__",
    READS_VARIABLE: "os.getenv os.environ.get os.environ.pop",
    READS_ENVIRONMENT: "os.environ.items os.environ.values os.environ.__repr__",
    ASKS_SECRETS: "keyring.get_password keyring.get_credential browser_cookie3.load browser_cookie3.chrome",
}
PYTHON = {name: rule for rule, names in _PYTHON_BY_RULE.items() for name in names.split()}
LOADED_LIBRARIES = "ctypes.windll"
STARRED_MODULES = frozenset(
    name.partition(".")[0] for name, rule in PYTHON.items() if "." in name and rule in (TALKS, STARTS, DELETES)
)
SENSITIVE_MODULES = frozenset("os subprocess builtins sys importlib shutil socket ctypes pty __builtins__".split())
DELETING_METHODS = ("unlink", "rmdir")
WRITING_METHODS = ("write_text", "write_bytes", "mkdir", "touch", "symlink_to", "hardlink_to", "chmod", "rename")
WRITTEN_ARGUMENT = {  # the place among the arguments that is written to
    **dict.fromkeys("os.mkdir os.makedirs os.chmod os.chown os.mkfifo".split(), 0),
    **dict.fromkeys("os.rename os.replace os.symlink os.link".split(), 1),
    **dict.fromkeys("shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move".split(), 1),
}
PRINTING = frozenset("json.dumps json.dump str repr print pickle.dumps".split())

# Shell: programs by name, with the words of which one makes it so; without any where they always do.
SHELLS = frozenset("sh bash dash zsh ksh ash fish".split())
TALKERS = frozenset(
    "curl wget nc ncat netcat socat ssh scp sftp ftp tftp telnet aria2c httpie nslookup dig lynx rclone".split()
)
FETCHERS = {
    **dict.fromkeys(("pip", "pip3", "pipx", "uv", "gem", "cargo", "brew", "go", "conda"), ("install", "add", "tool")),
    **dict.fromkeys(("apt", "apt-get", "yum", "dnf", "apk", "npm", "pnpm", "yarn", "bun"), ("install", "add", "i")),
    **dict.fromkeys(("npx", "uvx", "bunx", "pnpx"), ()),
    "git": ("clone", "fetch", "pull", "push", "ls-remote"),
    "docker": ("pull", "run", "push"),
    "openssl": ("s_client",),
}
DECODERS = {"base64": ("-d", "-D", "--decode"), "base32": ("-d",), "xxd": ("-r",), "openssl": ("enc",), "rev": ()}
MOVERS = frozenset("cp mv install ln rsync".split())
MAKERS = frozenset("tee touch mkdir chmod chown".split())
CODE_OPTIONS = {
    **dict.fromkeys(SHELLS, ("shell", "-c")),
    **dict.fromkeys(("python", "python3"), ("python", "-c")),
    **dict.fromkeys(("node", "bun"), ("javascript", "-e")),
    "ruby": ("ruby", "-e"),
    "perl": ("perl", "-e"),
    "osascript": ("shell", "-e"),
}
_PROGRAMS_BY_RULE = {
    DELETES: "rm rmdir unlink shred wipe srm mkfs",
    SETS_UP: "crontab at batch systemctl launchctl",
    ASKS_SECRETS: "secret-tool security pass keyring",
    ENDS: "kill killall pkill",
}
PROGRAMS = {program: rule for rule, programs in _PROGRAMS_BY_RULE.items() for program in programs.split()}
# First words that make nothing of it; None where there is no word.
HARMLESS_ORDERS = {SETS_UP: (None, "-l", "status", "list"), ASKS_SECRETS: (None,), ENDS: ("-0", "-l")}

# Any text: where secrets lie, keys themselves, what starts on its own. What is closed to every call is named here too;
# of folders that projects have as well, only the files with secrets.
_FILES_OF = {
    ".ssh": r"ssh\b(?!/known_hosts|/config\b)(?:/[\w.*-]{1,40})?",
    ".aws": r"aws/(?:credentials|config)\b",
    ".azure": r"azure/(?:accessTokens|msal_token_cache|service_principal_entries)\b",
    ".kube": r"kube/config\b",
    ".docker": r"docker/config\.json",
    ".config/gh": r"config/gh/hosts\b",
    ".cargo/credentials.toml": r"cargo/credentials",
    ".mozilla": r"mozilla/firefox",
}
_CLOSED = "|".join(_FILES_OF.get(name, re.escape(name[1:]) + r"\b") for name in CREDENTIALS if name[0] == ".")
SECRET_PLACES = re.compile(
    rf"(?<![\w.)\]?])\.(?:{_CLOSED})"
    r"|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|/etc/(?:shadow|sudoers)\b|\bcookies\.sqlite\b|\bkey[34]\.db\b"
    r"|\blogins\.json\b|\bLogin Data\b|\bwallet\.dat\b|\blogin\.keychain|\bLibrary/(?:Keychains|Cookies)\b"
    r"|\b169\.254\.169\.254\b|\bmetadata\.google\.internal\b|/proc/(?:self|\d{1,9})/environ\b",
)
WRITTEN_KEYS = re.compile(
    r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bsk-ant-[\w-]{20}|\bxox[abp]-[0-9]{8}"
    r"|-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY-----"
)
STARTUP = re.compile(
    r"(?<![\w.])\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|config/fish/config\.fish"
    r"|config/autostart|config/systemd/user|git/hooks|claude/settings|claude/hooks|mcp\.json|cursor/mcp\.json"
    r"|ssh/authorized_keys|xinitrc|xprofile|vscode/tasks\.json)\b"
    r"|/etc/(?:cron|systemd/|init\.d|rc\.local|profile|ld\.so\.preload|sudoers\.d)|/var/spool/cron"
    r"|\bLaunch(?:Agents|Daemons)\b|\bCurrentVersion\\{1,2}Run\b|\bStart Menu\\{1,2}Programs\\{1,2}Startup\b"
    r"|\bsitecustomize\.py\b|\busercustomize\.py\b",
)
SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET|SECRETS|SECRET_?KEY|PRIVATE_?KEY|TOKEN|PASSWORD|PASSWD"
    r"|PASSPHRASE|CREDENTIALS?|PAT|AUTH_?KEY|SESSION_?KEY|DATABASE_URL|COOKIE|KEY)$"
)

# Other languages, by patterns. Of READS_VARIABLE only names of secrets count, of WRITES_OUTSIDE paths that lead out.
_MODULE = r"(?:require\s{0,9}\(\s{0,9}|from\s{1,9}|import\s{0,9}\(?\s{0,9})[\"'`](?:node:)?"
_TALKING = (
    r"(https?|http2|net|dgram|tls|dns|axios|got|node-fetch|undici|ws|request|superagent|puppeteer|playwright"
    r"|nodemailer|ssh2|socket\.io-client)(?:/[\w-]{1,30})?[\"'`]"
)
_WRITING = "writeFile|appendFile|createWriteStream|mkdir|copyFile"
_SEND = r"(?:__send__|public_send|send)\s{0,4}\(?\s{0,4}[\"':]{1,2}"
_JAVASCRIPT = (
    (TALKS, r"(?<![\w.$])(?<!async )(?<!function )(?:globalThis\.|window\.)?(fetch)\s{0,9}\("),
    (TALKS, r"\bnew (XMLHttpRequest|WebSocket|EventSource)\b"),
    (TALKS, r"\b(?:navigator\.sendBeacon|Bun\.(?:connect|serve|listen)|Deno\.(?:connect|listen|serve))\b"),
    (LOADS_TALKER, _MODULE + _TALKING),
    (RUNS_REMOTE, r"\b(import)\s{0,9}\(?\s{0,9}[\"'`]https?://"),
    (STARTS, _MODULE + r"(child_process)(?:/\w{1,20})?[\"'`]"),
    (STARTS, r"[\"'`](?:node:)?(child_process)[\"'`]\s{0,9}\)\s{0,9}[.\[]"),
    (STARTS, _MODULE + r"(execa|shelljs|zx|node-pty|cross-spawn)\b"),
    (STARTS, r"(?<![\w.$])(?:\w{1,40}\.)?(execSync|execFileSync|spawnSync|execFile|spawn|fork)\s{0,9}\("),
    (STARTS, r"\b(?:new Deno\.Command|Deno\.run|Bun\.spawn(?:Sync)?|Bun\.\$)"),
    (DELETES, r"\b(rmSync|unlinkSync|rmdirSync|truncateSync)\s{0,9}\("),
    (DELETES, r"\bfs(?:p|Promises|\.promises)?\.(rm|unlink|rmdir|truncate)\s{0,9}\("),
    (DELETES, r"(?<![\w.$])(rimraf|unlink)\s{0,9}\("),
    (DELETES, r"\bDeno\.(remove(?:Sync)?)\b"),
    (RUNS_TEXT, r"(?<![\w.$])(?:globalThis\.|window\.|global\.)?(eval)\s{0,9}\("),
    (RUNS_TEXT, r"(?<![\w.$])(?:new\s{1,9})?(Function)\s{0,9}\(\s{0,9}[^)\s]"),
    (RUNS_TEXT, r"\.constructor\.constructor\b|\[[\"']constructor[\"']\]"),
    (RUNS_TEXT, r"\bvm\.(runIn\w{1,20}|compileFunction|Script)\b"),
    (REACHES_PAST, r"\bprocess\.(?:binding|_linkedBinding)\b"),
    (DECODES, r"(Buffer\.from)\s{0,9}\(\s{0,9}[\"'`][\w+/=-]{24,}[\"'`]\s{0,9},\s{0,9}[\"'](?:base64|hex)"),
    (DECODES, r"(?<![\w.$])(atob)\s{0,9}\(\s{0,9}[\"'`][\w+/=-]{24}"),
    (WRITES_NUMBERS, r"\b(fromCharCode)\s{0,9}\((?:\s{0,4}(?:0x)?[0-9a-f]{1,4}\s{0,4},){12}"),
    (BUILDS_NAME, r"\b(require|globalThis|global|process|import)\s{0,9}[(\[]\s{0,9}[\"'`]\w{0,40}[\"'`]\s{0,9}\+"),
    (WRITES_OUTSIDE, rf"\b(?:{_WRITING}|cp|symlink|rename)(?:Sync)?\s{{0,9}}\("),
    (WRITES_HOME, rf"\b({_WRITING})(?:Sync)?\s{{0,9}}\([^;\n]{{0,80}}\bhomedir\b"),
    (READS_VARIABLE, r"\b(?:process\.env|Bun\.env|Deno\.env)(?:\.get\()?[.\[]{0,1}[\"'`]?(\w{1,60})"),
    (
        READS_ENVIRONMENT,
        r"\b(?:JSON\.stringify|Object\.(?:entries|values|keys))\s{0,9}\(\s{0,9}(process\.env)\s{0,9}[,)]",
    ),
    (ASKS_SECRETS, _MODULE + r"(keytar)\b"),
)
_RUBY = (
    (TALKS, r"\b(Net::(?:HTTP|FTP|SMTP|SSH|SCP)|URI\.open|TCPSocket|UDPSocket|TCPServer|Socket\.(?:tcp|new))\b"),
    (TALKS, r"\b(Faraday|HTTParty|RestClient|Excon|Typhoeus)\b"),
    (LOADS_TALKER, r"\brequire\s{1,9}[\"'](open-uri|net/\w{1,10}|socket)[\"']"),
    (STARTS, r"(?<![\w.:@$])(?:Kernel\.|Process\.)?(system|exec|spawn|fork)(?:\s{0,4}\(|\s{1,4}[\"'\[%])"),
    (STARTS, r"\b(IO\.popen|Open3\.\w{1,20}|PTY\.spawn)\b"),
    (STARTS, r"(?:^|[=(,]|\bputs|\breturn)\s{0,9}(`[^`\n]{1,300}`|%x[\[({|])"),
    (DELETES, r"\b(FileUtils\.(?:rm\w{0,12}|remove\w{0,16})|File\.(?:delete|unlink))\b"),
    (DELETES, r"\bDir\.(?:rmdir|delete|unlink)\b|\.rmtree\b"),
    (RUNS_TEXT, r"(?<![\w.:@$])(?:Kernel\.|binding\.)?(eval)(?:\s{0,4}\(|\s{1,4}[\w\"'@$])"),
    (RUNS_TEXT, r"\b((?:instance|class|module)_eval)\s{0,4}[(\"']"),
    (DECODES_OBJECT, r"\b(Marshal\.load|unpack1?\s{0,4}\(?[\"']m0?[\"'])"),
    (DECODES_OBJECT, r"\b(Base64\.(?:strict_|urlsafe_)?decode64)\s{0,4}\(?\s{0,4}[\"'][\w+/=-]{24}"),
    (CALLS_BY_NAME, rf"\b{_SEND}(system|exec|eval|spawn|\w{{0,20}}[\"']\s{{0,4}}\+)"),
    (WRITES_OUTSIDE, r"\b(?:(?:File|IO)\.write|File\.(?:symlink|rename))\b"),
    (WRITES_OUTSIDE, r"\bFileUtils\.(?:cp\w{0,4}|mv|mkdir\w{0,2}|touch|ln\w{0,3}|install)\b"),
    (WRITES_OUTSIDE, r"\bFile\.(?:open|new)\b(?=[^\n]{0,200}[\"'](?:[wa]b?\+?|rb?\+)[\"'])"),
    (READS_VARIABLE, r"\bENV(?:\.fetch\(|\[)\s{0,4}[\"'](\w{1,60})"),
    (READS_ENVIRONMENT, r"\bENV\.(?:to_h|to_a|each|inspect|map)\b"),
)
_PERL = (
    (TALKS, r"\b(LWP::\w{1,20}|HTTP::Tiny|IO::Socket(?:::\w{1,10})?|Net::\w{1,20}|Mojo::UserAgent|WWW::\w{1,20})\b"),
    (STARTS, r"(?<![\w$@%&>:-])(system|exec|fork)(?:\s{0,4}\(|\s{1,4}[\"'$@])"),
    (STARTS, r"(?:^|[=(,]|\bprint|\breturn)\s{0,9}(`[^`\n]{1,300}`|qx\s{0,4}[\[({/|!])"),
    (STARTS, r"\b(open)\b[^;\n]{0,80}[\"'](?:\||-\||\|-|[^\"'\n]{1,200}\|\s{0,4}[\"'])"),
    (STARTS, r"\b(IPC::(?:Open[23]|Run\w{0,8}|Cmd))\b"),
    (DELETES, r"(?<![\w$@%&>:-])(unlink|rmtree|remove_tree|rmdir)(?:\s{0,4}\(|\s{1,4}[\"'$@\w])"),
    (RUNS_TEXT, r"(?<![\w$@%&>:'\"-])(eval)\s{0,4}(?:\(|[\"'$]|q{1,2}\b|unpack|decode)"),
    (DECODES, r"\b(decode_base64)\s{0,4}[,(]?\s{0,4}[\"'][\w+/=-]{24}"),
    (DECODES, r"\b(pack|unpack)\s{0,4}\(?\s{0,4}[\"'](?:H\*|u)[\"']\s{0,4}[,(]?\s{0,4}[\"'][\w+/=-]{24}"),
    (WRITES_OUTSIDE, r"\bopen\b(?=[^;\n]{0,120}[\"'](?:>|\+<))"),
    (READS_VARIABLE, r"\$ENV\{\s{0,4}[\"']?(\w{1,60})"),
    (READS_ENVIRONMENT, r"(?:keys|values|each|\\)\s{0,4}(%ENV)\b"),
)
_POWERSHELL = (
    (TALKS, r"(?<![\w$-])(Invoke-(?:WebRequest|RestMethod)|Start-BitsTransfer|Send-MailMessage)(?![\w-])"),
    (TALKS, r"(?<![\w$-])(iwr|irm|curl(?:\.exe)?|wget)(?![\w-])"),
    (TALKS, r"(?<![\w$-])((?:System\.)?Net\.(?:WebClient|Http\.HttpClient|Sockets\.\w{1,20}))(?![\w-])"),
    (STARTS, r"(?<![\w$-])(Start-Process|saps|Invoke-WmiMethod|Invoke-CimMethod)(?![\w-])|Diagnostics\.Process"),
    (STARTS, r"(?<![\w$.-])((?:cmd|powershell|pwsh)(?:\.exe)?)\s{1,9}[/-]"),
    (DELETES, r"(?:^|[;|{(])\s{0,40}(Remove-Item|Clear-Content|rmdir|rd|del|erase)\s"),
    (DELETES, r"\[(?:System\.)?IO\.(?:File|Directory)\]::Delete"),
    (RUNS_TEXT, r"(?<![\w$-])(Invoke-Expression|iex)(?![\w-])|\[ScriptBlock\]::Create"),
    (DECODES, r"(?<![\w])(-(?:e|ec|enc|encodedcommand))\s{1,9}[\w+/=]{16}|FromBase64String"),
    (LOADS_FOREIGN, r"(?<![\w$-])(Add-Type)(?=[^\n]{0,200}DllImport)|Reflection\.Assembly\]::Load"),
    (WRITES_OUTSIDE, r"(?<![\w$-])(?:(?:Set|Add)-Content|Out-File|(?:New|Copy|Move)-Item)(?![\w-])"),
    (CHANGES_REGISTRY, r"(?<![\w$-])(Register-ScheduledTask|New-Service|schtasks(?:\.exe)?)(?![\w-])"),
    (CHANGES_REGISTRY, r"(Set-ItemProperty)[^\n]{0,80}HK(?:LM|CU):"),
    (READS_VARIABLE, r"\$env:(\w{1,60})"),
    (READS_ENVIRONMENT, r"(?:Get-ChildItem|gci|dir|ls)\s{1,9}env:"),
    (ASKS_SECRETS, r"(?<![\w$-])(Get-Credential|Get-StoredCredential|cmdkey|vaultcmd)(?![\w-])"),
)
_UNPARSED_PYTHON = (
    (TALKS, r"\b(requests\.\w{1,20}|urllib2?\.(?:request|urlopen)|socket\.socket|http\.client)\b"),
    (TALKS, r"\b(httpx|aiohttp|smtplib|ftplib)\b"),
    (STARTS, r"\b(subprocess|os\.(?:system|popen|exec\w{1,4}|spawn\w{1,4})|pty\.spawn)\b"),
    (DELETES, r"\b(shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs))\b|\.unlink\("),
    (RUNS_OR_DECODES, r"(?<![\w.])(eval|exec|__import__|compile)\s{0,4}\("),
    (RUNS_OR_DECODES, r"\b(?:marshal|zlib|base64)\.(?:loads|decompress|b64decode)\b"),
    (WRITES_OUTSIDE, r"(?<![\w.])open\s{0,4}\((?=[^\n]{0,200}[\"'][wa]b?\+?[\"'])"),
    (READS_VARIABLE, r"\b(?:environ(?:\.get\(|\[)|getenv\()\s{0,4}[\"'](\w{1,60})"),
)
PATTERNS: dict[str, tuple[tuple[Rule, str], ...]] = {
    "javascript": _JAVASCRIPT,
    "typescript": _JAVASCRIPT,
    "ruby": _RUBY,
    "perl": _PERL,
    "powershell": _POWERSHELL,
    "unparsed python": _UNPARSED_PYTHON,
}
