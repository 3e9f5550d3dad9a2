package holdfast.public_endpoint_test

import data.holdfast.helpers_test as h
import data.holdfast.public_endpoint

eks(public, cidrs) := {"vpc_config": [{"endpoint_public_access": public, "public_access_cidrs": cidrs}]}

gke(private, cidrs) := {
	"private_cluster_config": [{"enable_private_endpoint": private}],
	"master_authorized_networks_config": [{"cidr_blocks": [{"cidr_block": cidr} | some cidr in cidrs]}],
}

lke(enabled, cidrs) := {"control_plane": [{"acl": [{"enabled": enabled, "addresses": [{"ipv4": cidrs}]}]}]}

doks(enabled, cidrs) := {"control_plane_firewall": [{"enabled": enabled, "allowed_addresses": cidrs}]}

aks(private, cidrs) := {"private_cluster_enabled": private, "api_server_access_profile": [{"authorized_ip_ranges": cidrs}]}

office := ["203.0.113.0/24"]

all := ["0.0.0.0/0"]

opened := [
	["aws_eks_cluster", eks(false, null), eks(true, null)],
	["aws_eks_cluster", eks(false, []), eks(true, all)],
	["aws_eks_cluster", eks(true, office), eks(true, array.concat(office, all))],
	["azurerm_kubernetes_cluster", aks(true, []), aks(false, [])],
	["azurerm_kubernetes_cluster", aks(false, office), {"private_cluster_enabled": false, "api_server_access_profile": []}],
	["google_container_cluster", gke(true, office), gke(false, all)],
	["google_container_cluster", gke(false, office), {"private_cluster_config": [{"enable_private_endpoint": false}]}],
	["linode_lke_cluster", lke(true, office), lke(false, [])],
	["linode_lke_cluster", lke(true, office), lke(true, all)],
	["digitalocean_kubernetes_cluster", doks(true, office), doks(false, [])],
	["digitalocean_kubernetes_cluster", doks(true, office), doks(true, all)],
]

test_opened if {
	every move in opened {
		count(public_endpoint.deny) == 1 with input as h.updated(move[0], move[1], move[2])
	}
}

test_closed if {
	every move in opened {
		count(public_endpoint.deny) == 0 with input as h.updated(move[0], move[2], move[1])
	}
}

test_open_as_before if {
	every move in opened {
		count(public_endpoint.deny) == 0 with input as h.updated(move[0], move[2], move[2])
		count(public_endpoint.deny) == 0 with input as h.updated(move[0], move[1], move[1])
	}
}

test_new_cluster if {
	count(public_endpoint.deny) == 0 with input as h.plan([h.change("aws_eks_cluster", ["create"], null, eks(true, all))])
}
