data "google_client_config" "current" {}

data "google_compute_zones" "available" {
  region = var.region
  status = "UP"
}

locals {
  project = data.google_client_config.current.project
  wanted  = var.high_availability ? 3 : 1
  offered = sort(data.google_compute_zones.available.names)
  zones   = slice(local.offered, 0, min(local.wanted, length(local.offered)))

  # An account has 6 to 30 characters, a name up to 40.
  account = length(var.name) <= 24 ? var.name : "${substr(var.name, 0, 17)}-${substr(sha1(var.name), 0, 6)}"

  # Of two tags that are the same label the first one is here, and a condition of
  # the cluster fails.
  same_labels = {
    for key, value in var.tags :
    substr(replace(lower(key), "/[^a-z0-9_-]/", "_"), 0, 63) => substr(replace(lower(value), "/[^a-z0-9_-]/", "_"), 0, 63)...
  }
  labels = { for key, values in local.same_labels : key => values[0] }

  # The API server always has a list of who may come: of a private one it is
  # empty, as the network itself is always let in and public ranges are refused.
  allowed_cidrs = var.private_endpoint ? [for cidr in var.allowed_cidrs : cidr if cidr != "0.0.0.0/0"] : var.allowed_cidrs
}

# Nodes that run as the project's default account could do what that may, which
# is a lot.
resource "google_service_account" "nodes" {
  account_id   = "${local.account}-nodes"
  display_name = "Nodes of the cluster ${var.name}"
}

resource "google_project_iam_member" "nodes" {
  for_each = toset(["roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"])

  project = local.project
  role    = each.key
  member  = google_service_account.nodes.member
}

resource "google_container_cluster" "this" {
  name       = var.name
  location   = var.region # the control plane is in several zones
  network    = var.network_id
  subnetwork = var.subnet_ids[0]

  # Where pools are unless they say otherwise.
  node_locations = local.zones

  # Nodes are in pools of their own, which can come and go. A cluster cannot be
  # made without one, so that one comes and goes at once.
  remove_default_node_pool = true
  initial_node_count       = 1

  networking_mode   = "VPC_NATIVE"
  datapath_provider = "ADVANCED_DATAPATH" # network policies included

  # Channels are patched. The version is the least: what the cloud has installed
  # since is not drift.
  min_master_version = var.kubernetes_version

  release_channel {
    channel = "REGULAR"
  }

  # Whether a cluster may be destroyed is said in the cluster's document. This
  # one would hold up even a destroy that was reviewed.
  deletion_protection = false

  resource_labels = local.labels

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  private_cluster_config {
    enable_private_nodes    = true
    enable_private_endpoint = var.private_endpoint
  }

  master_authorized_networks_config {
    dynamic "cidr_blocks" {
      for_each = local.allowed_cidrs

      content {
        cidr_block = cidr_blocks.value
      }
    }
  }

  # Pods take accounts of the cloud by their service accounts.
  workload_identity_config {
    workload_pool = "${local.project}.svc.id.goog"
  }

  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  addons_config {
    gce_persistent_disk_csi_driver_config {
      enabled = true
    }
  }

  # Of the pool that goes at once: projects often have no default account.
  node_config {
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
  }

  lifecycle {
    # The cloud shows some pool's here once that one is gone.
    ignore_changes = [node_config, initial_node_count]

    precondition {
      condition     = length(local.zones) == local.wanted
      error_message = "The nodes are to be in ${local.wanted} zones, but ${var.region} has ${length(local.offered)}."
    }

    precondition {
      condition     = length(local.labels) == length(var.tags)
      error_message = "Tags are labels here, in lower case: of ${join(", ", keys(var.tags))} some are the same label."
    }
  }

  depends_on = [google_project_iam_member.nodes]
}
