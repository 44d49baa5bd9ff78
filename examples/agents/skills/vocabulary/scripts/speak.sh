#!/usr/bin/env bash
# Says a word aloud where there is a voice, and notes it in the workspace.
set -euo pipefail

word="${1:?the word to say}"
case "$(uname)" in
  Darwin) voice=(say -v Thomas) ;;
  *) voice=(espeak-ng -v fr) ;;
esac
if command -v "${voice[0]}" > /dev/null; then
  "${voice[@]}" -- "$word" 2> /dev/null || echo "No sound came: ${voice[0]} reaches no loudspeaker from here." >&2
elif command -v spd-say > /dev/null; then
  spd-say -l fr -- "$word" 2> /dev/null || true
fi
printf '%s\n' "$word" >> "${SKILL_WORKSPACE:-$SKILL_WORK_DIR}/practised.txt"
