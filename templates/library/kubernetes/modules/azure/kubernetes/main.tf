locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  system      = local.node_pools[0] # a cluster cannot be without one
  system_name = terraform_data.system_name.input
  others      = { for pool in slice(local.node_pools, 1, length(local.node_pools)) : pool.name => pool }
  zones       = var.high_availability ? ["1", "2", "3"] : null

  # Pools that stand in while others are replaced, which may be several at once.
  stand_in = { for name in distinct(concat([local.system_name], keys(local.others))) : name => "r${substr(sha1(name), 0, 8)}" }

  # A private cluster has no list of who may come; without one everybody may.
  restricted = !var.private_endpoint && !contains(var.allowed_cidrs, "0.0.0.0/0")
}

# To the provider another name of the first pool means another cluster. The pool
# keeps the name that it got when the cluster was made; what the document calls
# it is its label.
resource "terraform_data" "system_name" {
  input = local.system.name

  lifecycle {
    ignore_changes = [input]
  }
}

resource "azurerm_resource_group" "this" {
  name     = "${var.name}-kubernetes"
  location = var.region

  tags = var.tags
}

# The cluster's own identity: it puts load balancers into the subnet.
resource "azurerm_user_assigned_identity" "cluster" {
  name                = "${var.name}-cluster"
  location            = azurerm_resource_group.this.location
  resource_group_name = azurerm_resource_group.this.name

  tags = var.tags
}

resource "azurerm_role_assignment" "subnet" {
  scope                = var.subnet_ids[0]
  role_definition_name = "Network Contributor"
  principal_id         = azurerm_user_assigned_identity.cluster.principal_id
  principal_type       = "ServicePrincipal"
}

# Nodes reach the API server through the NAT gateway of the network module: a
# list without it would lock them out.
data "azurerm_public_ip" "nat" {
  count = local.restricted ? 1 : 0

  name                = "${var.name}-nat"
  resource_group_name = split("/", var.subnet_ids[0])[4]
}

resource "azurerm_kubernetes_cluster" "this" {
  name                = var.name
  location            = azurerm_resource_group.this.location
  resource_group_name = azurerm_resource_group.this.name
  node_resource_group = "${var.name}-nodes"
  dns_prefix          = var.name
  sku_tier            = var.high_availability ? "Standard" : "Free"

  # The version is a minor one; the channel patches it.
  kubernetes_version        = var.kubernetes_version
  automatic_upgrade_channel = "patch"
  node_os_upgrade_channel   = "NodeImage"

  # Pods take identities of the cloud by their service accounts.
  oidc_issuer_enabled       = true
  workload_identity_enabled = true

  role_based_access_control_enabled = true
  private_cluster_enabled           = var.private_endpoint

  tags = var.tags

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.cluster.id]
  }

  dynamic "api_server_access_profile" {
    for_each = local.restricted ? [concat(var.allowed_cidrs, ["${data.azurerm_public_ip.nat[0].ip_address}/32"])] : []

    content {
      authorized_ip_ranges = api_server_access_profile.value
    }
  }

  default_node_pool {
    name                        = local.system_name
    vm_size                     = local.system.instance_type
    vnet_subnet_id              = var.subnet_ids[0]
    zones                       = local.zones
    orchestrator_version        = var.kubernetes_version
    os_disk_size_gb             = local.system.disk_gb
    node_labels                 = merge(local.system.labels, { "holdfast.dev/pool" = local.system.name })
    temporary_name_for_rotation = local.stand_in[local.system_name] # else a change of the machine replaces the cluster

    # Where the autoscaler decides, the count is left out, and the engine leaves
    # it alone.
    node_count           = local.system.count
    auto_scaling_enabled = local.system.count == null
    min_count            = local.system.min_count
    max_count            = local.system.max_count

    upgrade_settings {
      max_surge                     = "10%"
      drain_timeout_in_minutes      = 30
      node_soak_duration_in_minutes = 0
    }

    tags = var.tags
  }

  network_profile {
    network_plugin      = "azure"
    network_plugin_mode = "overlay"
    network_data_plane  = "cilium"
    network_policy      = "cilium"
    load_balancer_sku   = "standard"
    outbound_type       = "userAssignedNATGateway"
    pod_cidr            = "100.64.0.0/16"
    service_cidr        = "172.20.0.0/16"
    dns_service_ip      = "172.20.0.10"
  }

  lifecycle {
    # To the provider it means another cluster. Left alone, and refused aloud.
    ignore_changes = [private_cluster_enabled]

    postcondition {
      condition     = self.private_cluster_enabled == var.private_endpoint
      error_message = "private_endpoint cannot be changed to ${var.private_endpoint} on azure: that would replace the cluster. Make another cluster, and move what runs in this one."
    }
  }

  # Without the right to the subnet the cluster comes up broken, and cannot be
  # deleted.
  depends_on = [azurerm_role_assignment.subnet]
}

resource "azurerm_kubernetes_cluster_node_pool" "this" {
  for_each = local.others

  name                        = each.key
  kubernetes_cluster_id       = azurerm_kubernetes_cluster.this.id
  mode                        = "User"
  vm_size                     = each.value.instance_type
  vnet_subnet_id              = var.subnet_ids[0]
  zones                       = local.zones
  orchestrator_version        = var.kubernetes_version
  os_disk_size_gb             = each.value.disk_gb
  node_labels                 = merge(each.value.labels, { "holdfast.dev/pool" = each.key })
  node_taints                 = [for taint in each.value.taints : "${taint.key}=${taint.value}:${taint.effect}"]
  temporary_name_for_rotation = local.stand_in[each.key]

  node_count           = each.value.count
  auto_scaling_enabled = each.value.count == null
  min_count            = each.value.min_count
  max_count            = each.value.max_count

  upgrade_settings {
    max_surge                     = "10%"
    drain_timeout_in_minutes      = 30
    node_soak_duration_in_minutes = 0
  }

  tags = var.tags

  lifecycle {
    precondition {
      condition     = each.key != local.system_name
      error_message = "The first pool was called ${each.key} when the cluster was made, and has that name in the cloud for good: give this pool another one."
    }
  }
}
