# Functions for the demos in examples/: chapters, commands that are shown, waiting, and edits of
# the repository $fleet. A demo sets $holdfast, $dir and $fleet, and defines fail.

bold= dim= green= red= off=
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' off=$'\e[0m'
fi
chapter=0
newline='\
'
chapter() { chapter=$((chapter + 1)); printf '\n%s%d. %s%s\n\n' "$bold" "$chapter" "$1" "$off"; }
say() { printf '%s\n' "$*" | fold -s -w 96; }
ok() { printf '%s  ✓ %s%s\n' "$green" "$*" "$off"; }
show() { sed "s/^/$dim  │ $off/"; }
run() { printf '%s  $ %s%s\n' "$dim" "${*/#$holdfast/holdfast}" "$off"; "$@" 2>&1 | show; }
need() { command -v "$1" >/dev/null || { echo "The demo needs $1. $2" >&2; exit 1; }; }

# wait_for SECONDS WHAT COMMAND...: until COMMAND succeeds.
wait_for() {
  local seconds=$1 what=$2
  shift 2
  for _ in $(seq $((seconds * 5))); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  fail "waited ${seconds}s for $what"
}

# What someone has set up for Git (an identity or none, signing, hooks) does not matter.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
in_fleet() { git -C "$fleet" "$@"; }
change() { # FILE FROM TO
  sed -i.bak "s/$2/$3/" "$fleet/$1" && rm "$fleet/$1.bak"
  if in_fleet diff --quiet -- "$1"; then fail "$1 has no $2"; fi
}
edit() { change "clusters/$1" "$2" "$3"; }
commit() { in_fleet commit -qam "$1"; }
merge() { in_fleet checkout -q main && in_fleet merge -q --no-ff --no-edit "$@"; }

# What the server says.
cluster_is() { "$holdfast" get clusters | awk -v n="$1" -v s="$2" '$1 == n && index($0, s) { found = 1 } END { exit !found }'; }
shows() { "$holdfast" describe pullrequest "fleet#$1" | grep -qF -- "$2"; }
comment() { # NUMBER [LINES]: its statuses and its comment, and how much of that is left out
  local text lines=${2:-22}
  text=$("$holdfast" describe pullrequest "fleet#$1" | sed -n '/^Statuses/,$p')
  sed -n "1,${lines}p" <<<"$text" | show
  lines=$(($(wc -l <<<"$text") - lines))
  ((lines <= 0)) || show <<<"… $lines more lines: holdfast describe pullrequest fleet#$1"
}
