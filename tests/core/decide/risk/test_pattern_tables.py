"""Each thing that the tables name is recognised, one at a time."""

from __future__ import annotations

import pytest

from skillkit.core.decide.risk.findings import Finding
from skillkit.core.decide.risk.pattern_tables import TABLES
from skillkit.core.decide.risk.patterns import pattern_seen

MODULES = "http https http2 net dgram tls dns axios got node-fetch undici ws request superagent puppeteer playwright"
HIDDEN = "aW1wb3J0IG9zOyBvcy5zeXN0ZW0o"
SAMPLES = {
    ("javascript", "network"): [
        *(f"require('{name}')" for name in (*MODULES.split(), "nodemailer", "ssh2", "socket.io-client")),
        *("fetch(x)", "window.fetch(x)", "new XMLHttpRequest", "new WebSocket", "new EventSource"),
        *("navigator.sendBeacon", "Bun.connect", "Deno.listen"),
    ],
    ("javascript", "process"): [
        *(f"import '{name}'" for name in ("node:child_process", "execa", "shelljs", "zx", "node-pty", "cross-spawn")),
        *("load('child_process')['x']", "execFile(x)", "spawn(x)", "cluster.fork()"),
        *("new Deno.Command", "Deno.run", "Bun.spawnSync", "Bun.$"),
    ],
    ("javascript", "delete"): ["rmSync(x)", "fs.rm(x)", "fsp.unlink(x)", "rimraf(x)", "unlink(x)", "Deno.remove"],
    ("javascript", "obfuscation"): [
        *("import 'https://a.example/x.js'", "eval(x)", "new Function('x')", "x.constructor.constructor", "vm.Script"),
        *("x['constructor']", "process.binding", "process._linkedBinding", f"atob('{HIDDEN}')"),
        *(f"Buffer.from('{HIDDEN}', 'base64')", f"Buffer.from('{'6f' * 12}', 'hex')"),
        "fromCharCode(" + "1," * 12,
        *(f"{name}('a' + 'b')" for name in ("require", "import")),
        *(f"{name}['a' + 'b']" for name in ("globalThis", "global", "process")),
    ],
    ("javascript", "outside_write"): [
        *(f"{name}('/etc/x')" for name in ("writeFile", "appendFile", "createWriteStream", "mkdir", "copyFile")),
        *(f"{name}('/etc/x')" for name in ("cp", "cpSync", "symlink", "rename")),
        "mkdirSync(join(homedir(), 'x'))",
    ],
    ("javascript", "credentials"): [
        *(f"{name}.API_KEY" for name in ("process.env", "Bun.env")),
        *("Deno.env.get('API_KEY')", "Object.keys(process.env)", "JSON.stringify(process.env)", "require('keytar')"),
    ],
    ("ruby", "network"): [
        *("Net::HTTP", "URI.open", "Faraday", "HTTParty", "RestClient", "Excon", "Typhoeus", "TCPSocket", "TCPServer"),
        *("Socket.tcp", "require 'open-uri'", "require 'net/ftp'", "require 'socket'"),
    ],
    ("ruby", "process"): [
        *("system('ls')", "exec 'ls'", "Process.spawn('ls')", "fork()", "IO.popen", "Open3.capture2", "PTY.spawn"),
        *("x = `ls`", "x = %x(ls)"),
    ],
    ("ruby", "delete"): ["FileUtils.rm_rf", "File.delete", "Dir.rmdir", "path.rmtree"],
    ("ruby", "obfuscation"): [
        *("eval(x)", "instance_eval(x)", "Marshal.load", f"Base64.decode64('{HIDDEN}')", "x.unpack('m')"),
        *("x.send(:system)", "x.public_send('sys' + y)"),
    ],
    ("ruby", "outside_write"): [
        *("File.write('/etc/x')", "IO.write('/etc/x')", "FileUtils.touch('/etc/x')", "File.open('/etc/x', 'w')"),
    ],
    ("ruby", "credentials"): ["ENV['API_KEY']", "ENV.fetch('API_KEY')", "ENV.to_h"],
    ("perl", "network"): ["LWP::Simple", "HTTP::Tiny", "IO::Socket", "Net::FTP", "Mojo::UserAgent", "WWW::Mechanize"],
    ("perl", "process"): [
        *("system('ls')", "exec 'ls'", "fork()", "my $x = `ls`", "my $x = qx(ls)", "open(F, 'ls |')", "IPC::Open3"),
    ],
    ("perl", "delete"): ["unlink $x", "rmtree($x)", "remove_tree($x)", "rmdir $x"],
    ("perl", "obfuscation"): [
        *("eval $x", f"decode_base64('{HIDDEN}')", f"pack('H*', '{'6f' * 12}')", f"unpack('u', '{HIDDEN}')"),
    ],
    ("perl", "outside_write"): ["open(F, '>', '/etc/x')"],
    ("perl", "credentials"): ["$ENV{API_KEY}", "keys %ENV"],
    ("powershell", "network"): [
        *("Invoke-WebRequest", "invoke-restmethod", "iwr", "irm", "curl.exe", "wget", "Start-BitsTransfer"),
        *("Send-MailMessage", "Net.WebClient", "System.Net.Http.HttpClient", "Net.Sockets.TcpListener"),
    ],
    ("powershell", "process"): [
        *("Start-Process", "saps", "Invoke-WmiMethod", "Invoke-CimMethod", "[Diagnostics.Process]::Start"),
        *("cmd /c x", "powershell -File x", "pwsh.exe -File x"),
    ],
    ("powershell", "delete"): [
        *("Remove-Item x", "Clear-Content x", "rmdir x", "rd x", "del x", "erase x", "[IO.Directory]::Delete"),
    ],
    ("powershell", "obfuscation"): [
        *("Invoke-Expression", "iex", "[ScriptBlock]::Create", f"-e {HIDDEN}", f"-EncodedCommand {HIDDEN}"),
        *("FromBase64String", "Add-Type '[DllImport(x)]'", "[Reflection.Assembly]::Load"),
    ],
    ("powershell", "outside_write"): [
        *(f"{verb}-Content 'C:\\x'" for verb in ("Set", "Add")),
        *(f"{verb}-Item 'C:\\x'" for verb in ("New", "Copy", "Move")),
        *("Out-File 'C:\\x'", "Register-ScheduledTask", "New-Service", "schtasks.exe"),
        *("Set-ItemProperty HKLM:", "Set-ItemProperty HKCU:"),
    ],
    ("powershell", "credentials"): [
        *("$env:API_KEY", "Get-Credential", "Get-StoredCredential", "cmdkey", "vaultcmd", "Get-ChildItem env:"),
    ],
    ("unparsed python", "network"): [
        *("requests.get", "urllib.request", "httpx", "aiohttp", "socket.socket", "http.client", "smtplib", "ftplib"),
    ],
    ("unparsed python", "process"): ["subprocess", "os.system", "pty.spawn"],
    ("unparsed python", "delete"): ["shutil.rmtree", "os.remove", "x.unlink()"],
    ("unparsed python", "obfuscation"): [
        *("eval(x)", "exec(x)", "__import__(x)", "compile(x)"),
        *("marshal.loads", "zlib.decompress", "base64.b64decode"),
    ],
    ("unparsed python", "outside_write"): ["open('/etc/x', 'w')"],
    ("unparsed python", "credentials"): ["os.environ['API_KEY']", "getenv('API_KEY')"],
}


@pytest.mark.parametrize(("language", "kind"), SAMPLES, ids=" ".join)
def test_each_entry_is_recognised(language: str, kind: str) -> None:
    seen = {
        code: {found.kind for found in pattern_seen(code, language) if isinstance(found, Finding)}
        for code in SAMPLES[language, kind]
    }
    assert [code for code, kinds in seen.items() if kind not in kinds] == []


def test_typescript_is_read_as_javascript() -> None:
    assert TABLES["typescript"] == TABLES["javascript"]
