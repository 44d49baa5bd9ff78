"""What network, programs, deletions and the like look like in languages that are read by pattern only.

Every pattern starts with a fixed word or sign and repeats nothing without a bound, so that no text is slow to read.
`needles` are words of which one must be in the text before the pattern is tried.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TABLES", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to look for; `sentence` takes what group `group` of the pattern saw."""

    kind: str
    needles: tuple[str, ...]
    pattern: str
    sentence: str
    group: int = 0
    test: str = ""
    """`secret`: only names of secrets count; `outside`: only literal paths that lead outside."""


NETWORK, PROGRAMS, DELETES, CODE, LOADS = (
    "Talks to the network with {}",
    "Starts programs with {}",
    "Deletes with {}",
    "Runs text as code with {}",
    "Loads {}, which talks to the network",
)
MODULE = r"(?:require\s{0,9}\(\s{0,9}|from\s{1,9}|import\s{0,9}\(?\s{0,9})[\"'`](?:node:)?"

JAVASCRIPT = (
    Row(
        "network",
        ("fetch",),
        r"(?<![\w.$])(?<!async )(?<!function )(?:globalThis\.|window\.)?(fetch)\s{0,9}\(",
        NETWORK,
        1,
    ),
    Row(
        "network",
        ("XMLHttp", "WebSocket", "EventSource"),
        r"\bnew (XMLHttpRequest|WebSocket|EventSource)\b",
        NETWORK,
        1,
    ),
    Row("network", ("sendBeacon",), r"\bnavigator\.sendBeacon\b", NETWORK),
    Row("network", ("Bun.", "Deno."), r"\b(?:Bun\.(?:connect|serve|listen)|Deno\.(?:connect|listen|serve))\b", NETWORK),
    Row(
        "network",
        (
            *("http", "net", "dgram", "tls", "dns", "axios", "got", "fetch", "undici", "ws", "request", "superagent"),
            *("puppeteer", "playwright", "nodemailer", "ssh2", "socket.io"),
        ),
        MODULE + r"(https?|http2|net|dgram|tls|dns|axios|got|node-fetch|undici|ws|request|superagent|puppeteer"
        r"|playwright|nodemailer|ssh2|socket\.io-client)(?:/[\w-]{1,30})?[\"'`]",
        LOADS,
        1,
    ),
    Row("obfuscation", ("http",), r"\bimport\s{0,9}\(?\s{0,9}[\"'`](https?://)", "Runs code from the network"),
    Row("process", ("child_process",), MODULE + r"(child_process)(?:/\w{1,20})?[\"'`]", PROGRAMS, 1),
    Row("process", ("child_process",), r"[\"'`](?:node:)?(child_process)[\"'`]\s{0,9}\)\s{0,9}[.\[]", PROGRAMS, 1),
    Row(
        "process",
        ("execa", "shelljs", "zx", "node-pty", "cross-spawn"),
        MODULE + r"(execa|shelljs|zx|node-pty|cross-spawn)\b",
        PROGRAMS,
        1,
    ),
    Row(
        "process",
        ("exec", "spawn", "fork"),
        r"(?<![\w.$])(?:\w{1,40}\.)?(execSync|execFileSync|spawnSync|execFile|spawn|fork)\s{0,9}\(",
        PROGRAMS,
        1,
    ),
    Row("process", ("Deno", "Bun"), r"\b(?:new Deno\.Command|Deno\.run|Bun\.spawn(?:Sync)?|Bun\.\$)", PROGRAMS),
    Row("delete", ("Sync",), r"\b(rmSync|unlinkSync|rmdirSync|truncateSync)\s{0,9}\(", DELETES, 1),
    Row("delete", ("fs",), r"\bfs(?:p|Promises|\.promises)?\.(rm|unlink|rmdir|truncate)\s{0,9}\(", DELETES, 1),
    Row("delete", ("rimraf", "unlink"), r"(?<![\w.$])(rimraf|unlink)\s{0,9}\(", DELETES, 1),
    Row("delete", ("Deno.",), r"\bDeno\.(remove(?:Sync)?)\b", DELETES, 1),
    Row("obfuscation", ("eval",), r"(?<![\w.$])(?:globalThis\.|window\.|global\.)?(eval)\s{0,9}\(", CODE, 1),
    Row("obfuscation", ("Function",), r"(?<![\w.$])(?:new\s{1,9})?(Function)\s{0,9}\(\s{0,9}[^)\s]", CODE, 1),
    Row("obfuscation", ("constructor",), r"\.constructor\.constructor\b|\[[\"']constructor[\"']\]", CODE),
    Row("obfuscation", ("vm",), r"\bvm\.(runIn\w{1,20}|compileFunction|Script)\b", CODE, 1),
    Row(
        "obfuscation",
        ("process.binding", "_linkedBinding"),
        r"\bprocess\.(?:binding|_linkedBinding)\b",
        "Reaches past the runtime with {}",
    ),
    Row(
        "obfuscation",
        ("base64", "hex"),
        r"Buffer\.from\s{0,9}\(\s{0,9}[\"'`][\w+/=-]{24,}[\"'`]\s{0,9},\s{0,9}[\"'](base64|hex)",
        "Decodes a hidden text from {}",
        1,
    ),
    Row(
        "obfuscation",
        ("atob",),
        r"(?<![\w.$])(atob)\s{0,9}\(\s{0,9}[\"'`][\w+/=-]{24}",
        "Decodes a hidden text with {}",
        1,
    ),
    Row(
        "obfuscation",
        ("fromCharCode",),
        r"\bfromCharCode\s{0,9}\((?:\s{0,4}(?:0x)?[0-9a-f]{1,4}\s{0,4},){12}",
        "Writes a text as numbers",
    ),
    Row(
        "obfuscation",
        ("require", "global", "process", "import"),
        r"\b(?:require|globalThis|global|process|import)\s{0,9}[(\[]\s{0,9}[\"'`]\w{0,40}[\"'`]\s{0,9}\+",
        "Puts a name together from pieces",
    ),
    Row(
        "outside_write",
        ("write", "append", "mkdir", "copyFile", "cp", "symlink", "rename", "createWrite"),
        r"\b(?:writeFile|appendFile|createWriteStream|mkdir|copyFile|cp|symlink|rename)(?:Sync)?\s{0,9}\(",
        "",
        0,
        "outside",
    ),
    Row(
        "outside_write",
        ("homedir",),
        r"\b(?:writeFile|appendFile|createWriteStream|mkdir|copyFile)(?:Sync)?\s{0,9}\([^;\n]{0,80}\bhomedir\b",
        "Writes below the home folder",
    ),
    Row(
        "credentials",
        ("process.env", "Deno.env", "Bun.env"),
        r"\b(?:process\.env|Bun\.env|Deno\.env)(?:\.get\()?[.\[]{0,1}[\"'`]?(\w{1,60})",
        "",
        1,
        "secret",
    ),
    Row(
        "credentials",
        ("process.env",),
        r"\b(?:JSON\.stringify|Object\.(?:entries|values|keys))\s{0,9}\(\s{0,9}process\.env\s{0,9}[,)]",
        "Reads the whole environment",
    ),
    Row("credentials", ("keytar",), MODULE + r"(keytar)\b", "Asks for stored secrets with {}", 1),
)

