// Package eks finds the API server of a cluster of Amazon Elastic Kubernetes Service, and makes
// the tokens by which it knows a role of AWS.
//
// It owns the question to EKS and the form of the tokens: a request to AWS's Security Token
// Service that is signed here, and sent by the API server's authenticator. serve gives it to
// runner/kubernetes as the way to an API server.
//
// It never speaks to the API server, and never uses another identity than the role.
package eks
