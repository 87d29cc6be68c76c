#!/usr/bin/env bash
# Says whether this Mac is slowed down just now, so that timings taken on it can be trusted or thrown away.
#
#   scripts/check-throttle.sh
#
# Asks what needs no rights (pmset, the thermal pressure that the system publishes), and powermetrics where it may run without
# a password. Everything found is printed. Exit codes:
#
#   0  nothing slows it down, as far as the sources that answered can tell
#   1  it is slowed down: low power mode, thermal pressure, or a limit on the processor's speed
#   2  nothing can be said: not a Mac, or no source answered
set -euo pipefail

say() { printf 'check-throttle: %s\n' "$*"; }

if [ "$(uname -s)" != Darwin ]; then
  say "nothing to say: this is not macOS"
  exit 2
fi

answered=0
slowed=0

fine() {
  answered=1
  say "$*"
}

slow() {
  answered=1
  slowed=1
  say "SLOWED DOWN: $*"
}

# `lowpowermode 1` on most machines; `powermode 1` on those that have a high power mode as well.
power_mode() {
  local settings
  settings=$(pmset -g 2>/dev/null) || return 0
  case $(awk '$1 == "lowpowermode" || $1 == "powermode" { print $2; exit }' <<<"$settings") in
    0) fine "power mode: automatic" ;;
    1) slow "low power mode is on" ;;
    2) fine "power mode: high" ;;
  esac
}

# Limits in percent on Intel; on Apple silicon mostly notes that nothing was recorded.
limits() {
  local text name value
  text=$(pmset -g therm 2>/dev/null) || return 0
  while read -r name value; do
    if [ "$value" -lt 100 ]; then
      slow "$name is $value %"
    else
      fine "$name is $value %"
    fi
  done < <(sed -nE 's/^[[:space:]]*(CPU_(Speed|Scheduler)_Limit)[[:space:]]*=[[:space:]]*([0-9]+).*/\1 \3/p' <<<"$text")
  while read -r value; do
    if [ "$value" -gt 0 ]; then
      slow "a warning level of $value was recorded"
    else
      fine "the warning level is 0"
    fi
  done < <(sed -nE 's/.*[Ww]arning [Ll]evel[[:space:]]*=[[:space:]]*([0-9]+).*/\1/p' <<<"$text")
  if grep -q 'No thermal warning level' <<<"$text"; then fine "no thermal warning was recorded"; fi
}

# 0 nominal, 1 moderate, 2 heavy, 3 trapping, 4 sleeping.
pressure() {
  local level
  level=$(notifyutil -g com.apple.system.thermalpressurelevel 2>/dev/null | awk '{ print $2 }') || return 0
  case $level in
    0) fine "thermal pressure: nominal" ;;
    [1-9]*) slow "thermal pressure is at level $level (0 is nominal)" ;;
  esac
}

metrics() {
  local text level
  local ask=(powermetrics --samplers thermal -n 1 -i 200)
  [ "$(id -u)" = 0 ] || ask=(sudo -n "${ask[@]}")
  if ! text=$("${ask[@]}" 2>/dev/null); then
    say "powermetrics was not asked: it needs root (sudo -v first)"
    return 0
  fi
  level=$(sed -n 's/^Current pressure level:[[:space:]]*//p' <<<"$text")
  case $level in
    '') ;;
    Nominal) fine "powermetrics: thermal pressure is nominal" ;;
    *) slow "powermetrics: thermal pressure is ${level}" ;;
  esac
}

power_mode
limits
pressure
metrics

if [ "$slowed" = 1 ]; then
  say "timings taken now are not to be trusted"
  exit 1
fi
if [ "$answered" = 0 ]; then
  say "nothing to say: no source answered"
  exit 2
fi
say "nothing slows this machine down"
