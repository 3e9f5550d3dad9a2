// Package issuer makes Holdfast an issuer of OpenID Connect tokens, by which the engine of a
// run proves to a cloud or a secret store who it is.
//
// It owns the keys that sign (made, published, rotated, dropped), the tokens, and the two
// documents by which others verify them: discovery and JWKS. The server's public listener
// serves these, its agents' listener asks for tokens, and serve wires it. What a token says is
// package claims'.
//
// Replicas have the same keys: a key is made by a conditional write, its times are the
// database's, and it is published long before it signs. What was read last is served while
// the database is unavailable.
//
// It never signs for an audience that the configuration does not give to the run, nor
// anything that an agent writes: all claims are of the run's record. Tokens of the server
// itself, by which it starts the runs of a runner, have a subject that no run has.
package issuer
