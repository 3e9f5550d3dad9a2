output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = aws_vpc.this.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in, in the order of their zones."
  value       = [for zone in local.zones : aws_subnet.private[zone].id]

  # A node in a subnet without a way out never joins the cluster.
  depends_on = [aws_route.nat, aws_route_table_association.private]
}
