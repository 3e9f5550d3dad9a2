// Package gcs is a driver of gocloud.dev/blob for Google Cloud Storage, over its JSON API.
//
// It does what the room objects asks of a bucket, and no more: whole objects, written by
// one request with their checksum; reading from an offset; pages of a list; deleting. The
// driver of gocloud.dev does the same by Google's client, which brings gRPC and its service
// meshes into the program: four times the code of all other stores together.
//
// The package retries nothing. Errors of the service are an [Error], everything else is
// from the client of HTTP.
package gcs
