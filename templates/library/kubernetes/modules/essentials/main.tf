locals {
  replicas = var.high_availability ? 2 : 1

  namespaces = toset(concat(
    var.enable_ingress ? ["traefik"] : [],
    var.enable_cert_manager ? ["cert-manager"] : [],
    var.enable_monitoring ? ["monitoring"] : [],
  ))
}

resource "kubernetes_namespace_v1" "this" {
  for_each = local.namespaces

  metadata {
    name   = each.key
    labels = { "app.kubernetes.io/managed-by" = "holdfast" }
  }

  lifecycle {
    # Other controllers leave notes here.
    ignore_changes = [metadata[0].annotations]
  }
}

# Claims of a StatefulSet do not grow: with a larger size Prometheus would keep
# more than its volume takes.
resource "terraform_data" "monitoring_disk" {
  count = var.enable_monitoring ? 1 : 0

  input = var.monitoring_disk_gb

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == var.monitoring_disk_gb
      error_message = "monitoring_disk_gb cannot be changed from ${self.input} to ${var.monitoring_disk_gb}: the volume stays as it is. Switch enable_monitoring off, which deletes all metrics, and on again with the new size."
    }
  }
}

# Before the others: it brings the kinds in which they say what to scrape.
resource "helm_release" "monitoring" {
  count = var.enable_monitoring ? 1 : 0

  name       = "monitoring"
  namespace  = kubernetes_namespace_v1.this["monitoring"].metadata[0].name
  repository = "https://prometheus-community.github.io/helm-charts"
  chart      = "kube-prometheus-stack"
  version    = var.chart_versions.kube_prometheus_stack

  # An installation that fails is taken back: the next one begins from a known
  # state.
  atomic      = true
  timeout     = 900
  max_history = 5

  values = [yamlencode({
    # The cloud runs these, out of sight: that they are missing is not an alarm.
    kubeControllerManager = { enabled = false }
    kubeEtcd              = { enabled = false }
    kubeProxy             = { enabled = false }
    kubeScheduler         = { enabled = false }

    # Empty means one of 40 random letters that stays; the chart's own is known
    # to everybody.
    grafana = { adminPassword = "" }

    alertmanager = { alertmanagerSpec = { replicas = local.replicas } }

    prometheus = {
      prometheusSpec = {
        replicas      = local.replicas
        retention     = "${var.monitoring_retention_days}d"
        retentionSize = "${floor(var.monitoring_disk_gb * 0.85)}GB"

        # Of everybody in the cluster, not just of this chart.
        podMonitorSelectorNilUsesHelmValues     = false
        probeSelectorNilUsesHelmValues          = false
        ruleSelectorNilUsesHelmValues           = false
        scrapeConfigSelectorNilUsesHelmValues   = false
        serviceMonitorSelectorNilUsesHelmValues = false

        storageSpec = {
          volumeClaimTemplate = {
            spec = {
              accessModes = ["ReadWriteOnce"]
              resources   = { requests = { storage = "${var.monitoring_disk_gb}Gi" } }
            }
          }
        }
      }
    }
  })]
}

resource "helm_release" "ingress" {
  count = var.enable_ingress ? 1 : 0

  name       = "traefik"
  namespace  = kubernetes_namespace_v1.this["traefik"].metadata[0].name
  repository = "https://traefik.github.io/charts"
  chart      = "traefik"
  version    = var.chart_versions.traefik

  atomic      = true
  timeout     = 900
  max_history = 5

  values = [yamlencode({
    deployment          = { replicas = local.replicas }
    podDisruptionBudget = { enabled = var.high_availability, minAvailable = 1 }
    ingressClass        = { enabled = true, isDefaultClass = true, name = "traefik" }

    # Requests keep the address that they come from, except on digitalocean and
    # linode, whose load balancers are proxies.
    service = {
      annotations = var.ingress_annotations
      spec        = { externalTrafficPolicy = "Local" }
    }

    metrics = {
      prometheus = {
        service        = { enabled = var.enable_monitoring }
        serviceMonitor = { enabled = var.enable_monitoring }
      }
    }

    # What runs where is nobody else's business.
    global = { checkNewVersion = false, sendAnonymousUsage = false }

    topologySpreadConstraints = var.high_availability ? [{
      maxSkew           = 1
      topologyKey       = "kubernetes.io/hostname"
      whenUnsatisfiable = "ScheduleAnyway"
      labelSelector     = { matchLabels = { "app.kubernetes.io/name" = "traefik" } }
    }] : []
  })]

  depends_on = [helm_release.monitoring]
}

resource "helm_release" "cert_manager" {
  count = var.enable_cert_manager ? 1 : 0

  name       = "cert-manager"
  namespace  = kubernetes_namespace_v1.this["cert-manager"].metadata[0].name
  repository = "https://charts.jetstack.io"
  chart      = "cert-manager"
  version    = var.chart_versions.cert_manager

  atomic      = true
  timeout     = 900
  max_history = 5

  values = [yamlencode({
    # Certificates survive even if cert-manager is switched off.
    crds = { enabled = true, keep = true }

    replicaCount = local.replicas
    webhook      = { replicaCount = local.replicas }
    cainjector   = { replicaCount = local.replicas }

    podDisruptionBudget = { enabled = var.high_availability, minAvailable = 1 }

    prometheus = { servicemonitor = { enabled = var.enable_monitoring } }
  })]

  depends_on = [helm_release.monitoring]
}

# Its rights in the cloud belong to this service account, see the Kubernetes
# module of aws.
resource "helm_release" "autoscaler" {
  count = var.enable_autoscaler ? 1 : 0

  name       = "cluster-autoscaler"
  namespace  = "kube-system"
  repository = "https://kubernetes.github.io/autoscaler"
  chart      = "cluster-autoscaler"
  version    = var.chart_versions.cluster_autoscaler

  atomic      = true
  timeout     = 900
  max_history = 5

  values = [yamlencode({
    cloudProvider = "aws"
    awsRegion     = var.region
    autoDiscovery = { clusterName = var.name }
    replicaCount  = local.replicas

    rbac = { serviceAccount = { name = "cluster-autoscaler" } }

    serviceMonitor = { enabled = var.enable_monitoring, namespace = "kube-system" }

    extraArgs = {
      balance-similar-node-groups = true
      skip-nodes-with-system-pods = false
    }
  })]

  depends_on = [helm_release.monitoring]
}
