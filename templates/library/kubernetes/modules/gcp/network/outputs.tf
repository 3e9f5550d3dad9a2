output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = google_compute_network.this.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in."
  value       = [google_compute_subnetwork.nodes.id]

  # Without a way out a node does not get images from outside of the cloud.
  depends_on = [google_compute_router_nat.this]
}
