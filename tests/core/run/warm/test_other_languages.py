"""Scripts of other languages: what they see and say is the same as cold, byte for byte; node and bash wait themselves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.running import made_manager
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import ScriptPolicy
from skillkit.core.run.warm.spares import spares
from skillkit.core.values.policy import Limits

pytestmark = needs_spares

NODE = {
    "its names": (
        "run.js",
        "console.log(process.argv0, process.execPath, process.title, __dirname, module.id, module.parent, module.children,"
        "module.paths, module.loaded, Object.keys(require.cache), require('module')._pathCache, require.main.filename,"
        "process.mainModule === module, this === exports, arguments.length, module.constructor.globalPaths);",
    ),
    "what there is": (
        "run.js",
        "console.log(Reflect.ownKeys(globalThis), Reflect.ownKeys(process), process.eventNames(), process.config.variables.napi_build_version);"
        "console.log(process.getActiveResourcesInfo(), process._getActiveHandles().length, process.exitCode, process.features);"
        "console.log(Error.stackTraceLimit, Error.prepareStackTrace, Object.keys(require.extensions), process.umask(), process.pid, process.ppid);",
    ),
    "descriptors": (
        "run.js",
        "const fs = require('fs'); const shown = fs.readdirSync('/proc/self/fd').map((name) => { try { return name + ' ' +"
        " fs.readlinkSync('/proc/self/fd/' + name).replace(/\\d+/g, '') } catch (error) { return error.code } });"
        "console.log(shown, fs.openSync('/dev/null'), fs.statSync('/dev/null').isCharacterDevice());",
    ),
    "the kernel's view": (
        "run.js",
        "const fs = require('fs'); console.log(fs.readFileSync('/proc/self/environ', 'latin1').split('\\0').filter((x) => !/WORK_DIR|SKILLKIT_RUN/.test(x)));"
        "console.log(fs.readFileSync('/proc/self/limits', 'latin1'), fs.readFileSync('/proc/self/comm', 'latin1'));"
        "console.log(fs.readFileSync('/proc/self/status', 'latin1').split('\\n').filter((x) => /^(Uid|Gid|Cap|NoNew|Seccomp|Sig|Shd|Threads)/.test(x)));"
        "console.log(fs.readFileSync('/proc/self/mounts', 'latin1').split('\\n').map((x) => x.split(' ').slice(1, 4).join(' ').replace(/.tmp.skillkit[^ ]*/, 'WORK')).sort());",
    ),
    "files": (
        "run.js",
        "const fs = require('fs'); for (const place of ['/', '/tmp', '/run', '/home', '/dev', '.', process.env.HOME, process.env.SKILL_WORK_DIR]) console.log(fs.readdirSync(place));",
    ),
    "environment of a child": (
        "run.js",
        "const { execFileSync } = require('child_process'); console.log(execFileSync('/usr/bin/env').toString().split('\\n').filter((x) => !/WORK_DIR|SKILLKIT_RUN/.test(x)));",
    ),
    "input by events": (
        "run.js",
        "let all = ''; process.stdin.setEncoding('utf8').on('data', (piece) => { all += piece; }).on('end', () => console.log([all, process.stdin.isTTY, process.stdin.fd]));",
    ),
    "order of events": (
        "run.js",
        "process.nextTick(() => console.log('tick')); Promise.resolve().then(() => console.log('promise')); setImmediate(() => console.log('immediate'));"
        "queueMicrotask(() => console.log('microtask')); setTimeout(() => console.log('timeout'), 900); process.on('beforeExit', () => console.log('before'));"
        "process.on('exit', (code) => console.log('exit', code)); console.log('first');",
    ),
    "exit in a handler": ("run.js", "process.on('exit', () => { process.exitCode = 9; }); process.exit(2);"),
    "exit at once": ("run.js", "process.stdout.write('x'.repeat(1000)); process.exit(3);"),
    "an exit code": ("run.js", "process.exitCode = 6;"),
    "a throw later": ("run.js", "setTimeout(() => { null.x; }, 1);"),
    "a throw of a text": ("run.js", "'use strict';\nthrow 'words';"),
    "a throw that is caught": (
        "run.js",
        "process.on('uncaughtException', (error, origin) => console.log(error.stack, origin)); throw new Error('y', { cause: 1 });",
    ),
    "a trace": ("run.js", "console.trace('here'); (async () => { await null; console.log(new Error('z').stack); })();"),
    "a rejection": ("run.js", "Promise.reject(new Error('nobody'));"),
    "a rejection of a text": ("run.js", "Promise.reject('nobody');"),
    "a syntax error": ("run.js", "const x = 1;\nconst x = 2;\n"),
    "a module that is missing": ("run.js", "require('./no-such-file');"),
    "a warning": ("run.js", "process.emitWarning('careful'); new Buffer(1);"),
    "a signal": ("run.js", "console.log('x'); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 5000);"),
    "a signal that is taken": (
        "run.js",
        "process.on('SIGUSR2', (name, number) => { console.log(name, number); clearInterval(timer); }); const timer = setInterval(() => {}, 1000); process.kill(process.pid, 'SIGUSR2');",
    ),
    "a thread": (
        "run.js",
        "const { Worker, isMainThread, parentPort, workerData } = require('worker_threads'); if (isMainThread) {"
        "new Worker(__filename, { workerData: 5, argv: ['w'] }).on('message', (x) => console.log(x)).on('exit', (code) => console.log('ended', code)).on('error', (e) => console.log(e)); } else {"
        "parentPort.postMessage([workerData, process.argv, process.execArgv, Object.keys(process.env).filter((x) => !/WORK_DIR|RUN/.test(x)), process.cwd(), require.main === module]); }",
    ),
    "a thread from a text": (
        "run.js",
        "new (require('worker_threads').Worker)('console.log(process.argv, __filename); throw new Error(1)', { eval: true }).on('error', (error) => console.log(error.stack));",
    ),
    "a thread with options": (
        "run.js",
        "new (require('worker_threads').Worker)('console.log(process.execArgv)', { eval: true, execArgv: ['--no-warnings'], env: { A: '1' } });",
    ),
    "a fork": (
        "run.js",
        "if (process.send) { process.send([process.argv, process.execArgv, process.env.NODE_OPTIONS === undefined]); process.disconnect(); } else"
        " require('child_process').fork(__filename, ['forked']).on('message', (x) => console.log(x)).on('exit', (code) => console.log(code));",
    ),
    "files beside it": (
        "run.js",
        "console.log(require('./beside'), require('./beside.json'), require.resolve('./beside')); import('./module.mjs').then((found) => console.log(found));",
    ),
    "what it loads first": (
        "run.js",
        "#!/usr/bin/env node\n'use strict';\n// words\nconst http = require('node:http');\nconst { join } = require('path');\nconst {\n  createHash,\n} = require('crypto');\n"
        "console.log(http.globalAgent.protocol, join('a', 'b'), createHash('sha256').update('x').digest('hex'), Object.keys(require.cache));",
    ),
    "time and place": (
        "run.js",
        "console.log(new Date(0).toString(), new Date(0).toLocaleString(), Intl.DateTimeFormat().resolvedOptions(), process.uptime && 1);",
    ),
    "a module": (
        "run.mjs",
        "import fs from 'node:fs'; console.log(import.meta.url, import.meta.dirname, import.meta.filename, import.meta.resolve('./x.js'),"
        " Object.keys(import.meta), process.argv, typeof fs.statSync, typeof require, this, await Promise.resolve(7));",
    ),
    "a module that throws": ("run.mjs", "function inner() { throw new Error('x'); }\ninner();"),
    "a module that fails to load": ("run.mjs", "import { nothing } from 'fs';"),
    "a module that misses another": ("run.mjs", "import './no-such-file.mjs';"),
    "a module with a rejection": ("run.mjs", "await Promise.reject(new Error('late'));"),
    "a module that never ends": ("run.mjs", "await new Promise(() => {});"),
    "a module's order of events": (
        "run.mjs",
        "process.nextTick(() => console.log('tick')); Promise.resolve().then(() => console.log('promise')); setImmediate(() => console.log('immediate')); console.log('first');",
    ),
    "a module beside others": (
        "run.mjs",
        "import { word } from './module.mjs'; import { createRequire } from 'module'; console.log(word, createRequire(import.meta.url)('./beside'));",
    ),
}
BESIDE = {
    "scripts/beside.sh": 'echo "beside $0 $# $1 ${BASH_SOURCE[*]}"\n',
    "scripts/beside.js": "module.exports = [module.id, module.parent && module.parent.id, require.main === module];\n",
    "scripts/beside.json": '{"a": 1}\n',
    "scripts/module.mjs": "export const word = import.meta.url;\n",
}
# These ask for what would be different; of them only the walls wait.
ONLY_WALLS = ("node, time and place", "perl")

SCRIPTS = {
    "names and words": (
        "run.sh",
        'echo "$0 ${BASH_SOURCE[0]} $# $- $SHLVL"; printf "[%s]" "$@"; echo; caller; shopt -s; set -o',
    ),
    "the kernel's command line": ("run.sh", "tr '\\0' '|' < /proc/$$/cmdline; cat /proc/$$/comm"),
    "the kernel's environment": (
        "run.sh",
        "tr '\\0' '\\n' < /proc/$$/environ | grep -v '^SKILL_WORK_DIR\\|^SKILLKIT_RUN'",
    ),
    "environment": (
        "run.sh",
        "env | grep -v '^SKILL_WORK_DIR\\|^SKILLKIT_RUN'; echo ${SKILL_WORK_DIR:+there}; pwd; declare -p | grep -c .",
    ),
    "descriptors": ("run.sh", 'for each in /proc/$$/fd/*; do echo "${each##*/}"; done'),
    "limits": ("run.sh", "ulimit -a; ulimit -H -a"),
    "who it is": (
        "run.sh",
        # Read by the shell itself: while it starts a program, signals are blocked for a moment.
        'while read -r line; do [[ $line =~ ^(Uid|Gid|Cap|NoNew|Seccomp|Sig|Umask) ]] && echo "$line"; done '
        "</proc/self/status; echo $$ $PPID; trap -p; umask",
    ),
    "files": ("run.sh", "ls -a / /tmp /run /home ~ . 2>&1"),
    "mounts": ("run.sh", "cut -d' ' -f2-4 /proc/$$/mounts | sed 's|/tmp/skillkit[^ ]*|WORK|' | sort"),
    "input": ("run.sh", "cat; read -r line; echo $?"),
    "a failure": ("run.sh", "set -e; false; echo never"),
    "a number": ("run.sh", "exit 7"),
    "a signal": ("run.sh", "echo x; kill -SEGV $$"),
    "a child that stays": ("run.sh", "sleep 30 & echo $!"),
    "no such command": ("run.sh", "no-such-command-anywhere"),
    "a syntax error": ("run.sh", "if then"),
    "a shell's variables": (
        "run.sh",
        "declare -p | grep -v ' BASH_A\\| PIPESTATUS\\| SECONDS\\| SKILL_WORK_DIR\\| SKILLKIT_RUN\\| RANDOM\\| SRANDOM\\| EPOCH\\| BASHPID' | cat -A; declare -f; alias",
    ),
    "a shell's last word, number and stack": (
        "run.sh",
        'echo "$_ $? $LINENO ${FUNCNAME[*]} ${#BASH_SOURCE[@]} ${BASH_LINENO[*]} $BASH_SUBSHELL $SECONDS"\n'
        'inner() { echo "$0 $1 ${FUNCNAME[*]} ${BASH_SOURCE[*]} ${BASH_LINENO[*]}"; caller 0; caller 1; }\ninner x\n'
        "trap 'echo at $LINENO' ERR; false; trap 'echo bye $?' EXIT; hash; jobs; type cd printf; dirs; exit 4",
    ),
    "a shell that returns": ("run.sh", "echo a; return 3; echo b"),
    "a shell with an unbound name": ("run.sh", "set -u\n\necho $no_such_name"),
    "a shell with others beside it": (
        "run.sh",
        'cd "${BASH_SOURCE[0]%/*}"; echo "$OLDPWD" | wc -l; . ./beside.sh more; bash beside.sh; diff <(echo 1) <(echo 2); '
        "coproc cat; echo $COPROC_PID | wc -w; cat <<< here; (exec -a other bash -c 'echo $0'); { echo $BASHPID; } | wc -l",
    ),
    "a shell's order of variables": (
        "run.sh",
        "env | cut -d= -f1; env -i bash -c 'env'; export NEW=1 ANOTHER=2; env | cut -d= -f1",
    ),
    "node": (
        "run.js",
        "console.log(process.argv, process.execArgv, process.cwd(), __filename, require.main === module, process.stdin.isTTY);"
        "const fs = require('fs'); console.log(fs.readFileSync('/proc/self/cmdline', 'latin1'), process.title);"
        "console.log(Object.entries(process.env).filter(([name]) => !/WORK_DIR|SKILLKIT_RUN/.test(name)));"
        "console.log(fs.readFileSync(0, 'utf8'));",
    ),
    "node, a throw": ("run.js", "function inner() { throw new Error('x'); }\ninner();"),
    "node, a module": (
        "run.mjs",
        "import fs from 'node:fs'; console.log(import.meta.url, process.argv, typeof fs.statSync);",
    ),
    **{f"node, {name}": each for name, each in NODE.items()},
    "perl": ("run.pl", 'print "$0 @ARGV $^X\\n"; print STDERR "err\\n"; exit 3;'),
}


@pytest.mark.parametrize("what", SCRIPTS)
@pytest.mark.parametrize("stdin", [None, b"line\nand more"])
def test_it_sees_and_says_the_same(tmp_path: Path, what: str, stdin: bytes | None) -> None:
    name, text = SCRIPTS[what]
    if (name.endswith("js") and not shutil.which("node")) or (name.endswith("pl") and not shutil.which("perl")):
        pytest.skip("not installed")
    # From version 24 on each thread of node sets 512 MB aside for its code, and the kernel counts them.
    policy = ScriptPolicy(**WARM, limits=Limits(data_megabytes=2048))
    words = ["one", "two words", "ü", "", "'$(id)'", "a\nb", "-n", "X=1"]
    with made_manager(tmp_path, {f"scripts/{name}": text, **BESIDE}, policy=policy) as manager:
        cold = manager.execute_skill_script("demo", name, argv=words, stdin=stdin)
        assert wait_for_spare()
        assert spares._kept[0][1].waiting.hook.is_renamed == (what not in ONLY_WALLS)
        warm = manager.execute_skill_script("demo", name, argv=words, stdin=stdin)
    assert (cold.isolation.start, warm.isolation.start) == ("cold", "warm")
    assert said(warm) == said(cold)


def said(result: object) -> str:
    text = f"{result.exit_code} {result.signal}\n{result.stdout}\n{result.stderr}"  # type: ignore[attr-defined]
    return re.sub(r"/tmp/skillkit-work[^/]*/[^/'\" ]*", "WORK", text)
