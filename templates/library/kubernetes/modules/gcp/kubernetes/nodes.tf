locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  pools = {
    for pool in local.node_pools : pool.name => merge(pool, {
      # A fixed pool with fewer nodes than there are zones is in so many.
      zones = pool.count == null ? local.zones : slice(local.zones, 0, min(pool.count, length(local.zones)))
    })
  }

  # The cloud counts the nodes of each zone.
  per_zone = {
    for name, pool in local.pools :
    name => ceil((pool.count != null ? pool.count : pool.min_count) / length(pool.zones))
  }

  taint_effects = {
    NoSchedule       = "NO_SCHEDULE"
    PreferNoSchedule = "PREFER_NO_SCHEDULE"
    NoExecute        = "NO_EXECUTE"
  }
}

resource "google_container_node_pool" "this" {
  for_each = local.pools

  name           = each.key
  cluster        = google_container_cluster.this.id
  node_locations = each.value.zones

  # Either a count or the autoscaler's limits; where it says neither, the
  # engine leaves the count alone.
  node_count         = each.value.count == null ? null : local.per_zone[each.key]
  initial_node_count = each.value.count == null ? local.per_zone[each.key] : null

  dynamic "autoscaling" {
    for_each = each.value.count == null ? [each.value] : []

    content {
      total_min_node_count = autoscaling.value.min_count
      total_max_node_count = autoscaling.value.max_count
      location_policy      = "BALANCED"
    }
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  # A new node comes before an old one goes.
  upgrade_settings {
    max_surge       = 1
    max_unavailable = 0
  }

  node_config {
    machine_type    = each.value.instance_type
    disk_size_gb    = coalesce(each.value.disk_gb, 100)
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    labels          = merge(each.value.labels, { "holdfast.dev/pool" = each.key })
    resource_labels = local.labels

    dynamic "taint" {
      for_each = each.value.taints

      content {
        key    = taint.value.key
        value  = taint.value.value
        effect = local.taint_effects[taint.value.effect]
      }
    }

    metadata = {
      disable-legacy-endpoints = "true"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    # Pods see their own account, not the node's.
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  lifecycle {
    # Said once, when the pool is made: a min_count that changes later must not
    # replace it.
    ignore_changes = [initial_node_count]
  }
}
