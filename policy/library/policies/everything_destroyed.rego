# A plan that leaves nothing.
package holdfast.everything_destroyed

import data.holdfast.lib

lost := [rc.address |
	some changes in input.holdfast.by_type
	some rc in changes
	rc.mode == "managed"
	lib.destroyed(rc)
	not lib.created(rc)
]

stays if {
	some changes in input.holdfast.by_type
	some rc in changes
	rc.mode == "managed"
	not lib.destroyed(rc)
	rc.change.actions != ["forget"]
}

stays if {
	some changes in input.holdfast.by_type
	some rc in changes
	lib.replaced(rc)
}

# METADATA
# title: A change does not destroy all of a cluster
# description: >-
#   Denies a plan that destroys everything although the cluster's document still exists, for example because a
#   template or a module is empty now, or a condition is false.
# custom:
#   id: everything-destroyed
deny contains msg if {
	not lib.destroying
	count(lost) > 0
	not stays
	msg := sprintf("all %d resources of the cluster are destroyed, although its document is still there", [count(lost)])
}

# METADATA
# title: A cluster is destroyed
# description: >-
#   Warns of the destruction of a cluster whose document was removed, with the number of its resources.
# custom:
#   id: cluster-destroyed
warn_removed contains msg if {
	lib.destroying
	count(lost) > 0
	msg := sprintf("the cluster is destroyed, with %d resources", [count(lost)])
}
