output "network_id" {
  description = "ID of the network that the cluster is in."
  value       = aws_vpc.this.id
}

output "subnet_ids" {
  description = "IDs of the subnets that nodes are in, in the order of their zones."
  value       = [for zone in local.zones : aws_subnet.private[zone].id]

  # A node in a subnet without a way out never joins the cluster. And when all is
  # destroyed, nodes need the way out until they are gone: what frees volumes and
  # load balancers runs on them.
  depends_on = [
    aws_route.nat, aws_route.internet, aws_route_table_association.private, aws_route_table_association.public,
    aws_vpc_endpoint.s3,
  ]
}
