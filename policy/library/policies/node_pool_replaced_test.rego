package holdfast.node_pool_replaced_test

import data.holdfast.helpers_test as h
import data.holdfast.lib
import data.holdfast.node_pool_replaced

test_gone_first if {
	every type in lib.node_pools {
		count(node_pool_replaced.deny) == 1 with input as h.plan([h.change(type, ["delete", "create"], {}, {})])
	}
}

test_surge if {
	every actions in [["create", "delete"], ["create"], ["update"], ["delete"]] {
		count(node_pool_replaced.deny) == 0 with input as h.plan([h.change("aws_eks_node_group", actions, {}, {})])
	}
}
