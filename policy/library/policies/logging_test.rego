package holdfast.logging_test

import data.holdfast.helpers_test as h
import data.holdfast.logging

test_fewer_kinds if {
	found := logging.deny with input as h.updated("aws_eks_cluster", {"enabled_cluster_log_types": ["api", "audit", "authenticator"]}, {"enabled_cluster_log_types": ["api"]})
	{result.msg | some result in found} == {"aws_eks_cluster.this no longer writes the logs audit, authenticator"}
	count(logging.deny) == 1 with input as h.updated("google_container_cluster", {"logging_config": [{"enable_components": ["WORKLOADS"]}]}, {"logging_config": []})
}

test_more_kinds if {
	count(logging.deny) == 0 with input as h.updated("aws_eks_cluster", {"enabled_cluster_log_types": ["api"]}, {"enabled_cluster_log_types": ["api", "audit"]})
	count(logging.deny) == 0 with input as h.updated("aws_eks_cluster", {"enabled_cluster_log_types": null}, {"enabled_cluster_log_types": null})
}

test_unknown_kinds if {
	eks := object.union(h.change("aws_eks_cluster", ["update"], {"enabled_cluster_log_types": ["api"]}, {}), {"change": {"after_unknown": {"enabled_cluster_log_types": true}}})
	gke := object.union(h.change("google_container_cluster", ["update"], {"logging_config": [{"enable_components": ["WORKLOADS"]}]}, {}), {"change": {"after_unknown": {"logging_config": true}}})
	count(logging.deny) == 0 with input as h.plan([eks, gke])
}

test_switched_off if {
	count(logging.deny) == 1 with input as h.updated("linode_lke_cluster", {"control_plane": [{"audit_logs_enabled": true}]}, {"control_plane": [{"audit_logs_enabled": false}]})
	count(logging.deny) == 1 with input as h.updated("google_compute_router_nat", {"log_config": [{"enable": true}]}, {"log_config": []})
	count(logging.deny) == 0 with input as h.updated("google_compute_router_nat", {"log_config": [{"enable": true}]}, {"log_config": [{"enable": true}]})
}

test_stores if {
	every type in logging.stores {
		count(logging.deny) == 1 with input as h.plan([h.change(type, ["delete"], {"name": "a"}, null)])
		count(logging.deny) == 0 with input as h.destruction([h.change(type, ["delete"], {"name": "a"}, null)])
	}
}
