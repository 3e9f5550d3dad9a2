# METADATA
# title: The endpoint of a cluster is not opened to everybody
# description: >-
#   Denies a change that makes the API server reachable for everybody. A new cluster may have an open endpoint,
#   because its document is reviewed.
# custom:
#   id: public-endpoint-opened
package holdfast.public_endpoint

import data.holdfast.lib

everybody := {"0.0.0.0/0", "::/0", "*"}

deny contains {"msg": msg, "address": rc.address} if {
	some rc in lib.changes(lib.control_planes)
	lib.kept(rc)
	open(rc, "after")
	not open(rc, "before")
	msg := sprintf("the endpoint of %s becomes reachable for everybody", [rc.address])
}

open(rc, side) if {
	rc.type == "aws_eks_cluster"
	cluster := rc.change[side]
	config := cluster.vpc_config[0]
	config.endpoint_public_access == true
	anybody(object.get(config, "public_access_cidrs", null))
}

open(rc, side) if {
	rc.type == "azurerm_kubernetes_cluster"
	cluster := rc.change[side]
	object.get(cluster, "private_cluster_enabled", false) != true
	anybody(object.get(cluster, ["api_server_access_profile", 0, "authorized_ip_ranges"], null))
}

open(rc, side) if {
	rc.type == "google_container_cluster"
	cluster := rc.change[side]
	object.get(cluster, ["private_cluster_config", 0, "enable_private_endpoint"], false) != true
	blocks := object.get(cluster, ["master_authorized_networks_config", 0, "cidr_blocks"], null)
	blocks == null
}

open(rc, side) if {
	rc.type == "google_container_cluster"
	cluster := rc.change[side]
	object.get(cluster, ["private_cluster_config", 0, "enable_private_endpoint"], false) != true
	some block in lib.list(object.get(cluster, ["master_authorized_networks_config", 0, "cidr_blocks"], null))
	block.cidr_block in everybody
}

open(rc, side) if {
	rc.type == "linode_lke_cluster"
	cluster := rc.change[side]
	object.get(cluster, ["control_plane", 0, "acl", 0, "enabled"], false) != true
}

open(rc, side) if {
	rc.type == "linode_lke_cluster"
	cluster := rc.change[side]
	object.get(cluster, ["control_plane", 0, "acl", 0, "enabled"], false) == true
	some family in ["ipv4", "ipv6"]
	some addresses in lib.list(object.get(cluster, ["control_plane", 0, "acl", 0, "addresses"], null))
	some range in lib.list(object.get(addresses, family, null))
	range in everybody
}

open(rc, side) if {
	rc.type == "digitalocean_kubernetes_cluster"
	cluster := rc.change[side]
	object.get(cluster, ["control_plane_firewall", 0, "enabled"], false) != true
}

open(rc, side) if {
	rc.type == "digitalocean_kubernetes_cluster"
	cluster := rc.change[side]
	some range in lib.list(object.get(cluster, ["control_plane_firewall", 0, "allowed_addresses"], null))
	range in everybody
}

# anybody: without a list of ranges, these clouds let everybody in.
anybody(ranges) if count(lib.list(ranges)) == 0

anybody(ranges) if {
	some range in lib.list(ranges)
	range in everybody
}
