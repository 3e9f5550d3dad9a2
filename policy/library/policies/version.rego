# The version of Kubernetes moves by one minor version at a time, and never back.
package holdfast.version

import data.holdfast.lib

attributes := {
	"aws_eks_cluster": "version",
	"aws_eks_node_group": "version",
	"azurerm_kubernetes_cluster": "kubernetes_version",
	"azurerm_kubernetes_cluster_node_pool": "orchestrator_version",
	"digitalocean_kubernetes_cluster": "version",
	"google_container_cluster": "min_master_version",
	"google_container_node_pool": "version",
	"linode_lke_cluster": "k8s_version",
}

moves contains {"address": rc.address, "from": from, "to": to, "minor": minors(to) - minors(from), "major": major(to) - major(from)} if {
	some type, attribute in attributes
	some rc in lib.changes({type})
	lib.kept(rc)
	from := lib.before(rc, [attribute])
	to := lib.after(rc, [attribute])
	is_version(from)
	is_version(to)
}

is_version(text) if {
	is_string(text)
	regex.match(`^v?[0-9]+\.[0-9]+`, text)
}

numbers_of(text) := regex.find_n(`[0-9]+`, text, 2)

major(text) := to_number(numbers_of(text)[0])

minors(text) := to_number(numbers_of(text)[1])

# METADATA
# title: No minor version of Kubernetes is skipped
# description: >-
#   Clouds and Kubernetes support upgrades to the next minor version only: an API that was deprecated in a skipped
#   version is removed without a warning.
# custom:
#   id: version-skipped
deny_skipped contains {"msg": msg, "address": move.address} if {
	some move in moves
	skips(move)
	msg := sprintf("Kubernetes moves from %s to %s: go through each minor version between them", [move.from, move.to])
}

skips(move) if move.major > 0

skips(move) if {
	move.major == 0
	move.minor > 1
}

# METADATA
# title: Kubernetes is not downgraded
# description: >-
#   No cloud supports a downgrade: it fails, or the control plane is replaced.
# custom:
#   id: version-downgraded
deny_downgraded contains {"msg": msg, "address": move.address} if {
	some move in moves
	goes_back(move)
	msg := sprintf("Kubernetes goes back from %s to %s, which no cloud supports", [move.from, move.to])
}

goes_back(move) if move.major < 0

goes_back(move) if {
	move.major == 0
	move.minor < 0
}
