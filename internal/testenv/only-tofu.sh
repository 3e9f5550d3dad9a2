#!/usr/bin/env bash
# Executes a command with OpenTofu on PATH, and without Terraform there.
# Usage: only-tofu.sh VERSION COMMAND [ARGUMENT...]; an empty version is that of opentofu.sh.
#
# A folder of PATH with terraform is replaced by one with links to all else that
# is in it.
set -euo pipefail
version=$1
shift
tofu=$("$(dirname "$0")/opentofu.sh" ${version:+"$version"})
links=$(mktemp -d)
trap 'rm -rf "$links"' EXIT
chmod 755 "$links" # engines are other users, who may not get to a cache
mkdir "$links/tofu"
cp "$tofu/tofu" "$links/tofu/"
path=$links/tofu
count=0
IFS=: read -ra dirs <<<"$PATH"
for dir in "${dirs[@]}"; do
  if [[ -e $dir/terraform ]]; then
    count=$((count + 1))
    mkdir "$links/$count"
    for file in "$dir"/*; do
      [[ ${file##*/} == terraform ]] || ln -s "$file" "$links/$count/"
    done
    dir=$links/$count
  fi
  path=$path:$dir
done
PATH=$path "$@"
