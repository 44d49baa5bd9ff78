#!/usr/bin/env bash
# Condenses a text log: lines per level, the time span, and the most frequent messages with numbers and ids folded.
# Takes a log file as argument, or the log on standard input.

set -euo pipefail
export LC_ALL=C # bytes, not characters: any encoding can be read, and sorting is the same everywhere

usage() {
  cat <<'HELP'
usage: digest.sh [--top N] [--level LEVEL] [FILE | - | --sample]

Condenses a text log: lines per level, the time span, and the most frequent messages.

  FILE           log file; without it, or with -, standard input is read
  --sample       digest the sample that comes with the skill
  --top N        how many messages to list (default 5)
  --level LEVEL  list only messages of this level and above: fatal error warn info debug trace
  -h, --help     show this help

exit codes: 0 digested; 1 the log cannot be read or is empty; 2 wrong use of the command line
HELP
}

misuse() {
  printf 'digest: %s. See digest.sh --help.\n' "$1" >&2
  exit 2
}

fail() {
  printf 'digest: %s\n' "$1" >&2
  exit 1
}

top=5 level='' file=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --top) [ $# -ge 2 ] || misuse '--top needs a number'; top=$2; shift ;;
    --level) [ $# -ge 2 ] || misuse '--level needs a level'; level=$2; shift ;;
    --sample) file=$(cd -- "$(dirname -- "$0")/../assets" && pwd)/sample.log ;;
    -?*) misuse "unknown option $1" ;;
    *) [ -z "$file" ] || misuse 'only one log can be digested at a time'; file=$1 ;;
  esac
  shift
done
case $top in '' | *[!0-9]* | ???????*) misuse '--top needs a number from 0 to 999999' ;; esac
case $level in '' | fatal | error | warn | info | debug | trace) ;; *) misuse "unknown level $level" ;; esac

if [ -z "$file" ] || [ "$file" = - ]; then
  [ ! -t 0 ] || misuse 'name a log file, or send the log on standard input'
else
  [ -e "$file" ] || fail "cannot read $file: there is no such file."
  [ ! -d "$file" ] || fail "cannot read $file: it is a folder."
  [ -r "$file" ] || fail "cannot read $file: permission denied."
  exec <"$file"
fi

# Each line becomes "level count message" or "total ..."; NUL bytes would end a line early in some awks.
counted=$(tr -d '\000\r' | awk -v floor="${level:-all}" '
  BEGIN {
    split("none trace debug info warn error fatal", names, " ")
    for (i = 1; i <= 7; i++) rank[names[i]] = i
    split("TRACE:trace DEBUG:debug INFO:info NOTICE:info WARN:warn WARNING:warn ERR:error ERROR:error " \
      "SEVERE:error CRIT:fatal CRITICAL:fatal FATAL:fatal EMERG:fatal ALERT:fatal PANIC:fatal", pairs, " ")
    for (i in pairs) { split(pairs[i], pair, ":"); level_of[pair[1]] = pair[2] }
  }
  {
    level = "none"; message = substr($0, 1, 2000)
    words = split(message, word, " "); if (words > 12) words = 12
    for (i = 1; i <= words && level == "none"; i++) {
      bare = word[i]; gsub(/[^A-Za-z]/, "", bare)
      marked = word[i] ~ /^[\[(<].*[\])>]:?$/ || word[i] ~ /^[A-Za-z]+:$/
      if (toupper(bare) in level_of && (bare == toupper(bare) || marked)) {
        level = level_of[toupper(bare)]
        message = substr(message, index(message, word[i]) + length(word[i]))
      }
    }
    lines[level]++; total++
    if (match($0, /[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9]/)) {
      last = substr($0, RSTART, RLENGTH); if (first == "") first = last
    }
    if (floor != "all" && rank[level] < rank[floor]) next
    parts = split(message, part, /[^A-Za-z0-9]/)
    folded = ""; rest = message
    for (i = 1; i <= parts && length(folded) < 120; i++) {
      shown = part[i]
      if (shown ~ /^[0-9a-fA-F]+$/ && shown ~ /[0-9]/) shown = "#"
      else gsub(/[0-9]+/, "#", shown)
      folded = folded shown substr(rest, length(part[i]) + 1, 1)
      rest = substr(rest, length(part[i]) + 2)
    }
    gsub(/[ \t]+/, " ", folded); sub(/^[ :-]+/, "", folded); sub(/ $/, "", folded)
    # The cut must not leave half a UTF-8 character behind.
    if (length(folded) > 120) { folded = substr(folded, 1, 120); sub(/[\300-\377][\200-\277]*$/, "", folded) }
    if (folded != "") seen[level "\t" folded]++
  }
  END {
    printf "total\t%d\t%s\t%s\n", total, first, last
    for (i = 7; i >= 1; i--) if (lines[names[i]]) printf "level\t%s\t%d\n", names[i], lines[names[i]]
    for (key in seen) printf "message\t%d\t%s\n", seen[key], key
  }')

IFS=$'\t' read -r _ total first last <<<"$counted"
[ "$total" -gt 0 ] || fail 'the log is empty.'

printf '# Log digest\n\nLines: %s.' "$total"
[ -z "$first" ] || printf ' From %s to %s.' "$first" "$last"
printf '\n\n## Levels\n\n'
awk -F '\t' '$1 == "level" { printf "%-6s %d\n", $2, $3 }' <<<"$counted"
printf '\n## Most frequent messages\n\n'
sort -t $'\t' -k2,2nr -k3 < <(grep '^message' <<<"$counted" || true) |
  awk -F '\t' -v top="$top" 'NR <= top { printf "%7d  %-6s %s\n", $2, $3, $4 }'
