package plandiff

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Danger says how much is lost with a resource, from its type: people look at
// the dangerous ones first.
type Danger int

// The dangers, least first.
const (
	DangerNone    Danger = iota
	DangerData           // keeps data: databases, disks, buckets, keys
	DangerCluster        // a Kubernetes cluster's control plane
)

// DangerOf returns how much is lost if this resource is destroyed or replaced.
func DangerOf(c holdfast.ResourceChange) Danger {
	words := strings.Split(strings.ToLower(c.Type), "_")
	switch {
	case c.Type == "terraform_data" || c.Type == "null_resource":
		return dangerOfStandIn(c.Address)
	case len(words) < 2 || strings.HasPrefix(c.Type, "kubernetes_") || strings.HasPrefix(c.Type, "helm_"):
		return DangerNone // objects inside a cluster
	case isClusterType(words[1:]):
		return DangerCluster
	case slices.ContainsFunc(words[1:], keepsData) && !slices.Contains(attachments, words[len(words)-1]):
		return DangerData
	default:
		return DangerNone
	}
}

// attachments are last words of types that hang on something dangerous without
// being it.
var attachments = []string{
	"attachment", "association", "binding", "member", "membership", "policy", "grant", "permission", "addon", "alias",
	"user", "record", "rule", "notification", "versioning", "acl", "ownership", "controls", "block", "parameter", "option",
	"group", "config", "configuration", "role", "profile", "entry", "snapshot", "schedule", "iam",
}

// isClusterType reports whether the words of a type, without the provider's,
// name a cluster: eks_cluster, container_cluster, kubernetes_cluster_v2,
// rke2_cluster, lke_cluster. Databases call themselves clusters too; they
// deserve the same care.
func isClusterType(words []string) bool {
	for len(words) > 1 && isVersionWord(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	last := words[len(words)-1]
	return last == "cluster" || last == "kubernetes" || last == "oke" || last == "aks" || last == "gke"
}

func isVersionWord(word string) bool {
	return len(word) >= 2 && word[0] == 'v' && strings.Trim(word[1:], "0123456789") == ""
}

func keepsData(word string) bool {
	return slices.Contains([]string{
		"db", "rds", "database", "sql", "postgresql", "mysql", "redis", "mongo", "volume", "disk", "bucket", "filesystem",
		"efs", "dynamodb", "kms", "vault", "zone",
	}, word)
}

// dangerOfStandIn judges resources that represent something else by the last name in
// their address.
func dangerOfStandIn(address string) Danger {
	name := address[strings.LastIndexByte(address, '.')+1:]
	name, _, _ = strings.Cut(name, "[")
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' })
	if len(words) > 0 && words[len(words)-1] == "cluster" || name == "control_plane" {
		return DangerCluster
	}
	return DangerNone
}
