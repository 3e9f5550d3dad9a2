package holdfast.control_plane_replaced_test

import data.holdfast.control_plane_replaced
import data.holdfast.helpers_test as h
import data.holdfast.lib

test_replaced if {
	every type in lib.control_planes {
		found := control_plane_replaced.deny with input as h.plan([h.change(type, ["delete", "create"], {"name": "a"}, {"name": "b"})])
		count(found) == 1
		some result in found
		result.address == sprintf("%s.this", [type])
		contains(result.msg, "is replaced")
	}
}

test_destroyed if {
	found := control_plane_replaced.deny with input as h.plan([h.change("aws_eks_cluster", ["delete"], {"name": "a"}, null)])
	some result in found
	contains(result.msg, "is destroyed")
}

test_created_or_changed if {
	count(control_plane_replaced.deny) == 0 with input as h.plan([h.change("aws_eks_cluster", ["create"], null, {"name": "a"})])
	count(control_plane_replaced.deny) == 0 with input as h.updated("aws_eks_cluster", {"name": "a"}, {"name": "b"})
}

test_document_removed if {
	count(control_plane_replaced.deny) == 0 with input as h.destruction([h.change("aws_eks_cluster", ["delete"], {"name": "a"}, null)])
}
