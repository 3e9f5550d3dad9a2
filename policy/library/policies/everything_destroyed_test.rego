package holdfast.everything_destroyed_test

import data.holdfast.everything_destroyed
import data.holdfast.helpers_test as h

gone := [h.change("aws_vpc", ["delete"], {}, null), h.change("aws_eks_cluster", ["delete"], {}, null)]

test_all if {
	found := everything_destroyed.deny with input as h.plan(gone)
	found == {"all 2 resources of the cluster are destroyed, although its document is still there"}
}

test_some_stay if {
	every actions in [["no-op"], ["update"], ["create"], ["delete", "create"]] {
		count(everything_destroyed.deny) == 0 with input as h.plan(array.concat(gone, [h.change("aws_subnet", actions, {}, {})]))
	}
	count(everything_destroyed.deny) == 0 with input as h.plan([])
}

test_document_removed if {
	count(everything_destroyed.deny) == 0 with input as h.destruction(gone)
	found := everything_destroyed.warn_removed with input as h.destruction(gone)
	found == {"the cluster is destroyed, with 2 resources"}
	count(everything_destroyed.warn_removed) == 0 with input as h.plan(gone)
}
