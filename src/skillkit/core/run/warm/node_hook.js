// What a node that waits does between its start and its script; the numbers of its pipes stand above. It says `u` when
// it is up, `.` for each module, `r` and from where node comes when all are loaded, `x` where that failed, and `k` when
// a run is taken. Nothing of it is left then.
'use strict';
try {
  const fs = require('fs');
  const say = (word) => {
    for (let rest = Buffer.from(word); rest.length; ) rest = rest.subarray(fs.writeSync(ANSWERS, rest));
  };
  const exactly = (size) => {
    const content = Buffer.alloc(size);
    for (let at = 0; at < size; ) {
      const count = fs.readSync(ORDERS, content, at, size - at);
      if (!count) process.reallyExit(0);
      at += count;
    }
    return content;
  };
  const order = () => JSON.parse(exactly(Number(exactly(8).readBigUInt64BE())).toString());
  const framed = (content) => {
    const size = Buffer.alloc(8);
    size.writeBigUInt64BE(BigInt(content.length));
    return Buffer.concat([size, content]);
  };
  say('u');
  for (const name of order()) {
    require(name);
    say('.');
  }
  say(Buffer.concat([Buffer.from('r'), framed(Buffer.from(process.execPath + '\0'))]));
  const run = order();
  const mark = process.env.SKILLKIT_RUN;
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const [name, value] of run.environment) process.env[name] = value;
  process.env.SKILLKIT_RUN = mark;
  process.env.PWD = run.folder;
  process.chdir(run.folder);
  process.argv.push(...run.words);
  delete require.cache[__filename];
  const found = module.constructor._pathCache;
  for (const name of Object.keys(found)) delete found[name];
  say('k');
  fs.closeSync(ORDERS);
  fs.closeSync(ANSWERS);
} catch {
  process.reallyExit(125);
}
