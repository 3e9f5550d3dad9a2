#!/usr/bin/env bash
# The whole story of Holdfast on this machine: real Git, a real engine, no cloud.
#
#   run.sh HOLDFAST [--exit]
#
# lays out a repository with a template and three clusters, starts a server, and
# walks through pull requests, merges, a crash, drift, a removal and an upgrade of
# the template. Each step is checked: the first one that does not happen as described
# ends the demo with status 1. With --exit it ends after the story, otherwise the
# server keeps running for you to try things. However it ends, its processes and its
# folder are removed.
set -euo pipefail

holdfast=${1:?usage: run.sh HOLDFAST [--exit]}
holdfast=$(cd "$(dirname "$holdfast")" && pwd)/$(basename "$holdfast") # not every macOS has realpath
stay=true
[[ ${2:-} == --exit ]] && stay=false
here=$(cd "$(dirname "$0")" && pwd)

. "$here/../story.sh"

fail() {
  printf '\n%s  ✗ %s%s\n' "$red" "$*" "$off" >&2
  echo "The end of the server's log ($dir/server.log):" >&2
  tail -n 15 "$dir/server.log" 2>/dev/null | cut -c1-220 >&2 || true
  exit 1
}

need git "Install it, for example with: apt-get install git"
need curl "Install it, for example with: apt-get install curl"
command -v terraform >/dev/null || command -v tofu >/dev/null ||
  echo "Neither terraform nor tofu is installed: OpenTofu will be downloaded when it is first needed."

# The agent runs as another user if this is root, and must be able to get here.
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-demo.XXXXXX")
chmod 755 "$dir"
server=$holdfast
if ((EUID == 0)); then
  server=$dir/holdfast # the binary may be below a home that only root can enter
  install -m 0755 "$holdfast" "$server"
fi
fleet=$dir/fleet
pid=

stop_all() {
  local agent
  agent=$(cat "$dir"/data/agent*/agent.lock 2>/dev/null || true)
  [[ -n $pid ]] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  [[ -n $agent ]] && kill $agent 2>/dev/null
  chmod -R u+w "$dir" 2>/dev/null # prepared providers are read-only
  rm -rf "$dir"
}
trap 'stop_all || true' EXIT
trap 'exit 130' INT TERM HUP

free_port() { # asks the kernel by letting the server take any, see below
  sed -n "s/.* $1=127.0.0.1:\([0-9]*\).*/\1/p" "$dir/server.log" | tail -n 1
}

start_server() {
  touch "$dir/server.log"
  "$server" serve --config "$dir/holdfast.yaml" >>"$dir/server.log" 2>&1 &
  pid=$!
  for _ in $(seq 100); do
    api=$(free_port api)
    if [[ -n $api ]] && curl -fs -o /dev/null "http://127.0.0.1:$api/readyz"; then
      export HOLDFAST_SERVER=http://127.0.0.1:$api
      HOLDFAST_TOKEN=$(cat "$dir/data/admin.token")
      export HOLDFAST_TOKEN
      return
    fi
    kill -0 "$pid" 2>/dev/null || fail "the server did not start"
    sleep 0.1
  done
  fail "the server did not become ready"
}

has_drift() { "$holdfast" get drift "$1" | grep -q "$1"; }
is_gone() { "$holdfast" get clusters --all | awk -v n="$1" '$1 == n && /Deleted/ { found = 1 } END { exit !found }'; }
is_applied() { "$holdfast" get templates kubernetes | awk -v n="$1" -v v="$2" '$1 == n && $3 == v { found = 1 } END { exit !found }'; }

say "${bold}Holdfast${off} keeps a fleet of clusters as Git defines them. This demo plays on $dir, with" \
  "$("$holdfast" version | head -n 1)."

chapter "A repository with a template and three clusters"
mkdir "$fleet"
cp -r "$here/clusters" "$here/templates" "$fleet/"
mkdir -p "$dir/cloud"
echo node-1 >"$dir/cloud/images" # what prod-eu reads from elsewhere, see chapter 8
sed -i.bak "s|^  variables:|&\\
    image_list: $dir/cloud/images|" "$fleet/clusters/prod-eu.yaml" && rm "$fleet/clusters/prod-eu.yaml.bak"
