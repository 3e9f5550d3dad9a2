output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = digitalocean_vpc.this.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in. A network of this cloud is one subnet, and this is its ID."
  value       = [digitalocean_vpc.this.id]
}
