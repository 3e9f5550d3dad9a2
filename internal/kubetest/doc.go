// Package kubetest has the tests that need a Kubernetes API server: `make test-kubernetes`
// runs them.
package kubetest
