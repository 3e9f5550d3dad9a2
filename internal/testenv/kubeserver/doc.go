// Package kubeserver runs a real Kubernetes API server for tests, with etcd and the
// controllers that Jobs need, on loopback and without any privilege. There is no
// scheduler and no kubelet: command kubelet of internal/testenv stands in for both.
package kubeserver
