package holdfast.version_test

import data.holdfast.helpers_test as h
import data.holdfast.version

test_skipped if {
	every type, attribute in version.attributes {
		count(version.deny_skipped) == 1 with input as h.updated(type, {attribute: "1.31"}, {attribute: "1.33"})
		count(version.deny_downgraded) == 0 with input as h.updated(type, {attribute: "1.31"}, {attribute: "1.33"})
	}
}

test_back if {
	every type, attribute in version.attributes {
		count(version.deny_downgraded) == 1 with input as h.updated(type, {attribute: "1.31.4-do.0"}, {attribute: "1.30.9-do.1"})
		count(version.deny_skipped) == 0 with input as h.updated(type, {attribute: "1.31"}, {attribute: "1.30"})
	}
}

test_major if {
	count(version.deny_skipped) == 1 with input as h.updated("aws_eks_cluster", {"version": "1.40"}, {"version": "2.0"})
	count(version.deny_downgraded) == 1 with input as h.updated("aws_eks_cluster", {"version": "2.0"}, {"version": "1.40"})
}

test_next_version if {
	every to in ["1.31", "1.32", "1.31.9", null, "latest"] {
		count(version.deny_skipped | version.deny_downgraded) == 0 with input as h.updated("aws_eks_cluster", {"version": "1.31"}, {"version": to})
	}
}

test_new_cluster if {
	count(version.deny_skipped | version.deny_downgraded) == 0 with input as h.plan([h.change("aws_eks_cluster", ["create"], null, {"version": "1.33"})])
}
