// Package kubernetes starts a Kubernetes Job for each attempt that a runner executes.
//
// It owns how an API server is reached, what a Job is made of, how people's Pod templates
// are merged over that and what of them is refused, what is watched of Jobs, Pods and
// events, and which reason follows from that.
//
// The launcher of the reconciler (reconciler/launch) calls Start and Stop and reads
// Launched; cmd/holdfast/serve opens a Cluster for each runner.
//
// It never decides what becomes of an attempt, never starts one again, and never takes a
// Job's word for the death of its processes: only what a kubelet has reported counts.
package kubernetes
