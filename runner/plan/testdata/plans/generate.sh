#!/bin/sh
# generate.sh makes the plan documents of this folder with a real engine.
#
#   PROVIDERS=dir ./generate.sh
#
# PROVIDERS holds terraform-provider-local and terraform-provider-cloud, the one
# for tests; the scenarios that need them are left alone without it. Values that differ from run to run (ids, times) are
# fine: the tests do not look at them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
engine=${ENGINE:-terraform}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE="$tmp/cli.tfrc"
: >"$tmp/cli.tfrc"
if [ -n "${PROVIDERS:-}" ]; then
	platform=$(uname -s | tr 'A-Z' 'a-z')_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
	dir=$tmp/mirror/registry.terraform.io/hashicorp/local/2.5.3/$platform
	mkdir -p "$dir"
	cp "$PROVIDERS/terraform-provider-local" "$dir/terraform-provider-local_v2.5.3"
	dir=$tmp/mirror/registry.terraform.io/holdfast-dev/cloud/1.0.0/$platform
	mkdir -p "$dir"
	cp "$PROVIDERS/terraform-provider-cloud" "$dir/terraform-provider-cloud_v1.0.0"
	printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$tmp/mirror" >"$tmp/cli.tfrc"
fi

# scenario NAME [SETUP]: applies src/NAME.before.tf, lets SETUP change objects,
# and plans src/NAME.after.tf.
scenario() {
	name=$1
	work=$tmp/$name
	mkdir "$work"
	cd "$work"
	mkdir world
	if [ -f "$here/src/$name.before.tf" ]; then
		cp "$here/src/$name.before.tf" main.tf
		$engine init -input=false -no-color >/dev/null
		$engine apply -input=false -no-color -auto-approve >/dev/null
	fi
	eval "${2:-}"
	cp "$here/src/$name.after.tf" main.tf
	$engine init -input=false -no-color >/dev/null
	$engine plan -input=false -no-color -out=plan >"$here/$name.txt"
	$engine show -json plan >"$here/$name.json"
	cd "$here"
}

# "answered" was made by hand: with the provider Mastercard/restapi 1.20.0 and the
# fake server that comes with it, whose object "pool" was changed and whose object
# "gone" was deleted.
scenario create
scenario update
scenario replace
scenario delete
scenario move
scenario sensitive
scenario nochange
scenario warning
scenario tainted "$engine taint terraform_data.node >/dev/null"
if [ -n "${PROVIDERS:-}" ]; then
	scenario drift "echo changed >file.txt"
	scenario changed "sed -i 's/\"size\": 3/\"size\": 7/; s/ready/degraded/; s/payments/eve/' world/cloud_cluster.main.json; rm world/cloud_node_pool.*.json"
	scenario import
	scenario forget
fi
