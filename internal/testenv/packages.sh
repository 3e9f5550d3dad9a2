#!/usr/bin/env bash
# packages.sh KIND lists the packages whose tests are run in one way:
#
#   servers  They start servers with agents and engines, from the binary that users
#            have. Beside other tests they would compete for a small machine.
#   raced    Something runs beside something else in them: their code starts
#            goroutines or imports sync. They are for the race detector.
#   beside   Only tests start goroutines, to call at once what has to bear it: these
#            tests are for the race detector, which `packages.sh tests` lists, as an
#            expression for -run. Their packages are plain, too.
#   plain    All others, which the race detector would only make slow, and those that
#            do less with it: they have a file that is built with it only.
set -euo pipefail
kind=${1:?servers, raced, beside, tests or plain}

# Programs in the sandboxes of these tests are the tests' own binary, within limits
# of memory that the race detector does not fit into.
limited='/runner/sandbox$'
servers='/(docs|internal/e2e)$'
concurrent='^[[:space:]]*(go (func\(|[A-Za-z_.]+\()|(import )?([a-z]+ )?"(sync|sync/atomic|golang.org/x/sync/[a-z]+)"$)'

names() { find "$1" -maxdepth 1 -name '*.go' "${@:2}" -exec grep -lE "$concurrent" {} +; }

packages=$(${GO:-go} list -f '{{.ImportPath}} {{.Dir}}' ./...)
while read -r package dir; do
  is=plain
  if [[ $package =~ $servers ]]; then is=servers
  elif [[ $package =~ $limited ]]; then is=plain
  elif [[ -n $(names "$dir" ! -name '*_test.go') ]]; then
    is=raced
    if grep -qs '^//go:build race$' "$dir"/*_test.go; then is='raced plain'; fi
  elif [[ -n $(names "$dir" -name '*_test.go') ]]; then is='plain beside'
  fi
  if [[ $kind == tests && $is == *beside ]]; then
    # A file of helpers alone has none.
    { names "$dir" -name '*_test.go' | xargs grep -ohE '^func Test[A-Za-z0-9_]*' || true; } | cut -d' ' -f2
  elif [[ " $is " == *" $kind "* ]]; then
    echo "$package"
  fi
done <<<"$packages" | if [[ $kind == tests ]]; then echo "^($(paste -sd'|'))\$"; else cat; fi
