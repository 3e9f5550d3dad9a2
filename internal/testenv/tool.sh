#!/usr/bin/env bash
# Builds a tool of the tests, once for each of its versions and each version of Go,
# into a cache folder of the user, from where every clone gets it. Usage:
#
#   tool.sh FOLDER PACKAGE@VERSION   puts the program into the folder
#   tool.sh FOLDER PATH              the same, for a module of this repository
set -euo pipefail
folder=$1 from=$2
go=${GO:-go}
sum=sha256sum # macOS has another one
command -v sha256sum >/dev/null || sum="shasum -a 256"
name=$(basename "${from%@*}")
if [[ $from == *@* ]]; then
  source=. package=$from version=${from##*@}
else
  source=$from package=. version=$(cd "$from" && find . -type f | LC_ALL=C sort | xargs $sum | $sum | cut -c1-16)
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test/tools/$($go env GOVERSION GOOS GOARCH | paste -sd- -)
dir=$cache/$name@$version
if [[ ! -x $dir/$name ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-$name-XXXXXX")
  trap 'rm -rf "$temp"' EXIT
  echo "building $name@$version into $dir" >&2
  (cd "$source" && GOBIN=$temp CGO_ENABLED=0 $go install -trimpath -buildvcs=false -ldflags '-s -w' "$package")
  [[ -x $dir/$name ]] || mv "$temp" "$dir"
fi
mkdir -p "$folder"
ln -f "$dir/$name" "$folder/" 2>/dev/null || cp -f "$dir/$name" "$folder/"
