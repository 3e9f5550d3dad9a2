// Package client is a client of a server's API, for programs in Go.
//
// It owns how a server and a token are found (Connect: settings, environment, client
// file), how calls are made and bounded, and what their errors are: an *Error is the
// server's refusal, an *UnreachableError means that it did not answer; errors.Is finds ErrNotFound,
// ErrLocked and ErrUnavailable of the root package in them. Paths, queries and the
// types of requests and answers are those of package api/v1. The commands of holdfast
// call it, and so may others.
//
// It never prints anything but a warning, retries nothing but a stream of events, follows
// no redirect, and sends a token to no server but the one that the token was written down for.
package client
