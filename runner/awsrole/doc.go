// Package awsrole assumes a role of AWS by a token of Holdfast's own issuer.
//
// It owns how the role is assumed and renewed, and what errors of AWS mean in our reasons. The
// rooms that work with AWS, runner/eks and runner/ecs, call it; serve says where tokens come
// from. Addresses of AWS are those of its SDK, with the variables that this reads
// (AWS_ENDPOINT_URL_STS and the like, AWS_CA_BUNDLE, proxies).
//
// It never uses another identity of the machine, such as AWS_ACCESS_KEY_ID or the role of an
// instance: a runner could then do what the machine may.
package awsrole
