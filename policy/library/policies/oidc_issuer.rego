# METADATA
# title: The OIDC issuer of a cluster does not change
# description: >-
#   Pods assume roles of the cloud with tokens of their cluster's issuer. When it changes or is disabled, all pods
#   lose their permissions at once.
# custom:
#   id: oidc-issuer-changed
package holdfast.oidc_issuer

import data.holdfast.lib

deny contains {"msg": msg, "address": rc.address} if {
	not lib.destroying
	some rc in lib.changes({"aws_iam_openid_connect_provider"})
	lib.destroyed(rc)
	msg := sprintf("%s is destroyed: pods can no longer take roles by it", [rc.address])
}

deny contains {"msg": msg, "address": rc.address} if {
	some type, paths in issuers
	some rc in lib.changes({type})
	lib.kept(rc)
	some path in paths
	lib.set(lib.before(rc, path))
	not lib.unknown(rc, path)
	lib.before(rc, path) != lib.after(rc, path)
	msg := sprintf("the issuer by which pods take roles changes (%s of %s)", [concat(".", [sprintf("%v", [part]) | some part in path]), rc.address])
}

issuers := {
	"aws_iam_openid_connect_provider": [["url"]],
	"azurerm_kubernetes_cluster": [["oidc_issuer_enabled"], ["workload_identity_enabled"]],
	"google_container_cluster": [["workload_identity_config", 0, "workload_pool"]],
}
