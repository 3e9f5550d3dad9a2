#!/usr/bin/env bash
# Puts OpenTofu into a cache folder of the user, once for each version, and prints the
# folder that has `tofu`. Usage: opentofu.sh [VERSION]
#
# It is downloaded and verified by tenv or, where no download can be reached, built from
# its Go module. `go install` refuses the module, as its go.mod replaces some of what it
# needs: it is built within a copy of its own source.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:-v1.12.6}
module=github.com/opentofu/opentofu
go=${GO:-go}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test
dir=$cache/opentofu@$version
if [[ ! -x $dir/tofu ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-opentofu-XXXXXX")
  trap 'chmod -R u+w "$temp"; rm -rf "$temp"' EXIT
  mkdir "$temp/done"
  echo "setup: downloading OpenTofu ${version#v} into $dir" >&2
  if ! $go run ./internal/testenv/engine "${version#v}" "$temp/done" >&2; then
    rm -rf "$temp/done"
    mkdir "$temp/done"
    echo "setup: no download: building $module@$version into $dir instead. This takes some minutes, once" >&2
    source=$(cd "$temp" && GOFLAGS=-mod=mod $go mod download -json "$module@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
    cp -R "$source" "$temp/source"
    chmod -R u+w "$temp/source"
    (cd "$temp/source" && GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 \
      $go build -trimpath -buildvcs=false -ldflags "-s -w -X $module/version.dev=no" -o "$temp/done/tofu" ./cmd/tofu)
  fi
  "$temp/done/tofu" version >&2
  [[ -x $dir/tofu ]] || mv "$temp/done" "$dir"
fi
echo "$dir"
