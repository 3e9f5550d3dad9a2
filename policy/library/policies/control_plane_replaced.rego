# METADATA
# title: The control plane is not replaced or destroyed
# description: >-
#   Everything that runs in a cluster is lost when its control plane is destroyed, even if a new one replaces it.
#   The policy does not apply when the whole cluster is destroyed because its document was removed.
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
