#!/usr/bin/env bash
# Builds OpenTofu from its Go module, once for each version, into a cache folder
# of the user, and prints the folder that has `tofu`. Usage: opentofu.sh VERSION
#
# `go install` refuses the module, as its go.mod replaces some of what it needs:
# it is built within a copy of its own source.
set -euo pipefail
version=$1
module=github.com/opentofu/opentofu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test
dir=$cache/opentofu@$version
if [[ ! -x $dir/tofu ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-opentofu-XXXXXX")
  trap 'chmod -R u+w "$temp"; rm -rf "$temp"' EXIT
  echo "building $module@$version into $dir: this takes some minutes, once" >&2
  source=$(cd "$temp" && GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  cp -r "$source" "$temp/source"
  chmod -R u+w "$temp/source"
  mkdir "$temp/done"
  (cd "$temp/source" && GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X $module/version.dev=no" -o "$temp/done/tofu" ./cmd/tofu)
  "$temp/done/tofu" version >&2
  [[ -x $dir/tofu ]] || mv -T "$temp/done" "$dir"
fi
echo "$dir"
