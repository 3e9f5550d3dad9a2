# What the policies have in common: which resources of the five clouds are what.
package holdfast.lib

import rego.v1

control_planes := {
	"aws_eks_cluster",
	"azurerm_kubernetes_cluster",
	"digitalocean_kubernetes_cluster",
	"google_container_cluster",
	"linode_lke_cluster",
}

node_pools := {
	"aws_eks_node_group",
	"azurerm_kubernetes_cluster_node_pool",
	"digitalocean_kubernetes_node_pool",
	"google_container_node_pool",
	"linode_lke_node_pool",
}

# changes are the changes of managed resources that have one of some types.
changes(types) := [rc |
	some type in types
	some rc in input.holdfast.by_type[type]
	rc.mode == "managed"
]

destroyed(rc) if "delete" in rc.change.actions

created(rc) if "create" in rc.change.actions

replaced(rc) if {
	destroyed(rc)
	created(rc)
}

# kept are resources that are there before and after, as the same object or as another one.
kept(rc) if {
	rc.change.before != null
	rc.change.after != null
}

# before and after are an attribute, by a path of names and indexes; null if it is not there.
before(rc, path) := object.get(rc.change.before, path, null)

after(rc, path) := object.get(rc.change.after, path, null)

# unknown: nobody knows the attribute, or all that it is in, before the apply.
unknown(rc, path) if {
	is_object(rc.change.after_unknown)
	some length in numbers.range(1, count(path))
	object.get(rc.change.after_unknown, array.slice(path, 0, length), false) == true
}

# set says whether a value says something: it is neither null nor empty nor false.
set(value) if not value in {null, false, "", "false"}

list(value) := value if is_array(value)

list(value) := [] if not is_array(value)

# destroying: the plan is of the destruction of its cluster.
destroying if input.holdfast.run.destroys
