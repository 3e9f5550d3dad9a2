package holdfast.oidc_issuer_test

import data.holdfast.helpers_test as h
import data.holdfast.oidc_issuer

gke(workload_pool) := {"workload_identity_config": [{"workload_pool": workload_pool}]}

test_destroyed if {
	count(oidc_issuer.deny) == 1 with input as h.plan([h.change("aws_iam_openid_connect_provider", ["delete"], {"url": "https://a"}, null)])
	count(oidc_issuer.deny) == 0 with input as h.destruction([h.change("aws_iam_openid_connect_provider", ["delete"], {"url": "https://a"}, null)])
}

test_changed if {
	count(oidc_issuer.deny) == 1 with input as h.updated("google_container_cluster", gke("a.svc.id.goog"), gke("b.svc.id.goog"))
	count(oidc_issuer.deny) == 1 with input as h.updated("google_container_cluster", gke("a.svc.id.goog"), {})
	count(oidc_issuer.deny) == 1 with input as h.updated("azurerm_kubernetes_cluster", {"oidc_issuer_enabled": true}, {"oidc_issuer_enabled": false})
}

test_switched_on if {
	count(oidc_issuer.deny) == 0 with input as h.updated("azurerm_kubernetes_cluster", {"oidc_issuer_enabled": false}, {"oidc_issuer_enabled": true})
	count(oidc_issuer.deny) == 0 with input as h.updated("google_container_cluster", gke("a.svc.id.goog"), gke("a.svc.id.goog"))
}
