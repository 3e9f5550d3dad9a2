locals {
  releases = merge(
    var.enable_ingress ? { traefik = var.chart_versions.traefik } : {},
    var.enable_cert_manager ? { cert-manager = var.chart_versions.cert_manager } : {},
    var.enable_monitoring ? { monitoring = var.chart_versions.kube_prometheus_stack } : {},
    var.enable_autoscaler ? { cluster-autoscaler = var.chart_versions.cluster_autoscaler } : {},
  )
}

resource "terraform_data" "namespace" {
  for_each = toset([for name in keys(local.releases) : name if name != "cluster-autoscaler"])

  input = { name = each.key }
}

resource "terraform_data" "release" {
  for_each = local.releases

  input = {
    cluster   = var.name
    region    = var.region
    namespace = try(terraform_data.namespace[each.key].input.name, "kube-system")
    version   = each.value
    replicas  = var.high_availability ? 2 : 1
    values = {
      traefik            = { annotations = var.ingress_annotations }
      cert-manager       = {}
      monitoring         = { retention_days = var.monitoring_retention_days, disk_gb = var.monitoring_disk_gb }
      cluster-autoscaler = {}
    }[each.key]
  }
}
