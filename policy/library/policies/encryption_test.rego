package holdfast.encryption_test

import data.holdfast.encryption
import data.holdfast.helpers_test as h

pool(value) := {"node_config": [{"boot_disk_kms_key": value}]}

test_switched_off if {
	count(encryption.deny) == 1 with input as h.updated("aws_ebs_volume", {"encrypted": true}, {"encrypted": false})
	count(encryption.deny) == 1 with input as h.updated("google_container_node_pool", pool("projects/x/key"), pool(""))
	count(encryption.deny) == 1 with input as h.updated("google_container_node_pool", pool("projects/x/key"), {"node_config": []})
	count(encryption.deny) == 1 with input as h.updated("linode_instance", {"disk_encryption": "enabled"}, {"disk_encryption": "disabled"})
	count(encryption.deny) == 1 with input as h.updated(
		"aws_launch_template",
		{"block_device_mappings": [{"ebs": [{"encrypted": "true"}]}]},
		{"block_device_mappings": [{"ebs": [{"encrypted": "false"}]}]},
	)
}

test_named if {
	found := encryption.deny with input as h.updated("google_container_node_pool", pool("key"), pool(null))
	found == {{"address": "google_container_node_pool.this", "msg": "google_container_node_pool.this is no longer encrypted as before (node_config.0.boot_disk_kms_key)"}}
}

test_another_key if {
	count(encryption.deny) == 0 with input as h.updated("google_container_node_pool", pool("projects/x/key"), pool("projects/x/other"))
}

test_was_off if {
	count(encryption.deny) == 0 with input as h.updated("aws_ebs_volume", {"encrypted": false}, {"encrypted": false})
	count(encryption.deny) == 0 with input as h.updated("linode_instance", {"disk_encryption": "disabled"}, {"disk_encryption": null})
}

test_unknown_key if {
	change := object.union(h.change("google_container_node_pool", ["update"], pool("key"), {"node_config": [{}]}), {"change": {"after_unknown": {"node_config": [{"boot_disk_kms_key": true}]}}})
	count(encryption.deny) == 0 with input as h.plan([change])
}

test_unknown_block if {
	change := object.union(h.change("google_container_node_pool", ["update"], pool("key"), {}), {"change": {"after_unknown": {"node_config": true}}})
	count(encryption.deny) == 0 with input as h.plan([change])
}
