package reconciler

import "github.com/holdfast-dev/holdfast"

// Meant is what outputs say of a cluster, and why some of them say nothing.
func Meant(means map[string]string, outputs []holdfast.Output) (holdfast.Applied, []error) {
	applied := holdfast.Applied{Means: means, Endpoint: "https://former", NodeCount: 9, Kubeconfig: "former"}
	ignored := meant(&applied, outputs)
	return applied, ignored
}
