data "aws_ec2_instance_type" "pool" {
  for_each = { for pool in local.node_pools : pool.name => pool.instance_type }

  instance_type = each.value
}

locals {
  # The image follows from the machine.
  ami_types = {
    for name, type in data.aws_ec2_instance_type.pool : name => join("_", [
      "AL2023",
      contains(type.supported_architectures, "arm64") ? "ARM_64" : "x86_64",
      contains(type.gpus[*].manufacturer, "NVIDIA") ? "NVIDIA" : "STANDARD",
    ])
  }

  taint_effects = {
    NoSchedule       = "NO_SCHEDULE"
    PreferNoSchedule = "PREFER_NO_SCHEDULE"
    NoExecute        = "NO_EXECUTE"
  }
}

# A node group's own tags do not reach its machines; a launch template's do.
resource "aws_launch_template" "pool" {
  for_each = { for pool in local.node_pools : pool.name => pool }

  name_prefix            = "${var.name}-${each.key}-"
  instance_type          = each.value.instance_type
  update_default_version = true

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_type           = "gp3"
      volume_size           = coalesce(each.value.disk_gb, 50)
      encrypted             = "true"
      delete_on_termination = "true"
    }
  }

  # Pods do not reach the machine's own role: they are one hop further away.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume", "network-interface"])

    content {
      resource_type = tag_specifications.value
      tags          = merge(var.tags, { Name = "${var.name}-${each.key}" })
    }
  }

  tags = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_eks_node_group" "fixed" {
  for_each = local.fixed

  cluster_name           = aws_eks_cluster.this.name
  node_group_name_prefix = "${each.key}-"
  version                = var.kubernetes_version
  node_role_arn          = aws_iam_role.node.arn
  subnet_ids             = var.subnet_ids
  ami_type               = local.ami_types[each.key]
  labels                 = merge(each.value.labels, { "holdfast.dev/pool" = each.key })

  launch_template {
    id      = aws_launch_template.pool[each.key].id
    version = aws_launch_template.pool[each.key].latest_version
  }

  scaling_config {
    min_size     = each.value.count
    max_size     = each.value.count
    desired_size = each.value.count
  }

  update_config {
    max_unavailable_percentage = 33
  }

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = local.taint_effects[taint.value.effect]
    }
  }

  tags = var.tags

  # Where a pool has to be replaced, its pods move to the new one.
  lifecycle {
    create_before_destroy = true
  }

  depends_on = [aws_iam_role_policy_attachment.node, aws_eks_addon.node]
}

# The same, and its size belongs to the autoscaler.
resource "aws_eks_node_group" "autoscaled" {
  for_each = local.autoscaled

  cluster_name           = aws_eks_cluster.this.name
  node_group_name_prefix = "${each.key}-"
  version                = var.kubernetes_version
  node_role_arn          = aws_iam_role.node.arn
  subnet_ids             = var.subnet_ids
  ami_type               = local.ami_types[each.key]
  labels                 = merge(each.value.labels, { "holdfast.dev/pool" = each.key })

  launch_template {
    id      = aws_launch_template.pool[each.key].id
    version = aws_launch_template.pool[each.key].latest_version
  }

  scaling_config {
    min_size     = each.value.min_count
    max_size     = each.value.max_count
    desired_size = each.value.min_count
  }

  update_config {
    max_unavailable_percentage = 33
  }

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = local.taint_effects[taint.value.effect]
    }
  }

  tags = var.tags

  lifecycle {
    create_before_destroy = true

    # How many nodes there are right now is the autoscaler's decision, not a
    # drift. A min_count above it is refused by the cloud until it has scaled up.
    ignore_changes = [scaling_config[0].desired_size]
  }

  depends_on = [aws_iam_role_policy_attachment.node, aws_eks_addon.node]
}
