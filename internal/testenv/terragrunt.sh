#!/usr/bin/env bash
# Puts Terragrunt into a cache folder of the user, once for each version, and prints the path
# of the program. Usage: terragrunt.sh VERSION
#
# It is built from its Go module, within a copy of its own source, as `go install` refuses a
# module whose go.mod replaces some of what it needs.
set -euo pipefail
version=$1
module=github.com/gruntwork-io/terragrunt
go=${GO:-go}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test
dir=$cache/terragrunt@$version
if [[ ! -x $dir/terragrunt ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-terragrunt-XXXXXX")
  trap 'chmod -R u+w "$temp"; rm -rf "$temp"' EXIT
  mkdir "$temp/done"
  echo "setup: building $module@$version into $dir. This takes some minutes, once" >&2
  source=$(cd "$temp" && GOFLAGS=-mod=mod $go mod download -json "$module@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
  cp -R "$source" "$temp/source"
  chmod -R u+w "$temp/source"
  (cd "$temp/source" && GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 \
    $go build -trimpath -buildvcs=false -ldflags "-s -w -X $module/internal/version.Version=$version" -o "$temp/done/terragrunt" .)
  "$temp/done/terragrunt" --version >&2
  [[ -x $dir/terragrunt ]] || mv "$temp/done" "$dir"
fi
echo "$dir/terragrunt"
