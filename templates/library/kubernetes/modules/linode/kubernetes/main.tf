locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  first    = local.node_pools[0] # a cluster cannot be without one
  others   = { for pool in slice(local.node_pools, 1, length(local.node_pools)) : pool.name => pool }
  tags     = [for key, value in var.tags : substr("${key}:${value}", 0, 50)]
  external = "${var.name}-pool"
  open     = contains(var.allowed_cidrs, "0.0.0.0/0")
}

resource "linode_lke_cluster" "this" {
  label       = var.name
  region      = var.region
  k8s_version = var.kubernetes_version
  tags        = local.tags

  # Pools with this tag are not the cluster's to remove: they come below, each
  # with an address of its own, so that one can go without moving the others.
  external_pool_tags = [local.external]

  control_plane {
    high_availability = var.high_availability

    acl {
      enabled = !local.open

      dynamic "addresses" {
        for_each = local.open ? [] : [var.allowed_cidrs]

        content {
          ipv4 = addresses.value
        }
      }
    }
  }

  pool {
    type   = local.first.instance_type
    labels = merge(local.first.labels, { "holdfast.dev/pool" = local.first.name })
    tags   = local.tags

    # Where the autoscaler decides, the count is left out, and the engine leaves
    # it alone.
    count = local.first.count

    dynamic "autoscaler" {
      for_each = local.first.count == null ? [local.first] : []

      content {
        min = autoscaler.value.min_count
        max = autoscaler.value.max_count
      }
    }
  }

  lifecycle {
    # For other machines in this pool the provider makes a new pool and deletes
    # the old one before the new one is ready. Left alone, and refused aloud.
    ignore_changes = [pool[0].type]

    postcondition {
      condition     = self.pool[0].type == local.first.instance_type
      error_message = "The machines of the first pool cannot be changed from ${self.pool[0].type} to ${local.first.instance_type}: its nodes would go before the new ones are ready. Add a pool with the new ones, and make the first one as small as it gets."
    }
  }
}

resource "linode_lke_node_pool" "this" {
  for_each = local.others

  cluster_id = linode_lke_cluster.this.id
  type       = each.value.instance_type
  labels     = merge(each.value.labels, { "holdfast.dev/pool" = each.key })
  tags       = concat(local.tags, [local.external])
  node_count = each.value.count

  dynamic "autoscaler" {
    for_each = each.value.count == null ? [each.value] : []

    content {
      min = autoscaler.value.min_count
      max = autoscaler.value.max_count
    }
  }

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = taint.value.effect
    }
  }

  # Other machines mean another pool: its nodes come before the old ones go.
  lifecycle {
    create_before_destroy = true
  }
}
