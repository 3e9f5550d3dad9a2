#!/usr/bin/env bash
# The part of in-memory.sh within the mount namespace. Usage: in-memory-mounts.sh COMMAND [ARGUMENT...]
#
# Engines and providers are started thousands of times. From a file system with huge pages
# each start takes a sixth less CPU time: they are copied to one, and mounted from there
# over themselves. Tests that build a program put it into HOLDFAST_TEST_PROGRAMS. Small
# files would take a huge page each, so all else is elsewhere.
set -euo pipefail
mount -t tmpfs -o huge=within_size,mode=1777 tmpfs "$TMPDIR" 2>/dev/null || mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR"
mkdir -m 755 "$HOLDFAST_TEST_PROGRAMS"
if mount -t tmpfs -o huge=always,mode=755 tmpfs "$HOLDFAST_TEST_PROGRAMS" 2>/dev/null; then
  for program in "$(type -P terraform)" "$(type -P tofu)" "${HOLDFAST_TEST_PROVIDERS:-/nowhere}"/terraform-provider-*; do
    [[ -f $program ]] || continue
    program=$(readlink -f "$program") copy=$HOLDFAST_TEST_PROGRAMS/$(basename "$program")
    cp -p "$program" "$copy"
    mount --bind "$copy" "$program"
  done
fi
exec "$@"