RUBY = (
    Row(
        "network",
        ("Net::", "URI.", "Faraday", "HTTParty", "RestClient", "Excon", "Typhoeus", "Socket", "TCPServer"),
        r"\b(Net::(?:HTTP|FTP|SMTP|SSH|SCP)|URI\.open|Faraday|HTTParty|RestClient|Excon|Typhoeus|TCPSocket|UDPSocket|TCPServer|Socket\.(?:tcp|new))\b",
        NETWORK,
        1,
    ),
    Row(
        "network", ("open-uri", "net/", "socket"), r"\brequire\s{1,9}[\"'](open-uri|net/\w{1,10}|socket)[\"']", LOADS, 1
    ),
    Row(
        "process",
        ("system", "exec", "spawn", "fork"),
        r"(?<![\w.:@$])(?:Kernel\.|Process\.)?(system|exec|spawn|fork)(?:\s{0,4}\(|\s{1,4}[\"'\[%])",
        PROGRAMS,
        1,
    ),
    Row("process", ("popen", "Open3", "PTY"), r"\b(IO\.popen|Open3\.\w{1,20}|PTY\.spawn)\b", PROGRAMS, 1),
    Row(
        "process",
        ("`", "%x"),
        r"(?:^|[=(,]|\bputs|\breturn)\s{0,9}(?:`[^`\n]{1,300}`|%x[\[({|])",
        "Starts programs with backticks",
    ),
    Row(
        "delete",
        ("FileUtils.", "File.", "Dir.", "rmtree"),
        r"\b(FileUtils\.(?:rm\w{0,12}|remove\w{0,16})|File\.(?:delete|unlink)|Dir\.(?:rmdir|delete|unlink))\b|\.rmtree\b",
        DELETES,
    ),
    Row(
        "obfuscation",
        ("eval",),
        r"(?<![\w.:@$])(?:Kernel\.|binding\.)?(eval)(?:\s{0,4}\(|\s{1,4}[\w\"'@$])|\b(?:instance|class|module)_eval\s{0,4}[(\"']",
        CODE,
    ),
    Row(
        "obfuscation",
        ("Marshal", "Base64", "unpack"),
        r"\b(Marshal\.load|Base64\.(?:strict_|urlsafe_)?decode64\s{0,4}\(?\s{0,4}[\"'][\w+/=-]{24}|unpack1?\s{0,4}\(?[\"']m0?[\"'])",
        "Decodes a hidden text or object with {}",
    ),
    Row(
        "obfuscation",
        ("send",),
        r"\b(?:__send__|public_send|send)\s{0,4}\(?\s{0,4}[\"':]{1,2}(system|exec|eval|spawn|\w{0,20}[\"']\s{0,4}\+)",
        "Calls {} by its name",
        1,
    ),
    Row(
        "outside_write",
        ("File.", "IO.", "FileUtils."),
        r"\b(?:(?:File|IO)\.write|File\.(?:symlink|rename)|FileUtils\.(?:cp\w{0,4}|mv|mkdir\w{0,2}|touch|ln\w{0,3}|install))\b",
        "",
        0,
        "outside",
    ),
    Row(
        "outside_write",
        ("File.",),
        r"\bFile\.(?:open|new)\b(?=[^\n]{0,200}[\"'](?:[wa]b?|r)\+?[\"'])(?=[^\n]{0,200}[\"'](?:w|a|r\+))",
        "",
        0,
        "outside",
    ),
    Row("credentials", ("ENV",), r"\bENV(?:\.fetch\(|\[)\s{0,4}[\"'](\w{1,60})", "", 1, "secret"),
    Row("credentials", ("ENV",), r"\bENV\.(?:to_h|to_a|each|inspect|map)\b", "Reads the whole environment"),
)

