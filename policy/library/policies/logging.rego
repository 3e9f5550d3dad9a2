# METADATA
# title: Logging is not disabled
# description: >-
#   Denies a change after which the control plane writes fewer kinds of logs, or none, or which deletes existing
#   logs.
# custom:
#   id: logging-disabled
package holdfast.logging

import data.holdfast.lib

# kinds of logs that a control plane writes.
kinds := {
	"aws_eks_cluster": ["enabled_cluster_log_types"],
	"google_container_cluster": ["logging_config", 0, "enable_components"],
}

# switches say whether something is logged.
switches := {
	"azurerm_kubernetes_cluster": [["oms_agent", 0, "log_analytics_workspace_id"]],
	"google_compute_router_nat": [["log_config", 0, "enable"]],
	"google_compute_subnetwork": [["log_config", 0, "aggregation_interval"]],
	"linode_lke_cluster": [["control_plane", 0, "audit_logs_enabled"]],
}

# stores hold what was logged, or lead it there.
stores := {"aws_cloudwatch_log_group", "aws_flow_log", "azurerm_log_analytics_workspace", "azurerm_monitor_diagnostic_setting", "google_logging_project_sink"}

deny contains {"msg": msg, "address": rc.address} if {
	some type, path in kinds
	some rc in lib.changes({type})
	lib.kept(rc)
	not lib.unknown(rc, path)
	gone := {kind | some kind in lib.list(lib.before(rc, path))} - {kind | some kind in lib.list(lib.after(rc, path))}
	count(gone) > 0
	msg := sprintf("%s no longer writes the logs %s", [rc.address, concat(", ", sort([kind | some kind in gone]))])
}

deny contains {"msg": msg, "address": rc.address} if {
	some type, paths in switches
	some rc in lib.changes({type})
	lib.kept(rc)
	some path in paths
	lib.set(lib.before(rc, path))
	not lib.unknown(rc, path)
	not lib.set(lib.after(rc, path))
	msg := sprintf("%s no longer logs (%s)", [rc.address, concat(".", [sprintf("%v", [part]) | some part in path])])
}

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some rc in lib.changes(stores)
	lib.destroyed(rc)
	msg := sprintf("%s is destroyed, together with its logs", [rc.address])
}
