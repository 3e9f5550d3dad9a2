# METADATA
# title: A pool of nodes is not replaced before another one takes over
# description: >-
#   A pool that is destroyed before the new one is there leaves its pods without nodes. With
#   `create_before_destroy`, or a pool of another name first, they move.
# custom:
#   id: node-pool-replaced
package holdfast.node_pool_replaced

import data.holdfast.lib

deny contains {"msg": msg, "address": rc.address} if {
	some rc in lib.changes(lib.node_pools)
	rc.change.actions == ["delete", "create"]
	msg := sprintf("the pool %s is destroyed before the new one is there: its pods have no nodes meanwhile", [rc.address])
}
