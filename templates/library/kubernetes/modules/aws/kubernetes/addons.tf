locals {
  node_addons     = toset(["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]) # a node is ready with these only
  workload_addons = toset(["coredns", "aws-ebs-csi-driver"])                   # these need nodes
}

data "aws_eks_addon_version" "this" {
  for_each = setunion(local.node_addons, local.workload_addons)

  addon_name         = each.key
  kubernetes_version = var.kubernetes_version
}

# What the cloud recommends changes from week to week, which is neither a drift
# nor something that anybody asked for. The versions are those of the day when
# the cluster got its version of Kubernetes, and stay until that changes.
resource "terraform_data" "addon_version" {
  for_each = data.aws_eks_addon_version.this

  input            = each.value.version
  triggers_replace = var.kubernetes_version

  lifecycle {
    ignore_changes = [input]
  }
}

resource "aws_eks_addon" "node" {
  for_each = local.node_addons

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = terraform_data.addon_version[each.key].input
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"

  tags = var.tags
}

resource "aws_eks_addon" "workload" {
  for_each = local.workload_addons

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = terraform_data.addon_version[each.key].input
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"

  # EKS comes without a default storage class: a claim without one would wait
  # forever.
  configuration_values = each.key == "aws-ebs-csi-driver" ? jsonencode({ defaultStorageClass = { enabled = true } }) : null

  dynamic "pod_identity_association" {
    for_each = each.key == "aws-ebs-csi-driver" ? ["ebs-csi-controller-sa"] : []

    content {
      role_arn        = aws_iam_role.ebs_csi.arn
      service_account = pod_identity_association.value
    }
  }

  tags = var.tags

  depends_on = [
    aws_eks_node_group.fixed,
    aws_eks_node_group.autoscaled,
    aws_iam_role_policy_attachment.ebs_csi,
  ]
}
