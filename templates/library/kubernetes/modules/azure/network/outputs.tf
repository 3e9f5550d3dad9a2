output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = azurerm_virtual_network.this.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in."
  value       = [azurerm_subnet.nodes.id]

  # AKS refuses a subnet without the way out that it is configured to use.
  depends_on = [azurerm_subnet_nat_gateway_association.nodes, azurerm_nat_gateway_public_ip_association.this]
}
