// Package gke finds the API server of a cluster of Google Kubernetes Engine, and gets the
// tokens by which it knows a workload identity.
//
// It owns three calls of Google's APIs: the exchange of a token of Holdfast's issuer, the
// impersonation of a service account, and the question where the cluster is. They are plain
// HTTP, since Google's client libraries bring gRPC into the program, and that of tokens does
// not say why one was refused. serve gives a Cluster to runner/kubernetes as the way to an API
// server.
//
// It never speaks to the API server, and never uses another identity of the machine, such as
// GOOGLE_APPLICATION_CREDENTIALS.
package gke
