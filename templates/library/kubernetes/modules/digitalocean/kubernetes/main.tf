data "digitalocean_kubernetes_versions" "minor" {
  version_prefix = "${var.kubernetes_version}."
}

# What is newest changes from week to week, which is neither a drift nor
# something that anybody asked for. The patch release is that of the day when the
# cluster got its minor version, and stays until that changes. Nor does the cloud
# change it automatically: to the provider the code would then ask for an older
# version, for which it replaces the cluster.
resource "terraform_data" "version" {
  input            = data.digitalocean_kubernetes_versions.minor.latest_version
  triggers_replace = var.kubernetes_version

  lifecycle {
    ignore_changes = [input]

    # Only when the version is new: what a cluster has stays, also when the cloud
    # makes no more clusters of it.
    postcondition {
      condition     = self.input != null && self.input != ""
      error_message = "The cloud does not offer Kubernetes ${var.kubernetes_version}."
    }
  }
}

locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  first  = local.node_pools[0] # a cluster cannot be without one
  others = { for pool in slice(local.node_pools, 1, length(local.node_pools)) : pool.name => pool }
  tags   = [for key, value in var.tags : replace("${key}:${value}", "/[^A-Za-z0-9:_-]/", "_")]
}

resource "digitalocean_kubernetes_cluster" "this" {
  name     = var.name
  region   = var.region
  version  = terraform_data.version.input
  vpc_uuid = var.network_id
  ha       = var.high_availability
  tags     = local.tags

  auto_upgrade  = false
  surge_upgrade = true # a new node comes before an old one goes

  # Volumes and load balancers that pods have made outlive it: they may hold the
  # only copy of something.
  destroy_all_associated_resources = false

  control_plane_firewall {
    enabled           = !contains(var.allowed_cidrs, "0.0.0.0/0")
    allowed_addresses = contains(var.allowed_cidrs, "0.0.0.0/0") ? [] : var.allowed_cidrs
  }

  node_pool {
    name   = local.first.name
    size   = local.first.instance_type
    labels = merge(local.first.labels, { "holdfast.dev/pool" = local.first.name })
    tags   = local.tags

    # Where the autoscaler decides, the count is left out, and the engine leaves
    # it alone.
    node_count = local.first.count
    auto_scale = local.first.count == null
    min_nodes  = local.first.min_count
    max_nodes  = local.first.max_count
  }

  lifecycle {
    # To the provider other machines in this pool mean a new cluster, which
    # nobody wants who asks for larger nodes. Left alone, and refused aloud.
    ignore_changes = [node_pool[0].size]

    postcondition {
      condition     = self.node_pool[0].size == local.first.instance_type
      error_message = "The machines of the first pool cannot be changed from ${self.node_pool[0].size} to ${local.first.instance_type}: that would replace the cluster. Add a pool with the new ones, and make the first one as small as it gets."
    }
  }
}

resource "digitalocean_kubernetes_node_pool" "this" {
  for_each = local.others

  cluster_id = digitalocean_kubernetes_cluster.this.id
  name       = each.key
  size       = each.value.instance_type
  labels     = merge(each.value.labels, { "holdfast.dev/pool" = each.key })
  tags       = local.tags

  node_count = each.value.count
  auto_scale = each.value.count == null
  min_nodes  = each.value.min_count
  max_nodes  = each.value.max_count

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = taint.value.effect
    }
  }
}