PERL = (
    Row(
        "network",
        ("LWP", "HTTP::", "IO::Socket", "Net::", "Mojo", "WWW::"),
        r"\b(LWP::\w{1,20}|HTTP::Tiny|IO::Socket(?:::\w{1,10})?|Net::\w{1,20}|Mojo::UserAgent|WWW::\w{1,20})\b",
        NETWORK,
        1,
    ),
    Row(
        "process",
        ("system", "exec", "fork"),
        r"(?<![\w$@%&>:-])(system|exec|fork)(?:\s{0,4}\(|\s{1,4}[\"'$@])",
        PROGRAMS,
        1,
    ),
    Row(
        "process",
        ("`", "qx"),
        r"(?:^|[=(,]|\bprint|\breturn)\s{0,9}(?:`[^`\n]{1,300}`|qx\s{0,4}[\[({/|!])",
        "Starts programs with backticks",
    ),
    Row(
        "process",
        ("open",),
        r"\bopen\b[^;\n]{0,80}[\"'](?:\||-\||\|-|[^\"'\n]{1,200}\|\s{0,4}[\"'])",
        "Starts programs through a pipe",
    ),
    Row("process", ("IPC::",), r"\b(IPC::(?:Open[23]|Run\w{0,8}|Cmd))\b", PROGRAMS, 1),
    Row(
        "delete",
        ("unlink", "rmtree", "remove_tree", "rmdir"),
        r"(?<![\w$@%&>:-])(unlink|rmtree|remove_tree|rmdir)(?:\s{0,4}\(|\s{1,4}[\"'$@\w])",
        DELETES,
        1,
    ),
    Row("obfuscation", ("eval",), r"(?<![\w$@%&>:'\"-])(eval)\s{0,4}(?:\(|[\"'$]|q{1,2}\b|unpack|decode)", CODE, 1),
    Row(
        "obfuscation",
        ("decode_base64", "pack"),
        r"\b(decode_base64|pack\s{0,4}\(?\s{0,4}[\"']H\*[\"']|unpack\s{0,4}\(?\s{0,4}[\"']u[\"'])\s{0,4}[,(]?\s{0,4}[\"'][\w+/=-]{24}",
        "Decodes a hidden text with {}",
        1,
    ),
    Row("outside_write", ("open",), r"\bopen\b(?=[^;\n]{0,120}[\"'](?:>|\+<))", "", 0, "outside"),
    Row("credentials", ("ENV",), r"\$ENV\{\s{0,4}[\"']?(\w{1,60})", "", 1, "secret"),
    Row("credentials", ("%ENV",), r"(?:keys|values|each|\\)\s{0,4}%ENV\b", "Reads the whole environment"),
)

