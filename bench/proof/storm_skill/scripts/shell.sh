#!/bin/bash
# Leaves programs behind in every way that a shell has.
trap '' TERM INT HUP
(setsid sleep 300 &)
(sleep 300 &)
nohup sleep 300 >/dev/null 2>&1 &
disown
echo done
