// Package v1 is what version 1 of the HTTP API says and takes: the types of its
// requests and answers, how they are made from Holdfast's records, and the
// operations that there are.
//
// It owns the JSON of the API and of the commands' `-o json`. Records are stored under
// names of their own, which change with the program; those here only grow. Package
// server answers with these types, cmd/holdfast/client reads them, and openapi.json is
// made from them, from their comments and from Operations. Values that a document marks
// as secret, or that have the name of one, are masked where a record is converted, so
// that no answer can forget it.
//
// All times are RFC 3339 in UTC, all sizes are in bytes, and durations are texts such
// as "2h30m0s". It knows the vocabulary and nobody else, and does no input or output.
package v1
