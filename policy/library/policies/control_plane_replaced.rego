# METADATA
# title: The control plane is not replaced or destroyed
# description: >-
#   A control plane that is destroyed takes everything with it that runs in its cluster, also where a new one
#   takes its place. The destruction of a whole cluster, whose document was removed, is not a matter of this
#   policy.
# custom:
#   id: control-plane-replaced
package holdfast.control_plane_replaced

import data.holdfast.lib

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some rc in lib.changes(lib.control_planes)
	lib.destroyed(rc)
	msg := sprintf("the control plane %s is %s", [rc.address, word(rc)])
}

word(rc) := "replaced: everything in the cluster is lost" if lib.created(rc)

word(rc) := "destroyed" if not lib.created(rc)
