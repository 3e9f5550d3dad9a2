resource "azurerm_resource_group" "this" {
  name     = "${var.name}-network"
  location = var.region

  tags = var.tags
}

resource "azurerm_virtual_network" "this" {
  name                = var.name
  location            = azurerm_resource_group.this.location
  resource_group_name = azurerm_resource_group.this.name
  address_space       = [var.cidr]

  tags = var.tags

  lifecycle {
    # Subnets in use do not move to another range. Left alone, and refused aloud.
    ignore_changes = [address_space]

    postcondition {
      condition     = contains(self.address_space, var.cidr)
      error_message = "cidr cannot be changed from ${join(", ", self.address_space)} to ${var.cidr}: subnets in use cannot move. Make another cluster, and move what runs in this one."
    }
  }
}

resource "azurerm_subnet" "nodes" {
  name                 = "nodes"
  resource_group_name  = azurerm_resource_group.this.name
  virtual_network_name = azurerm_virtual_network.this.name
  address_prefixes     = [cidrsubnet(var.cidr, 2, 0)]

  # The way out is the NAT gateway, whose address is known.
  default_outbound_access_enabled = false
}

resource "azurerm_public_ip" "nat" {
  name                = "${var.name}-nat"
  location            = azurerm_resource_group.this.location
  resource_group_name = azurerm_resource_group.this.name
  allocation_method   = "Static"
  sku                 = "Standard"

  tags = var.tags
}

resource "azurerm_nat_gateway" "this" {
  name                = var.name
  location            = azurerm_resource_group.this.location
  resource_group_name = azurerm_resource_group.this.name
  sku_name            = "Standard"

  tags = var.tags
}

resource "azurerm_nat_gateway_public_ip_association" "this" {
  nat_gateway_id       = azurerm_nat_gateway.this.id
  public_ip_address_id = azurerm_public_ip.nat.id
}

resource "azurerm_subnet_nat_gateway_association" "nodes" {
  subnet_id      = azurerm_subnet.nodes.id
  nat_gateway_id = azurerm_nat_gateway.this.id
}
