package plandiff_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
)

func TestDanger(t *testing.T) {
	t.Parallel()

	tests := map[plandiff.Danger][]string{
		plandiff.DangerCluster: {
			"aws_eks_cluster", "google_container_cluster", "azurerm_kubernetes_cluster", "linode_lke_cluster",
			"digitalocean_kubernetes_cluster", "rancher2_cluster_v2", "aws_rds_cluster",
		},
		plandiff.DangerData: {
			"aws_db_instance", "google_sql_database_instance", "aws_s3_bucket", "aws_ebs_volume", "aws_dynamodb_table",
			"azurerm_managed_disk", "aws_kms_key", "aws_route53_zone",
		},
		plandiff.DangerNone: {
			"aws_instance", "kubernetes_cluster_role", "kubernetes_cluster_role_binding", "helm_release", "aws_eks_node_group",
			"aws_s3_bucket_policy", "aws_volume_attachment", "aws_db_parameter_group", "aws_kms_alias", "aws_eks_cluster_auth",
			"cluster", "", "local_file", "terraform_data",
		},
	}
	for want, types := range tests {
		for _, name := range types {
			c := holdfast.ResourceChange{Address: name + ".this", Type: name}
			if got := plandiff.DangerOf(c); got != want {
				t.Errorf("Danger of %s = %d, want %d", name, got, want)
			}
		}
	}
	for address, want := range map[string]plandiff.Danger{
		"terraform_data.cluster":                          plandiff.DangerCluster,
		`module.kubernetes.terraform_data.eks_cluster[0]`: plandiff.DangerCluster,
		`module.a["x.cluster"].terraform_data.node`:       plandiff.DangerNone,
		"terraform_data.control_plane":                    plandiff.DangerCluster,
		"terraform_data.cluster_dns":                      plandiff.DangerNone,
	} {
		c := holdfast.ResourceChange{Address: address, Type: "terraform_data"}
		if got := plandiff.DangerOf(c); got != want {
			t.Errorf("Danger of %s = %d, want %d", address, got, want)
		}
	}
}
