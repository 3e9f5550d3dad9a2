#!/usr/bin/env bash
# Puts axe-core, which looks for what keeps people from using a page, into a folder: from
# npm, verified. Usage: axe.sh FOLDER
set -euo pipefail
version=4.14.1
sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
into=$1/axe-$version.min.js
if [[ ! -e $into ]]; then
  mkdir -p "$1"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  npm pack --silent --pack-destination "$work" "axe-core@$version" >/dev/null
  tar -xzOf "$work/axe-core-$version.tgz" package/axe.min.js >"$work/axe.min.js"
  echo "$sum  $work/axe.min.js" | sha256sum --quiet --check >&2
  mv "$work/axe.min.js" "$into"
fi
echo "$into"
