locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  # An autoscaler would decide between min_count and max_count; here nothing
  # needs more than the fewest.
  nodes = merge([
    for pool in local.node_pools : {
      for i in range(pool.count != null ? pool.count : pool.min_count) : "${pool.name}-${i}" => pool
    }
  ]...)
}

resource "terraform_data" "control_plane" {
  count = var.high_availability ? 3 : 1

  input = {
    name             = var.name
    region           = var.region
    version          = var.kubernetes_version
    network          = var.network_id
    subnets          = var.subnet_ids
    private_endpoint = var.private_endpoint
    allowed_cidrs    = var.allowed_cidrs
    tags             = var.tags
  }
}

resource "terraform_data" "node" {
  for_each = local.nodes

  input = {
    cluster = terraform_data.control_plane[0].id
    pool    = each.value.name
    labels  = merge(each.value.labels, { "holdfast.dev/pool" = each.value.name })
    taints  = each.value.taints
    disk_gb = each.value.disk_gb
    tags    = var.tags
  }

  # A node of another type is another node.
  triggers_replace = each.value.instance_type
}
