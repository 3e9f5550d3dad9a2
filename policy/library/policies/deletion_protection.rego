# METADATA
# title: Protection against deletion is not removed
# description: >-
#   Before a resource with deletion protection can be deleted, another change must remove the protection. People
#   should recognize that change as the first half of a deletion.
# custom:
#   id: deletion-protection-removed
package holdfast.deletion_protection

import data.holdfast.lib

attributes := [
	"deletion_protection", "deletion_protection_enabled", "enable_deletion_protection", "termination_protection",
	"disable_api_termination",
]

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some changes in input.holdfast.by_type
	some rc in changes
	rc.mode == "managed"
	lib.kept(rc)
	some attribute in attributes
	lib.before(rc, [attribute]) == true
	not lib.unknown(rc, [attribute])
	lib.after(rc, [attribute]) != true
	msg := sprintf("%s is no longer protected against deletion (%s)", [rc.address, attribute])
}

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some rc in lib.changes({"azurerm_management_lock"})
	lib.destroyed(rc)
	msg := sprintf("the lock %s is removed: what it protects can be deleted", [rc.address])
}