POWERSHELL = (
    Row(
        "network",
        ("invoke-", "iwr", "irm", "net.", "bits", "curl", "wget", "send-mail"),
        r"(?<![\w$-])(Invoke-WebRequest|Invoke-RestMethod|iwr|irm|curl(?:\.exe)?|wget|Start-BitsTransfer|Send-MailMessage|(?:System\.)?Net\.(?:WebClient|Http\.HttpClient|Sockets\.\w{1,20}))(?![\w-])",
        NETWORK,
        1,
    ),
    Row(
        "process",
        ("start-process", "saps", "diagnostics.process", "wmi", "cim"),
        r"(?<![\w$-])(Start-Process|saps|Invoke-WmiMethod|Invoke-CimMethod)(?![\w-])|Diagnostics\.Process",
        PROGRAMS,
    ),
    Row(
        "process",
        ("cmd", "powershell", "pwsh"),
        r"(?<![\w$.-])((?:cmd|powershell|pwsh)(?:\.exe)?)\s{1,9}[/-]",
        PROGRAMS,
        1,
    ),
    Row(
        "delete",
        ("remove-item", "rd", "del", "erase", "rmdir", "clear-content"),
        r"(?:^|[;|{(])\s{0,40}(Remove-Item|Clear-Content|rmdir|rd|del|erase)\s|\[(?:System\.)?IO\.(?:File|Directory)\]::Delete",
        DELETES,
    ),
    Row(
        "obfuscation",
        ("invoke-expression", "iex", "scriptblock]::create"),
        r"(?<![\w$-])(Invoke-Expression|iex)(?![\w-])|\[ScriptBlock\]::Create",
        CODE,
    ),
    Row(
        "obfuscation",
        ("-e", "frombase64string"),
        r"(?<![\w])-(?:e|ec|enc|encodedcommand)\s{1,9}[\w+/=]{16}|FromBase64String",
        "Decodes a hidden text",
    ),
    Row(
        "obfuscation",
        ("add-type", "reflection.assembly"),
        r"(?<![\w$-])(Add-Type)(?=[^\n]{0,200}DllImport)|Reflection\.Assembly\]::Load",
        "Loads foreign code",
    ),
    Row(
        "outside_write",
        ("set-content", "add-content", "out-file", "new-item", "copy-item", "move-item"),
        r"(?<![\w$-])(?:Set-Content|Add-Content|Out-File|New-Item|Copy-Item|Move-Item)(?![\w-])",
        "",
        0,
        "outside",
    ),
    Row(
        "outside_write",
        ("scheduledtask", "new-service", "schtasks", "hklm:", "hkcu:"),
        r"(?<![\w$-])(Register-ScheduledTask|New-Service|schtasks(?:\.exe)?)(?![\w-])|Set-ItemProperty[^\n]{0,80}HK(?:LM|CU):",
        "Sets up what runs later or changes the registry",
    ),
    Row("credentials", ("$env:",), r"\$env:(\w{1,60})", "", 1, "secret"),
    Row(
        "credentials",
        ("get-credential", "get-storedcredential", "cmdkey", "vaultcmd", "env:"),
        r"(?<![\w$-])(Get-Credential|Get-StoredCredential|cmdkey|vaultcmd)(?![\w-])|(?:Get-ChildItem|gci|dir|ls)\s{1,9}env:",
        "Asks for stored secrets",
    ),
)

UNPARSED_PYTHON = (
    Row(
        "network",
        ("requests", "urllib", "socket", "http", "smtplib", "ftplib"),
        r"\b(requests\.\w{1,20}|urllib2?\.(?:request|urlopen)|httpx|aiohttp|socket\.socket|http\.client|smtplib|ftplib)\b",
        NETWORK,
        1,
    ),
    Row(
        "process",
        ("subprocess", "os.", "pty"),
        r"\b(subprocess|os\.(?:system|popen|exec\w{1,4}|spawn\w{1,4})|pty\.spawn)\b",
        PROGRAMS,
        1,
    ),
    Row(
        "delete",
        ("rmtree", "os.", "unlink"),
        r"\b(shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs))\b|\.unlink\(",
        DELETES,
    ),
    Row(
        "obfuscation",
        ("eval", "exec", "__import__", "compile", "marshal", "zlib", "base64"),
        r"(?<![\w.])(eval|exec|__import__|compile)\s{0,4}\(|\b(?:marshal|zlib|base64)\.(?:loads|decompress|b64decode)\b",
        "Runs or decodes text as code with {}",
    ),
    Row("outside_write", ("open",), r"(?<![\w.])open\s{0,4}\((?=[^\n]{0,200}[\"'][wa]b?\+?[\"'])", "", 0, "outside"),
    Row(
        "credentials",
        ("environ", "getenv"),
        r"\b(?:environ(?:\.get\(|\[)|getenv\()\s{0,4}[\"'](\w{1,60})",
        "",
        1,
        "secret",
    ),
)

TABLES: dict[str, tuple[Row, ...]] = {
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "ruby": RUBY,
    "perl": PERL,
    "powershell": POWERSHELL,
    "unparsed python": UNPARSED_PYTHON,
}
