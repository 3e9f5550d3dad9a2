output "network_id" {
  description = "ID of the network next to the cluster."
  value       = tostring(linode_vpc.this.id)
}

output "subnet_ids" {
  description = "IDs of the subnets of the network next to the cluster."
  value       = [tostring(linode_vpc_subnet.this.id)]
}
