#!/usr/bin/env bash
# Executes a command with its temporary files in memory, if root does and there is room:
# tests make and delete files all the time, which is a tenth of their work on a disk.
# Usage: in-memory.sh COMMAND [ARGUMENT...]
#
# The file system is mounted for the command and what it starts, which alone see it, and
# ends with the last of them, whatever ends them. It is not below /dev/shm: in an engine's
# sandbox that is another folder, and a configuration that names one there is refused.
set -euo pipefail
room=$((8 * 1024 * 1024)) # KiB that have to be available
if [[ $(uname) != Linux ]] || ((EUID != 0 || $(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo) < room)); then
  exec "$@"
fi
# Always the same, or no result of a test could be taken from the cache. It stays, empty:
# to remove it would end the file systems of others that are mounted there.
dir=/tmp/holdfast-test
mkdir -m 755 "$dir" 2>/dev/null || [[ -O $dir && ! -L $dir ]] || exec "$@"
touch "$dir" # so that cleaners of old files leave it alone
unshare --mount mount -t tmpfs tmpfs "$dir" 2>/dev/null || exec "$@" # as in a container
export TMPDIR=$dir HOLDFAST_TEST_PROGRAMS=$dir/programs
exec unshare --mount --propagation private "$(dirname "$0")/in-memory-mounts.sh" "$@"
