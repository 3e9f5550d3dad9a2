resource "google_compute_network" "this" {
  name                    = var.name
  description             = "Network of the cluster ${var.name}"
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"
}

# The Kubernetes module finds the secondary ranges by their names.
resource "google_compute_subnetwork" "nodes" {
  name                     = "${var.name}-nodes"
  region                   = var.region
  network                  = google_compute_network.this.id
  ip_cidr_range            = cidrsubnet(var.cidr, 4, 0)
  private_ip_google_access = true # nodes have no addresses of their own

  secondary_ip_range {
    range_name    = "services"
    ip_cidr_range = cidrsubnet(var.cidr, 4, 1)
  }

  secondary_ip_range {
    range_name    = "pods"
    ip_cidr_range = cidrsubnet(var.cidr, 1, 1)
  }

  lifecycle {
    # Another range means another subnet. Left alone, and refused aloud.
    ignore_changes = [ip_cidr_range]

    postcondition {
      condition     = self.ip_cidr_range == cidrsubnet(var.cidr, 4, 0)
      error_message = "cidr cannot be changed to ${var.cidr}: nodes have ${self.ip_cidr_range}, and another range would replace the subnet, and the cluster with it. Make another cluster, and move what runs in this one."
    }
  }
}

resource "google_compute_router" "this" {
  name    = var.name
  region  = var.region
  network = google_compute_network.this.id
}

resource "google_compute_router_nat" "this" {
  name                               = var.name
  region                             = var.region
  router                             = google_compute_router.this.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
