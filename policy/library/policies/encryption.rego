# METADATA
# title: Encryption is not disabled
# description: >-
#   Denies a change after which disks, databases or secrets of a cluster are no longer encrypted, or no longer
#   encrypted with your own key.
# custom:
#   id: encryption-disabled
package holdfast.encryption

import data.holdfast.lib

# switches are attributes that say whether, or by which key, something is encrypted.
switches := {
	"aws_db_instance": [["storage_encrypted"]],
	"aws_ebs_volume": [["encrypted"]],
	"aws_efs_file_system": [["encrypted"]],
	"aws_eks_cluster": [["encryption_config", 0, "provider", 0, "key_arn"]],
	"aws_launch_template": [["block_device_mappings", 0, "ebs", 0, "encrypted"]],
	"aws_rds_cluster": [["storage_encrypted"]],
	"azurerm_kubernetes_cluster": [
		["disk_encryption_set_id"],
		["key_management_service", 0, "key_vault_key_id"],
		["default_node_pool", 0, "host_encryption_enabled"],
	],
	"azurerm_kubernetes_cluster_node_pool": [["host_encryption_enabled"]],
	"google_container_cluster": [["database_encryption", 0, "key_name"]],
	"google_container_node_pool": [["node_config", 0, "boot_disk_kms_key"]],
	"linode_instance": [["disk_encryption"]],
	"linode_volume": [["encryption"]],
}

off := {"disabled", "DECRYPTED"}

deny contains {"msg": msg, "address": rc.address} if {
	some type, paths in switches
	some rc in lib.changes({type})
	lib.kept(rc)
	some path in paths
	on(lib.before(rc, path))
	not lib.unknown(rc, path)
	not on(lib.after(rc, path))
	msg := sprintf("%s is no longer encrypted as before (%s)", [rc.address, concat(".", [sprintf("%v", [part]) | some part in path])])
}

on(value) if {
	lib.set(value)
	not value in off
}
