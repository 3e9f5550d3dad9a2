data "aws_region" "current" {}

data "aws_availability_zones" "available" {
  state = "available"
  # EKS has no control plane in these zones.
  exclude_zone_ids = ["use1-az3", "usw1-az2", "cac1-az3"]

  # Local zones and others that an account opts into are for special purposes.
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  wanted    = var.high_availability ? 3 : 2
  offered   = sort(data.aws_availability_zones.available.names)
  zones     = slice(local.offered, 0, min(local.wanted, length(local.offered)))
  nat_zones = var.high_availability ? local.zones : slice(local.zones, 0, 1)

  # The ranges do not depend on how many zones there are: a third one moves
  # nothing. Quarters 0 to 2 are private, the last one is for public subnets.
  private_cidrs = { for i, zone in local.zones : zone => cidrsubnet(var.cidr, 2, i) }
  public_cidrs  = { for i, zone in local.zones : zone => cidrsubnet(var.cidr, 6, 48 + i) }
}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_hostnames = true # private endpoints are found by name
  enable_dns_support   = true

  tags = merge(var.tags, { Name = var.name })

  lifecycle {
    # Another range means another network. Left alone, and refused aloud.
    ignore_changes = [cidr_block]

    postcondition {
      condition     = self.cidr_block == var.cidr
      error_message = "cidr cannot be changed from ${self.cidr_block} to ${var.cidr}: that would replace the network, and the cluster with it. Make another cluster, and move what runs in this one."
    }

    precondition {
      condition     = data.aws_region.current.region == var.region
      error_message = "The cluster is to be in ${var.region}, but the aws provider is configured for ${data.aws_region.current.region}."
    }

    precondition {
      condition     = length(local.zones) == local.wanted
      error_message = "The cluster is to be in ${local.wanted} zones, but ${var.region} has ${length(local.offered)}."
    }
  }
}

# A VPC's default security group lets its members speak to one another. Nobody
# should be in it, and so it allows nothing.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id

  tags = merge(var.tags, { Name = "${var.name}-default" })
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id

  tags = merge(var.tags, { Name = var.name })
}

resource "aws_subnet" "public" {
  for_each = local.public_cidrs

  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = each.value

  tags = merge(var.tags, {
    Name                     = "${var.name}-public-${each.key}"
    "kubernetes.io/role/elb" = "1" # load balancers for the Internet go here
  })
}

resource "aws_subnet" "private" {
  for_each = local.private_cidrs

  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = each.value

  tags = merge(var.tags, {
    Name                              = "${var.name}-private-${each.key}"
    "kubernetes.io/role/internal-elb" = "1" # load balancers for the network go here
  })
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id

  tags = merge(var.tags, { Name = "${var.name}-public" })
}

resource "aws_route" "internet" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  for_each = aws_subnet.public

  subnet_id      = each.value.id
  route_table_id = aws_route_table.public.id
}

resource "aws_eip" "nat" {
  for_each = toset(local.nat_zones)

  domain = "vpc"

  tags = merge(var.tags, { Name = "${var.name}-nat-${each.key}" })
}

resource "aws_nat_gateway" "this" {
  for_each = toset(local.nat_zones)

  allocation_id = aws_eip.nat[each.key].id
  subnet_id     = aws_subnet.public[each.key].id

  tags = merge(var.tags, { Name = "${var.name}-${each.key}" })

  depends_on = [aws_internet_gateway.this]
}

resource "aws_route_table" "private" {
  for_each = aws_subnet.private

  vpc_id = aws_vpc.this.id

  tags = merge(var.tags, { Name = "${var.name}-private-${each.key}" })
}

resource "aws_route" "nat" {
  for_each = aws_route_table.private

  route_table_id         = each.value.id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[contains(local.nat_zones, each.key) ? each.key : local.nat_zones[0]].id
}

resource "aws_route_table_association" "private" {
  for_each = aws_subnet.private

  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[each.key].id
}

# Layers of images come from S3: not through the NAT gateways, which charge by
# the byte. The endpoint is free.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for zone in local.zones : aws_route_table.private[zone].id]

  tags = merge(var.tags, { Name = "${var.name}-s3" })
}
