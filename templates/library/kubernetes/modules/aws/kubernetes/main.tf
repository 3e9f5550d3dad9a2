data "aws_region" "current" {}

locals {
  # What a pool does not say, it has in common with the others.
  node_pools = [
    for pool in var.node_pools : merge(pool, {
      instance_type = coalesce(pool.instance_type, var.instance_type)
      count         = pool.count == null && pool.min_count == null ? var.node_count : pool.count
    })
  ]

  fixed      = { for pool in local.node_pools : pool.name => pool if pool.count != null }
  autoscaled = { for pool in local.node_pools : pool.name => pool if pool.count == null }
}

# Without it EKS creates the group automatically, keeps logs forever and leaves it
# behind.
resource "aws_cloudwatch_log_group" "control_plane" {
  name              = "/aws/eks/${var.name}/cluster"
  retention_in_days = 90

  tags = var.tags
}

resource "aws_eks_cluster" "this" {
  name     = var.name
  version  = var.kubernetes_version
  role_arn = aws_iam_role.cluster.arn

  enabled_cluster_log_types     = ["api", "audit", "authenticator"]
  bootstrap_self_managed_addons = false # they are managed in addons.tf

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }

  vpc_config {
    subnet_ids              = var.subnet_ids
    endpoint_private_access = true # nodes do not leave the network to reach it
    endpoint_public_access  = !var.private_endpoint
    public_access_cidrs     = var.private_endpoint ? null : var.allowed_cidrs
  }

  # Extended support costs six times as much: at the end of standard support the
  # cloud upgrades instead.
  upgrade_policy {
    support_type = "STANDARD"
  }

  zonal_shift_config {
    enabled = var.high_availability
  }

  tags = var.tags

  lifecycle {
    precondition {
      condition     = data.aws_region.current.region == var.region
      error_message = "The cluster is to be in ${var.region}, but the aws provider is configured for ${data.aws_region.current.region}."
    }
  }

  # The cluster can be deleted only while its role may still clean up.
  depends_on = [aws_iam_role_policy_attachment.cluster, aws_cloudwatch_log_group.control_plane]
}

# Pods take IAM roles by their service accounts.
resource "aws_iam_openid_connect_provider" "this" {
  url            = aws_eks_cluster.this.identity[0].oidc[0].issuer
  client_id_list = ["sts.amazonaws.com"]

  tags = merge(var.tags, { Name = var.name })
}
