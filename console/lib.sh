#!/usr/bin/env bash
# Fetches what the console uses of others from npm, or verifies that static/lib is exactly
# that. Usage: lib.sh fetch|verify
#
# Each file is named with its package, its exact version and its checksum: a package whose
# content changes, or a file that somebody edits here, is refused.
set -euo pipefail
cd "$(dirname "$0")/static/lib"

# PACKAGE@VERSION FILE-IN-IT NAME-HERE
files=(
  "htmx.org@2.0.11 dist/htmx.min.js htmx.min.js"
  "htmx.org@2.0.11 LICENSE htmx.LICENSE"
  "htmx-ext-sse@2.2.4 dist/sse.js sse.js"
  "htmx-ext-sse@2.2.4 LICENSE sse.LICENSE"
  "idiomorph@0.8.0 dist/idiomorph-ext.min.js idiomorph-ext.min.js"
  "idiomorph@0.8.0 LICENSE idiomorph.LICENSE"
  "@fontsource-variable/inter@5.3.0 files/inter-latin-wght-normal.woff2 inter.woff2"
  "@fontsource-variable/inter@5.3.0 LICENSE inter.LICENSE"
  "@fontsource-variable/jetbrains-mono@5.3.0 files/jetbrains-mono-latin-wght-normal.woff2 jetbrains-mono.woff2"
  "@fontsource-variable/jetbrains-mono@5.3.0 LICENSE jetbrains-mono.LICENSE"
)

case ${1:?usage: lib.sh fetch|verify} in
fetch)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for line in "${files[@]}"; do
    read -r package file name <<<"$line"
    archive=$work/${package//[^a-z0-9.]/_}
    if [[ ! -e $archive ]]; then
      npm pack --silent --pack-destination "$work" "$package" >"$work/name"
      mv "$work/$(tail -n 1 "$work/name")" "$archive"
    fi
    tar -xzOf "$archive" "package/$file" >"$name"
  done
  sha256sum -- *.js *.woff2 *.LICENSE >SHA256SUMS
  ;;
verify)
  sha256sum --quiet --check SHA256SUMS
  [[ $(sha256sum -- *.js *.woff2 *.LICENSE | sort) == "$(sort SHA256SUMS)" ]] || { echo "static/lib has files that SHA256SUMS does not" >&2; exit 1; }
  ;;
esac
