#!/usr/bin/env bash
# Three replicas of Holdfast on this machine, with PostgreSQL, Redis and an S3 store, of which
# each part is killed while applies run.
#
#   run.sh HOLDFAST TOOLS [--exit]
#
# TOOLS is a folder with versitygw and balancer (`make demo SCALE=1` builds them). Each step is
# checked: the first one that does not happen as described ends the demo with status 1. With
# --exit it ends after the story, otherwise everything keeps running for you to try things.
# However it ends, its processes and its folder are removed.
set -euo pipefail

holdfast=${1:?usage: run.sh HOLDFAST TOOLS [--exit]}
holdfast=$(cd "$(dirname "$holdfast")" && pwd)/$(basename "$holdfast")
tools=$(cd "${2:?usage: run.sh HOLDFAST TOOLS [--exit]}" && pwd)
stay=true
[[ ${3:-} == --exit ]] && stay=false
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../story.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-scale.XXXXXX")
chmod 755 "$dir"
fleet=$dir/fleet
install -m 0755 "$holdfast" "$dir/holdfast" # the binary may be below a home that only root can enter
declare -A pids=() ports=()

fail() {
  printf '\n%s  ✗ %s%s\n' "$red" "$*" "$off" >&2
  for log in "$dir"/*.log; do
    echo "The end of $log:" >&2
    tail -n 8 "$log" | cut -c1-220 >&2 || true
  done
  exit 1
}

stop_all() {
  local name
  for name in agent-plan agent-apply one two three balancer-api balancer-agents objects redis; do
    [[ -z ${pids[$name]:-} ]] || kill "${pids[$name]}" 2>/dev/null || true
  done
  [[ ! -d $dir/postgres/data ]] || postgres_do pg_ctl stop -m immediate -s || true
  for name in "${!pids[@]}"; do wait "${pids[$name]}" 2>/dev/null || true; done
  chmod -R u+w "$dir" 2>/dev/null # prepared providers are read-only
  rm -rf "$dir"
}
trap 'stop_all || true' EXIT
trap 'exit 130' INT TERM HUP

need git "Install it, for example with: apt-get install git"
need curl "Install it, for example with: apt-get install curl"
need redis-server "Install it, for example with: apt-get install redis-server"
postgres=$(dirname "$(command -v postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' | tail -n 1)")
[[ -x $postgres/initdb ]] || { echo "The demo needs PostgreSQL. Install it, for example with: apt-get install postgresql" >&2; exit 1; }

# Ports that are free now.
next=$((20000 + RANDOM % 20000))
for name in postgres redis objects api agents {one,two,three}-{public,api,agents}; do
  while (: <"/dev/tcp/127.0.0.1/$next") 2>/dev/null; do next=$((next + 1)); done
  ports[$name]=$next
  next=$((next + 1))
done

# start NAME COMMAND...: in the background, with its output in NAME.log.
start() {
  local name=$1
  shift
  "$@" >>"$dir/$name.log" 2>&1 &
  pids[$name]=$!
}

# die NAME: at once, as in a power cut.
die() {
  kill -9 "${pids[$1]}"
  wait "${pids[$1]}" 2>/dev/null || true
}

# PostgreSQL refuses to run as root.
postgres_do() {
  local program=$1
  shift
  local as=(env)
  ((EUID != 0)) || as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env)
  (cd "$dir/postgres" && "${as[@]}" HOME="$dir/postgres" LC_ALL=C PGPASSWORD="$(cat "$dir/postgres/password")" \
    PGDATA="$dir/postgres/data" "$postgres/$program" "$@")
}

start_postgres() {
  postgres_do pg_ctl start -s -w -l "$dir/postgres/log" -o "-p ${ports[postgres]} -h 127.0.0.1 -k $dir/postgres"
}

start_redis() {
  start redis redis-server --port "${ports[redis]}" --bind 127.0.0.1 --requirepass "$(cat "$dir/secrets/redis")" \
    --save "" --appendonly no --dir "$dir"
}

start_objects() {
  start objects "$tools/versitygw" --port "127.0.0.1:${ports[objects]}" --access holdfast --secret "$(cat "$dir/secrets/objects")" \
    --region us-east-1 --quiet posix --sidecar "$dir/objects/attributes" "$dir/objects/data"
}

start_replica() { start "$1" "$dir/holdfast" serve --config "$dir/$1/holdfast.yaml"; }

start_agent() { # NAME KINDS FIRST-USER
  local users=()
  ((EUID != 0)) || users=(--slot-user "$3")
  start "agent-$1" "$dir/holdfast" agent --server "http://127.0.0.1:${ports[agents]}" --token-file "$dir/secrets/$1" --id "$1" \
    --dir "$dir/agent-$1" --kinds "$2" "${users[@]}" "${isolation[@]}"
}

ready() { curl -fs -o /dev/null "http://127.0.0.1:${ports[$1-api]}/readyz"; }
applying() { "$holdfast" get runs | grep "$1" | grep -E 'apply +' | grep -q running; }
applied_once() { # CLUSTER PULL-REQUEST: how many runs of it have applied something
  [[ $("$holdfast" get runs --cluster "$1" -o json | grep -c '"status": "applied"') == "$2" ]]
}

# propose NAME NODES: a pull request that gives dev-eu that many nodes, each of which takes time.
nodes=1
number=0
propose() {
  number=$((number + 1))
  in_fleet checkout -q -b "$1" main
  edit dev-eu.yaml "node_count: $nodes" "node_count: $((nodes + 1))"
  nodes=$((nodes + 1))
  commit "dev-eu: $nodes nodes"
  wait_for 60 "the plan of pull request $number" shows "$number" "holdfast/plan  success"
}

# merge_and_wait NAME: its merge, and the start of its apply.
merge_and_wait() {
  merge "$1"
  wait_for 60 "the start of the apply" applying dev-eu
  sleep 1
}

# is_done: the pull request shows that it was applied, once.
is_done() {
  wait_for 120 "the result of pull request $number" shows "$number" "1 created"
  wait_for 30 "the record of the apply" cluster_is dev-eu UpToDate
  comment "$number" 6
}

say "${bold}Holdfast${off} in three replicas: this demo plays on $dir, with $("$holdfast" version | head -n 1)."

chapter "PostgreSQL, Redis, an object store, three replicas, two agents"
mkdir "$dir/secrets" "$dir/postgres" "$dir/objects" "$dir/objects/attributes" "$dir/objects/data" "$dir/objects/data/holdfast"
(umask 077; head -c 32 /dev/urandom >"$dir/secrets/key"
 for name in redis objects admin plan apply; do head -c 24 /dev/urandom | base64 | tr -d '/+=\n' >"$dir/secrets/$name"; done
 head -c 24 /dev/urandom | base64 | tr -d '/+=\n' >"$dir/postgres/password")
((EUID != 0)) || chown -R nobody "$dir/postgres"
postgres_do initdb --username=holdfast --pwfile="$dir/postgres/password" --auth=scram-sha-256 --no-locale --encoding=UTF8 --no-sync >"$dir/initdb.log" 2>&1 ||
  fail "initdb failed"
cp "$dir/postgres/password" "$dir/secrets/postgres" && chmod 600 "$dir/secrets/postgres"
start_postgres || fail "PostgreSQL did not start"
start_redis
start_objects

mkdir "$fleet"
cp -r "$here/../demo/clusters" "$here/../demo/templates" "$fleet/"
sed -i.bak "s|^    node_count: 1|&\\
    boot_seconds: 5|" "$fleet/clusters/dev-eu.yaml" && rm "$fleet/clusters/dev-eu.yaml.bak"
in_fleet init -q -b main .
in_fleet config user.name You
in_fleet config user.email you@example.com
in_fleet add -A
commit "A fleet of three"

isolation=() isolated=
mode=$("$dir/holdfast" agent probe 2>/dev/null) || mode=none
if [[ $mode == none || $mode == landlock && $EUID != 0 ]]; then
  say "Nothing that this user may use isolates applies. The demo runs its own code only, and so without a sandbox."
  isolation=(--isolation none) isolated="isolation: none"
fi
for name in one two three; do
  mkdir "$dir/$name"
  cat >"$dir/$name/holdfast.yaml" <<END
dataDir: data
encryption: {keyFile: $dir/secrets/key}
datastore:
  url: postgres://holdfast@127.0.0.1:${ports[postgres]}/postgres?sslmode=disable
  password: {file: $dir/secrets/postgres}
  blobs: {url: "s3://holdfast?region=us-east-1&endpoint=http://127.0.0.1:${ports[objects]}", accessKey: holdfast, secret: {file: $dir/secrets/objects}}
lock:
  type: redis
  redis: {url: "redis://127.0.0.1:${ports[redis]}", password: {file: $dir/secrets/redis}}
server:
  public: {address: "127.0.0.1:${ports[$name-public]}"}
  api: {address: "127.0.0.1:${ports[$name-api]}", tokens: [{name: you, role: admin, token: {file: $dir/secrets/admin}}]}
  agents:
    address: "127.0.0.1:${ports[$name-agents]}"
    tokens:
      - {name: plan, kinds: [plan, drift], token: {file: $dir/secrets/plan}}
      - {name: apply, kinds: [apply, destroy], token: {file: $dir/secrets/apply}}
  grace: 10s
agent: {off: true}
runs: {lease: 10s}
$isolated
repositories:
  - {name: fleet, url: $fleet, clusters: ["clusters/*.yaml"], templates: {kubernetes: templates/kubernetes}}
END
done
show < <(grep . "$dir/one/holdfast.yaml")
for name in one two three; do start_replica $name; done
start balancer-api "$tools/balancer" "127.0.0.1:${ports[api]}" "127.0.0.1:${ports[one-api]}" "127.0.0.1:${ports[two-api]}" "127.0.0.1:${ports[three-api]}"
start balancer-agents "$tools/balancer" "127.0.0.1:${ports[agents]}" "127.0.0.1:${ports[one-agents]}" "127.0.0.1:${ports[two-agents]}" "127.0.0.1:${ports[three-agents]}"
for name in one two three; do wait_for 60 "replica $name" ready $name; done
start_agent plan plan,drift 60600
start_agent apply apply,destroy 60900
export HOLDFAST_SERVER=http://127.0.0.1:${ports[api]}
HOLDFAST_TOKEN=$(cat "$dir/secrets/admin")
export HOLDFAST_TOKEN
say "Commands and agents reach the replicas through a load balancer: each connection goes to another one."
run "$holdfast" get replicas
for c in dev-eu prod-eu prod-us; do wait_for 60 "the first plan of $c" cluster_is $c Unreviewed; done
run "$holdfast" apply dev-eu prod-eu
for c in dev-eu prod-eu; do wait_for 60 "the apply of $c" cluster_is $c UpToDate; done
run "$holdfast" apply prod-us
wait_for 60 "the apply of prod-us" cluster_is prod-us UpToDate
run "$holdfast" get clusters
ok "three clusters, planned and applied by whoever was asked"

leader() { "$holdfast" get replicas | awk '/fleet/ { print $1 }'; }
chapter "kill -9 of a replica in the middle of an apply"
propose kill-a-replica
merge_and_wait kill-a-replica
say "dev-eu gets a node, which takes five seconds. Two of the three replicas die:"
die one
die two
is_done
ok "the third one took over: applied once, and reported"
start_replica one
start_replica two
for name in one two; do wait_for 60 "replica $name" ready $name; done

chapter "PostgreSQL is killed in the middle of an apply"
propose kill-postgresql
merge_and_wait kill-postgresql
postgres_do pg_ctl stop -m immediate -s
say "It is down for three seconds. The agent keeps its logs, states and results."
sleep 3
start_postgres || fail "PostgreSQL did not start again"
is_done
ok "nothing was lost"

chapter "Redis is killed in the middle of an apply, and has forgotten everything"
propose kill-redis
merge_and_wait kill-redis
die redis
sleep 3
start_redis
is_done
ok "an apply that has begun continues without it, and no other one starts"

chapter "The object store is killed in the middle of an apply"
propose kill-the-object-store
merge_and_wait kill-the-object-store
die objects
sleep 6
start_objects
is_done
ok "states and plans waited on the agent's disk"

chapter "A rolling restart, while a pull request is planned and applied"
propose rolling-restart
merge rolling-restart
for name in one two three; do
  kill "${pids[$name]}"
  wait "${pids[$name]}" 2>/dev/null || true
  start_replica $name
  wait_for 60 "replica $name" ready $name
done
is_done
run "$holdfast" get replicas
ok "each replica handed over what it led"

chapter "The account"
wait_for 30 "$((number + 1)) applies of dev-eu" applied_once dev-eu $((number + 1))
run "$holdfast" get runs --cluster dev-eu
ok "$number pull requests, $((number + 1)) applies of dev-eu with the first one, none of them twice"

printf '\n%sThat was the whole demo.%s\n' "$bold" "$off"
if ! $stay; then exit 0; fi
cat <<END

Everything is still running. In another terminal:

  export HOLDFAST_SERVER=$HOLDFAST_SERVER HOLDFAST_TOKEN=$HOLDFAST_TOKEN
  $holdfast get replicas
  cd $fleet && git checkout -b mine && edit clusters/*.yaml && git commit -am "Mine"
  kill -9 ${pids[one]}    # a replica; its log is $dir/one.log

Press Ctrl-C to stop it and remove $dir.
END
wait "${pids[balancer-api]}"
