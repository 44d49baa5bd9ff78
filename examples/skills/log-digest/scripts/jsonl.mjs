#!/usr/bin/env node
// Condenses a log of JSON lines: lines per level, the time span, and the most frequent messages with numbers and
// ids folded. Takes a log file as argument, or the log on standard input.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const LEVELS = ["none", "trace", "debug", "info", "warn", "error", "fatal"];
const SYNONYMS = { notice: "info", warning: "warn", err: "error", severe: "error", crit: "fatal",
  critical: "fatal", alert: "fatal", emerg: "fatal", emergency: "fatal", panic: "fatal" };
const SAMPLE = fileURLToPath(new URL("../assets/sample.jsonl", import.meta.url));
const HELP = `usage: jsonl.mjs [--top N] [--level LEVEL] [FILE | - | --sample]

Condenses a log of JSON lines: lines per level, the time span, and the most frequent messages.

  FILE           log file; without it, or with -, standard input is read
  --sample       digest the sample that comes with the skill
  --top N        how many messages to list (default 5)
  --level LEVEL  list only messages of this level and above: fatal error warn info debug trace
  -h, --help     show this help

exit codes: 0 digested; 1 the log cannot be read or holds no JSON object; 2 wrong use of the command line
`;

class Failure extends Error { exitCode = 1; }
class Misuse extends Failure { exitCode = 2; }

function requestFrom(argv) {
  const options = { top: { type: "string", default: "5" }, level: { type: "string", default: "none" },
    sample: { type: "boolean" }, help: { type: "boolean", short: "h" } };
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  if (!/^[0-9]{1,6}$/.test(values.top)) throw new Misuse("--top needs a number from 0 to 999999.");
  if (!LEVELS.includes(values.level)) throw new Misuse(`unknown level ${values.level}.`);
  if (positionals.length + (values.sample ? 1 : 0) > 1) throw new Misuse("only one log can be digested.");
  const file = values.sample ? SAMPLE : positionals[0] ?? "-";
  if (file === "-" && process.stdin.isTTY && !values.help) {
    throw new Misuse("name a log file, or send the log on standard input.");
  }
  return { help: values.help, top: Number(values.top), floor: LEVELS.indexOf(values.level), file };
}

function firstField(entry, names) {
  return names.map((name) => entry[name]).find((value) => value !== undefined && value !== null);
}

function levelOf(entry) {
  const value = firstField(entry, ["level", "severity", "lvl", "log.level"]);
  if (typeof value === "number") return LEVELS[Math.min(6, Math.max(0, Math.floor(value / 10)))];
  const name = String(value ?? "none").toLowerCase();
  const known = Object.hasOwn(SYNONYMS, name) ? SYNONYMS[name] : name;
  return LEVELS.includes(known) ? known : "none";
}

function messageOf(entry) {
  const value = firstField(entry, ["msg", "message", "event", "error"]) ?? "(no message)";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const folded = text.slice(0, 2000).replace(/[A-Za-z0-9]+/g, (word) =>
    /^[0-9a-fA-F]+$/.test(word) && /[0-9]/.test(word) ? "#" : word.replace(/[0-9]+/g, "#"));
  return [...folded.replace(/[\s\p{Cc}]+/gu, " ").trim()].slice(0, 120).join("");
}

function objectFrom(line) {
  try {
    const value = JSON.parse(line);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

async function digestOf(input, floor) {
  const digest = { total: 0, skipped: 0, times: [], levels: new Map(), messages: new Map() };
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    const entry = objectFrom(line.replace(/^\uFEFF/, ""));
    if (entry === null) {
      if (line.trim() !== "") digest.skipped += 1;
      continue;
    }
    const level = levelOf(entry);
    digest.total += 1;
    digest.levels.set(level, (digest.levels.get(level) ?? 0) + 1);
    const time = firstField(entry, ["time", "timestamp", "ts", "@timestamp"]);
    if (time !== undefined) digest.times = [digest.times[0] ?? time, time];
    if (LEVELS.indexOf(level) < floor) continue;
    const key = `${level.padEnd(6)} ${messageOf(entry)}`;
    digest.messages.set(key, (digest.messages.get(key) ?? 0) + 1);
  }
  return digest;
}

function textOf({ total, times, levels, messages }, top) {
  const span = times.length ? ` From ${times[0]} to ${times[1]}.` : "";
  const counts = LEVELS.filter((name) => levels.has(name)).reverse();
  const ranked = [...messages].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, top);
  return ["# Log digest", "", `Lines: ${total}.${span}`, "", "## Levels", "",
    ...counts.map((name) => `${name.padEnd(6)} ${levels.get(name)}`), "", "## Most frequent messages", "",
    ...ranked.map(([key, count]) => `${String(count).padStart(7)}  ${key}`), ""].join("\n");
}

try {
  const { help, top, floor, file } = requestFrom(process.argv.slice(2));
  if (help) {
    process.stdout.write(HELP);
  } else {
    const input = file === "-" ? process.stdin : createReadStream(file);
    const digest = await digestOf(input, floor).catch((error) => {
      throw error.code ? new Failure(`cannot read ${file}: ${error.message}.`) : error;
    });
    if (digest.skipped) console.error(`jsonl: ${digest.skipped} lines are not JSON objects and were left out.`);
    if (!digest.total) throw new Failure("the log holds no JSON object; for a text log use digest.sh.");
    process.stdout.write(textOf(digest, top));
  }
} catch (error) {
  // What parseArgs refuses carries a code; an error without one is a fault of this script.
  if (!(error instanceof Failure) && error.code === undefined) throw error;
  console.error(`jsonl: ${error.message}`);
  process.exitCode = error.exitCode ?? 2;
}
