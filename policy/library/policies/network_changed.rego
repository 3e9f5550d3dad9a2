# METADATA
# title: Networks and their address ranges do not change
# description: >-
#   Resources in a network or subnet lose their connection when it is destroyed, replaced or gets another address
#   range. The policy does not apply to new networks and subnets, and to those of a cluster whose document was
#   removed.
# custom:
#   id: network-changed
package holdfast.network_changed

import data.holdfast.lib

# attributes with ranges, by the type of resource.
ranges := {
	"aws_vpc": ["cidr_block"],
	"aws_subnet": ["cidr_block"],
	"azurerm_virtual_network": ["address_space"],
	"azurerm_subnet": ["address_prefixes"],
	"digitalocean_vpc": ["ip_range"],
	"google_compute_network": [],
	"google_compute_subnetwork": ["ip_cidr_range", "secondary_ip_range"],
	"linode_vpc": [],
	"linode_vpc_subnet": ["ipv4"],
}

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some rc in lib.changes(object.keys(ranges))
	lib.destroyed(rc)
	msg := sprintf("%s is %s: everything in it is cut off", [rc.address, word(rc)])
}

deny contains {"msg": msg, "address": rc.address} if {
	some type, attributes in ranges
	some rc in lib.changes({type})
	lib.kept(rc)
	some attribute in attributes
	moved(rc, attribute)
	msg := sprintf("the address range of %s changes (%s)", [rc.address, attribute])
}

moved(rc, attribute) if {
	not lib.unknown(rc, [attribute])
	lib.before(rc, [attribute]) != lib.after(rc, [attribute])
}

moved(rc, attribute) if {
	lib.unknown(rc, [attribute])
	some path in rc.change.replace_paths
	path[0] == attribute
}

word(rc) := "replaced" if lib.created(rc)

word(rc) := "destroyed" if not lib.created(rc)