in_fleet init -q -b main .
in_fleet config user.name You
in_fleet config user.email you@example.com
in_fleet add -A
commit "A fleet of three"
# A server that is not root plans and applies as one user: Landlock alone does not keep these apart.
isolation=
mode=$("$server" agent probe 2>/dev/null) || mode=none
if [[ $mode == none || $mode == landlock && $EUID != 0 ]]; then
  say "Nothing that this user may use isolates applies (a container without user namespaces?). The demo runs its own" \
    "code only, and so without a sandbox. docs/security.md says what a server needs."
  isolation="isolation: none"
fi
cat >"$dir/holdfast.yaml" <<EOF
dataDir: data
server:
  public: {address: "127.0.0.1:0"}
  api: {address: "127.0.0.1:0"}
runs: {lease: 6s}
$isolation
sandbox: {paths: {readOnly: ["$dir/cloud"]}}   # what the engine may see of this machine, see chapter 8
repositories:
  - name: fleet
    url: fleet            # a plain Git repository: its branches are the pull requests
    clusters: ["clusters/*.yaml"]
    templates: {kubernetes: templates/kubernetes}   # released by tags, see chapter 10
EOF
show < <(grep . "$dir/holdfast.yaml")
start_server
say "The server is up. Nobody has reviewed these clusters yet, so it plans them and waits for approval:"
for c in dev-eu prod-eu prod-us; do wait_for 30 "the first plan of $c" cluster_is $c Unreviewed; done
run "$holdfast" get clusters
ok "three plans, nothing applied"
say "A person approves, and they are created. prod-us has \`dependsOn: [prod-eu]\`, so it comes after that:"
run "$holdfast" apply dev-eu prod-eu
for c in dev-eu prod-eu; do wait_for 30 "the apply of $c" cluster_is $c UpToDate; done
run "$holdfast" apply prod-us
wait_for 30 "the apply of prod-us" cluster_is prod-us UpToDate
ok "three clusters are up to date"

chapter "The console: the same fleet in a browser"
say "The server shows it at the address of its API. A one-time login saves typing the token; open it if you like:"
run "$holdfast" console
console=$("$holdfast" console | head -n 1)
# curl sends no cookie for HTTPS over HTTP; browsers accept that on loopback.
cookie=$(curl -fs -o /dev/null -D - --max-time 10 -d "code=${console#*code=}" "${console%%\?*}" | tr -d '\r' | sed -n 's/^[Ss]et-[Cc]ookie: \([^;]*\);.*/\1/p' | tail -n 1)
page() { curl -fs --max-time 10 -H "Cookie: $cookie" -H "Accept: text/html" "$@"; }
page "$HOLDFAST_SERVER/clusters/prod-eu" >"$dir/page.html"
grep -q 'Plan again' "$dir/page.html" || fail "the page of prod-eu offers nothing to do"
form=$(sed -n 's/.*name="csrf" value="\([^"]*\)".*/\1/p' "$dir/page.html" | head -n 1)
page -o /dev/null --data-urlencode "csrf=$form" -d "do=suspend&cluster=prod-eu&reason=demo&back=/clusters/prod-eu" "$HOLDFAST_SERVER/act"
"$holdfast" get suspensions | grep -q prod-eu || fail "the button suspended nothing"
page -o /dev/null --data-urlencode "csrf=$form" -d "do=resume&cluster=prod-eu&back=/clusters/prod-eu" "$HOLDFAST_SERVER/act"
ok "a button on the page of prod-eu has suspended it, another one has resumed it: by forms, without script"

chapter "A branch that edits a cluster: the plan comment and the status"
in_fleet checkout -q -b more-nodes
edit prod-eu.yaml 'node_count: 3' 'node_count: 5'
commit "prod-eu: five nodes"
wait_for 20 "the plan of pull request 1" shows 1 "2 to create"
comment 1 22
ok "holdfast/plan succeeded, and the comment shows what would be created"

