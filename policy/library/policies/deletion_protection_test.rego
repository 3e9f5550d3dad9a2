package holdfast.deletion_protection_test

import data.holdfast.deletion_protection
import data.holdfast.helpers_test as h

test_removed if {
	every attribute in deletion_protection.attributes {
		count(deletion_protection.deny) == 1 with input as h.updated("some_database", {attribute: true}, {attribute: false})
		count(deletion_protection.deny) == 0 with input as h.updated("some_database", {attribute: false}, {attribute: true})
	}
}

test_lock if {
	count(deletion_protection.deny) == 1 with input as h.plan([h.change("azurerm_management_lock", ["delete"], {"name": "a"}, null)])
}

test_stays if {
	count(deletion_protection.deny) == 0 with input as h.updated("some_database", {"deletion_protection": true}, {"deletion_protection": true})
	count(deletion_protection.deny) == 0 with input as h.destruction([h.change("azurerm_management_lock", ["delete"], {"name": "a"}, null)])
}
