#!/usr/bin/env bash
# Builds a tool of the tests, once for each of its versions and each version of Go,
# into a cache folder of the user, from where every clone gets it. Usage:
#
#   tool.sh FOLDER PACKAGE@VERSION      puts the program into the folder
#   tool.sh FOLDER PATH                 the same, for a module of this repository
#   tool.sh FOLDER npm:PACKAGE@VERSION:PROGRAM   the same, for a program of a package of npm;
#                                       it stays where it was installed, and is started there
set -euo pipefail
folder=$1 from=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test/tools
mkdir -p "$folder"
if [[ $from == npm:* ]]; then
  IFS=: read -r _ package program <<<"$from"
  dir=$cache/npm-$(node -p 'process.version + "-" + process.platform + "-" + process.arch')/$package
  if [[ ! -d $dir ]]; then
    mkdir -p "$(dirname "$dir")"
    temp=$(mktemp -d "$(dirname "$dir")/tmp-XXXXXX")
    trap 'rm -rf "$temp"' EXIT
    echo "installing $package into $dir" >&2
    npm install --prefix "$temp" --no-audit --no-fund --no-save --loglevel=error "$package" >&2
    [[ -d $dir ]] || mv "$temp" "$dir"
  fi
  start=$dir/node_modules/.bin/$program
  [[ -x $start ]] || { echo "$package has no program $program" >&2; exit 1; }
  printf '#!/bin/sh\nexec node "%s" "$@"\n' "$start" >"$folder/$program.$$"
  chmod +x "$folder/$program.$$"
  mv "$folder/$program.$$" "$folder/$program" # at once: somebody may start it
  exit
fi
go=${GO:-go}
sum=sha256sum # macOS has another one
command -v sha256sum >/dev/null || sum="shasum -a 256"
name=$(basename "${from%@*}")
if [[ $from == *@* ]]; then
  source=. package=$from version=${from##*@}
else
  source=$from package=. version=$(cd "$from" && find . -type f | LC_ALL=C sort | xargs $sum | $sum | cut -c1-16)
fi
cache=$cache/$($go env GOVERSION GOOS GOARCH | paste -sd- -)
dir=$cache/$name@$version
if [[ ! -x $dir/$name ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-$name-XXXXXX")
  trap 'rm -rf "$temp"' EXIT
  echo "building $name@$version into $dir" >&2
  (cd "$source" && GOBIN=$temp CGO_ENABLED=0 $go install -trimpath -buildvcs=false -ldflags '-s -w' "$package")
  [[ -x $dir/$name ]] || mv "$temp" "$dir"
fi
ln -f "$dir/$name" "$folder/" 2>/dev/null || cp -f "$dir/$name" "$folder/"
