#!/usr/bin/env bash
# Writes secrets/, with random secrets and a certificate for agents. What is there stays.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets
[[ -s key ]] || head -c 32 /dev/urandom >key
for name in postgres redis objects admin planner applier; do
  [[ -s $name ]] || openssl rand -hex 24 >"$name"
done
# The rights are those that docs/install.md lists; the default user has none.
printf 'user default off\nuser holdfast on >%s ~holdfast:lock:* resetchannels &holdfast:wake -@all +eval +evalsha +hget +hset +pexpire +pttl +time +del +publish +subscribe +ping\n' \
  "$(cat redis)" >redis-acl
if [[ ! -s agents-cert ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=holdfast agents" \
    -keyout "$work/ca.key" -out agents-ca 2>/dev/null
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=holdfast" \
    -keyout agents-key -out "$work/csr" 2>/dev/null
  openssl x509 -req -in "$work/csr" -CA agents-ca -CAkey "$work/ca.key" -CAcreateserial -days 825 \
    -extfile <(echo "subjectAltName=DNS:holdfast") -out agents-cert 2>/dev/null
fi
# Containers get single files. PostgreSQL, Redis and the store read theirs as users of their
# own; on this machine the folder keeps everybody else away.
chmod 644 postgres redis-acl objects
echo "secrets/ is complete. The token of the administrator: $(pwd)/admin"