chapter "The merge: what was reviewed is applied"
merge more-nodes
wait_for 20 "the apply of pull request 1" shows 1 "holdfast/apply"
wait_for 20 "the apply of pull request 1" cluster_is prod-eu UpToDate
wait_for 20 "the result of pull request 1" shows 1 "2 created"
comment 1 8
ok "the same comment shows the result, and the merge commit has its status"

chapter "A merge that is not what was reviewed: held, then applied by command"
in_fleet checkout -q -b bigger-machines
edit prod-us.yaml 'instance_type: medium' 'instance_type: large'
commit "prod-us: larger machines"
wait_for 20 "the plan of pull request 2" shows 2 "replace"
say "The plan that people reviewed replaces three machines. The merge adds another change:"
in_fleet checkout -q main
in_fleet merge -q --no-ff --no-commit bigger-machines >/dev/null 2>&1
edit prod-us.yaml 'node_count: 3' 'node_count: 2'
commit "Merge bigger-machines (and one more thing)"
wait_for 20 "the held apply of prod-us" cluster_is prod-us PlanChanged
run "$holdfast" get clusters
comment 2 14
ok "the apply is held: PlanChanged"
say "Someone reviews the new plan and applies exactly that one:"
run "$holdfast" apply prod-us
wait_for 20 "the apply of prod-us" cluster_is prod-us UpToDate
ok "applied by command"

chapter "A broken cluster file: an error at its line, and nothing else stops"
in_fleet checkout -q -b typo
edit dev-eu.yaml 'node_count: 1' 'node_cuont: many'
commit "dev-eu: oops"
wait_for 20 "the faults of pull request 3" shows 3 "node_cuont"
comment 3 16
ok "the comment names file, line and column, and holdfast/plan fails"
in_fleet checkout -q main
in_fleet branch -q -D typo

chapter "kill -9 of the server in the middle of an apply"
in_fleet checkout -q -b slow-node
edit dev-eu.yaml 'node_count: 1' "node_count: 2$newline    boot_seconds: 6"
commit "dev-eu: a second node, which takes six seconds"
wait_for 20 "the plan of pull request 4" shows 4 "holdfast/plan  success"
merge slow-node
wait_for 20 "the start of the apply" bash -c "'$holdfast' get runs | grep dev-eu | grep apply | grep -q running"
sleep 1.5
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
say "The server is gone. Its agent, with the engine, keeps running:"
pgrep -fl "terraform apply|tofu apply" 2>/dev/null | cut -c1-80 | show || true
sleep 2
start_server
wait_for 30 "the result of the apply" shows 4 "1 created"
wait_for 10 "the record of the apply" cluster_is dev-eu UpToDate
comment 4 8
ok "the new server received the result and reported it: applied once"
run "$holdfast" get runs

chapter "A change outside Holdfast: drift, its report, its end"
say "Git has not changed, but the infrastructure has. With a cloud, someone scales a node pool by hand, or a" \
  "new machine image is published. This demo has no cloud: a file stands for its list of images, which" \
  "prod-eu reads as it would read a data source."
printf '%s  $ echo node-2 >>cloud/images%s\n' "$dim" "$off"
echo node-2 >>"$dir/cloud/images"
say "A drift check plans what was last applied: whatever that plan would change has drifted. A schedule in the" \
  "document runs it automatically (\`drift: {schedule: \"0 */6 * * *\"}\`); here a person does:"
run "$holdfast" drift check prod-eu --wait
wait_for 20 "the drift of prod-eu" has_drift prod-eu
run "$holdfast" get drift
ok "found and reported: here, and on GitHub in one issue that is kept up to date and closed when the drift is gone"
say "Nothing has been changed yet. A person reads the report and applies it. (The same command reverts what" \
  "someone changed by hand.)"
