// Package cloudapi stands for what runners ask of clouds: Amazon EKS and ECS, Google's
// container API, and the authenticators of their Kubernetes clusters. Identities are those of
// package relyingparty: signatures of requests are verified, and roles may do what they were
// given. It is for tests only.
package cloudapi
