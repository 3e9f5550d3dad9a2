package holdfast.network_changed_test

import data.holdfast.helpers_test as h
import data.holdfast.network_changed

test_destroyed if {
	every type, _ in network_changed.ranges {
		every actions, word in {"delete": "is destroyed", "delete,create": "is replaced"} {
			found := network_changed.deny with input as h.plan([h.change(type, split(actions, ","), {"name": "a"}, null)])
			some result in found
			contains(result.msg, word)
		}
	}
}

test_ranges if {
	every type, attributes in network_changed.ranges {
		every attribute in attributes {
			count(network_changed.deny) == 1 with input as h.updated(type, {attribute: ["10.0.0.0/16"]}, {attribute: ["10.1.0.0/16"]})
		}
	}
}

test_unknown_range if {
	change := object.union(h.change("aws_subnet", ["create", "delete"], {"cidr_block": "10.0.0.0/24"}, {}), {"change": {
		"after_unknown": {"cidr_block": true},
		"replace_paths": [["cidr_block"]],
	}})
	found := network_changed.deny with input as h.plan([change])
	{result.msg | some result in found} == {"aws_subnet.this is replaced: everything in it is cut off", "the address range of aws_subnet.this changes (cidr_block)"}
}

test_other_attributes if {
	count(network_changed.deny) == 0 with input as h.updated("aws_vpc", {"cidr_block": "10.0.0.0/16", "tags": {}}, {"cidr_block": "10.0.0.0/16", "tags": {"a": "b"}})
	count(network_changed.deny) == 0 with input as h.plan([h.change("aws_vpc", ["create"], null, {"cidr_block": "10.0.0.0/16"})])
}

test_document_removed if {
	count(network_changed.deny) == 0 with input as h.destruction([h.change("aws_vpc", ["delete"], {"cidr_block": "10.0.0.0/16"}, null)])
}
