// Package schema owns what a template's JSON Schema says of its variables: whether the
// schema can be used and what it costs, the shapes of variables, which of them are
// secret, and in which ways given variables do not fit, in words that people can act
// on.
//
// Packages templates, condition and diff call it. It knows the paths of values, and
// not where in a document they stand: a Violation becomes a fault elsewhere. It never
// looks at the value of a secret, and never fetches a schema.
package schema
