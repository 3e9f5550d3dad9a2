output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = terraform_data.network.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in, in the order of their zones."
  value       = [for zone in local.zones : terraform_data.subnet[zone].id]
}