run "$holdfast" apply prod-eu
drift_is_gone() { ! has_drift prod-eu; }
wait_for 20 "the end of the drift of prod-eu" drift_is_gone
run "$holdfast" describe drift prod-eu
ok "applied, and an automatic check confirms that the drift is gone"

chapter "A cluster is removed: its destroy plan, the merge, the end"
in_fleet checkout -q -b goodbye
in_fleet rm -q clusters/dev-eu.yaml
commit "dev-eu is no longer needed"
wait_for 20 "the plan of pull request 5" shows 5 "destroys dev-eu"
comment 5 13
ok "the comment shows what would be destroyed; nothing has been destroyed yet"
merge goodbye
wait_for 30 "the end of dev-eu" is_gone dev-eu
run "$holdfast" get clusters --all
ok "destroyed with the code and the engine that created it; its history is kept"
say "The documents of prod-eu and prod-us have \`deletion: {protected: true}\`: if they were removed, their" \
  "clusters would be kept and wait for a person."

chapter "A new version of the template: its impact, its release, the upgrade"
say "Until now the clusters used the template's folder. A tag makes a version of it, which never changes." \
  "Their documents name that version, and \`upgrades\` says which newer versions may be proposed:"
in_fleet tag kubernetes/v1.0.0
for c in prod-eu prod-us; do
  edit $c.yaml '{path: ..\/templates\/kubernetes}' '{name: kubernetes, version: 1.0.0, upgrades: "~> 1.0"}'
done
commit "Use kubernetes 1.0.0"
in_fleet diff -U0 HEAD~ -- clusters | grep '^[-+] ' | show
say "Nothing was planned for that: it is the same code. Someone prepares version 1.1.0, with a newer default" \
  "Kubernetes version for clusters that do not set one (prod-us does):"
in_fleet checkout -q -b newer-kubernetes
change templates/kubernetes/template.yaml 'version: 1.0.0' 'version: 1.1.0'
change templates/kubernetes/template.yaml 'default: "1.34"' 'default: "1.35"'
change templates/kubernetes/CHANGELOG.md '^## 1.0.0' "## 1.1.0$newline$newline- Kubernetes 1.35 by default.$newline$newline&"
commit "kubernetes 1.1.0"
wait_for 20 "the impact of pull request 6" shows 6 "updated in place"
comment 6 18
ok "before anybody merges it, the comment says which clusters it would change, and how"
say "The pull request is merged, and a tag releases version 1.1.0."
merge newer-kubernetes
in_fleet tag kubernetes/v1.1.0
wait_for 30 "the upgrade" shows 7 "1 to change"
say "The template is merged and released, and no cluster has changed yet. Holdfast proposes the upgrade as" \
  "pull request fleet#7, on a separate branch:"
run "$holdfast" get templates kubernetes
run git -C "$fleet" diff -U0 main holdfast/upgrade/kubernetes
comment 7 12
ok "only the version lines change, and it is planned like any pull request"
merge holdfast/upgrade/kubernetes
for c in prod-eu prod-us; do wait_for 20 "version 1.1.0 of $c" is_applied $c 1.1.0; done
run "$holdfast" get templates kubernetes
ok "reviewed, merged, applied"

printf '\n%sThat was the whole demo.%s\n' "$bold" "$off"
if ! $stay; then exit 0; fi
cat <<EOF

The server is still running. In a browser, signed in once until ten minutes from now:

  $("$holdfast" console | head -n 1)

In another terminal:

  export HOLDFAST_SERVER=$HOLDFAST_SERVER HOLDFAST_TOKEN=$HOLDFAST_TOKEN
  $holdfast get clusters
  cd $fleet && git checkout -b mine && edit clusters/*.yaml && git commit -am "Mine"
  $holdfast get pullrequests
  $holdfast describe cluster prod-eu             # its phase, conditions, order, history
  $holdfast describe pullrequest fleet#8
  $holdfast template diff 1.0.0 1.1.0 --repo $fleet
  git checkout main && git merge mine            # merging is a push here
  $holdfast get runs && $holdfast logs RUN

Press Ctrl-C to stop it and remove $dir.
EOF
wait "$pid"
