package runnerspec

import (
	"strings"
	"time"
)

// Former is a document of a runner that was in force, and whose runs were launched
// elsewhere than they are now.
type Former struct {
	Document Runner    `json:"document"`
	LeftAt   time.Time `json:"leftAt"`
}

// mostFormer bounds the former places that are kept of a runner.
const mostFormer = 8

// Leave returns the former places of a runner that is to have another document: with that
// which it leaves, if it does, and without that where it is to be.
func (r Record) Leave(next Runner, now time.Time) []Former {
	var former []Former
	add := func(f Former) {
		if !f.Document.SamePlace(next) {
			former = append(former, f)
		}
	}
	add(Former{Document: r.Document, LeftAt: now})
	for _, f := range r.Former {
		if !f.Document.SamePlace(r.Document) {
			add(f)
		}
	}
	return former[:min(len(former), mostFormer)]
}

// FormerSince returns the documents of a runner's former places that it has left since then,
// the last one first.
func (r Record) FormerSince(then time.Time) (documents []Runner) {
	for _, f := range r.Former {
		if f.LeftAt.After(then) {
			documents = append(documents, f.Document)
		}
	}
	return documents
}

// SamePlace reports whether two documents of a runner have its runs launched in the same
// place, whatever way leads there and whatever they are made from.
func (r Runner) SamePlace(other Runner) bool {
	if r.ECS != nil && other.ECS != nil && (r.ECS.Region != other.ECS.Region || r.ECS.Cluster != other.ECS.Cluster) {
		return false
	}
	if r.Job == nil || other.Job == nil {
		return true
	}
	return r.Job.Namespace == other.Job.Namespace && r.Kubernetes.apiServer() == other.Kubernetes.apiServer()
}

// apiServer names an API server by what a document says of it.
func (a *KubernetesAccess) apiServer() string {
	switch {
	case a == nil, a.InCluster:
		return ""
	case a.Kubeconfig != nil:
		return "kubeconfig " + a.Kubeconfig.Secret
	case a.GKE != nil:
		return "gke " + a.GKE.Project + "/" + a.GKE.Location + "/" + a.GKE.Name
	case a.EKS != nil:
		return "eks " + a.EKS.Region + "/" + a.EKS.Name + " " + a.EKS.accountOf()
	case a.Server != nil:
		return a.Server.URL
	}
	return ""
}

// accountOf is the account of the role that finds the cluster, which is the cluster's.
func (e *EKSCluster) accountOf() string {
	const at = 4 // arn:aws:iam::ACCOUNT:role/NAME
	if parts := strings.Split(e.RoleARN, ":"); len(parts) > at {
		return parts[at]
	}
	return ""
}
