# METADATA
# title: A node pool is not replaced before another one takes over
# description: >-
#   If a pool is destroyed before the new one exists, its pods have no nodes. Use `create_before_destroy`, or first
#   add a pool with another name, so that they can move.
# custom:
#   id: node-pool-replaced
package holdfast.node_pool_replaced

import data.holdfast.lib

deny contains {"msg": msg, "address": rc.address} if {
	some rc in lib.changes(lib.node_pools)
	rc.change.actions == ["delete", "create"]
	msg := sprintf("the pool %s is destroyed before the new one exists: its pods have no nodes in the meantime", [rc.address])
}
