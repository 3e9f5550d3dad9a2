#!/usr/bin/env bash
# packages.sh KIND lists the packages whose tests are run in one way:
#
#   servers  They start servers with agents and engines, from the binary that users
#            have, one package after the other.
#   raced    Something runs concurrently in them: their code starts
#            goroutines or imports sync, for more than values that are made once when
#            they are needed. They are for the race detector.
#   mixed    Only some tests start goroutines, to call at once what has to bear it: these
#            tests are for the race detector, which `packages.sh tests` lists, as an
#            expression for -run. Their packages are plain, too. Either nothing but tests
#            starts goroutines, or the package is one of the largest, most of whose tests
#            call one thing after the other: with the race detector each of them takes
#            five times as long.
#   apart    They are raced, except for the tests in files that are built without the race
#            detector only (//go:build !race): tests of what an engine does, of memory,
#            or of a story that is replayed from each of its steps. These tests are run
#            without it; `packages.sh apart-tests` lists them.
#   plain    All others, which the race detector would only make slow.
set -euo pipefail
kind=${1:?servers, raced, mixed, tests, apart, apart-tests or plain}

# Programs in the sandboxes of these tests are the tests' own binary, within limits
# of memory that the race detector does not fit into.
limited='/runner/sandbox$'
servers='/(docs|internal/e2e)$'
stepped='/(datastore|forge/github|gitsource|reconciler)$'
concurrent='^[[:space:]]*(go (func\(|[A-Za-z_.]+\()|(import )?([a-z]+ )?"(sync|sync/atomic|golang.org/x/sync/[a-z]+)"$)'

lazy='sync\.Once(Values|Value|Func)'
shared='(^|[^A-Za-z0-9_])(sync|atomic|errgroup|semaphore|singleflight)\.[A-Z]|^[[:space:]]*go (func\(|[A-Za-z_.]+\()'

names() {
  find "$1" -maxdepth 1 -name '*.go' "${@:2}" -exec grep -lE "$concurrent" {} + | while read -r file; do
    if ! grep -qE "$lazy" "$file" || sed -E "s/$lazy//g" "$file" | grep -qE "$shared"; then echo "$file"; fi
  done
}
starting() { find "$1" -maxdepth 1 -name '*_test.go' -exec grep -lE '^[[:space:]]*go [A-Za-z_.]+\(|\.Go\(' {} +; }
unraced() { find "$1" -maxdepth 1 -name '*_test.go' -exec grep -lE '^//go:build (.* )?!race$' {} +; }
# A file of helpers alone has none.
tests() { xargs grep -ohE '^func (Test|Fuzz)[A-Za-z0-9_]*' | cut -d' ' -f2 || true; }

packages=$(${GO:-go} list -f '{{.ImportPath}} {{.Dir}}' ./...)
while read -r package dir; do
  is=plain
  if [[ $package =~ $servers ]]; then is=servers
  elif [[ $package =~ $limited ]]; then is=plain
  elif [[ $package =~ $stepped ]]; then is='plain mixed stepped'
  elif [[ -n $(names "$dir" ! -name '*_test.go') ]]; then
    is=raced
    if [[ -n $(unraced "$dir") ]]; then is='raced apart'; fi
  elif [[ -n $(names "$dir" -name '*_test.go') ]]; then is='plain mixed'
  fi
  if [[ $kind == tests && $is == *stepped ]]; then
    starting "$dir" | tests
  elif [[ $kind == tests && $is == *mixed ]]; then
    names "$dir" -name '*_test.go' | tests
  elif [[ $kind == apart-tests && $is == *apart ]]; then
    unraced "$dir" | tests
  elif [[ " $is " == *" $kind "* ]]; then
    echo "$package"
  fi
done <<<"$packages" | if [[ $kind == *tests ]]; then echo "^($(paste -sd'|' -))\$"; else cat; fi
