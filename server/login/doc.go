// Package login logs people in by an identity provider (OpenID Connect), and says what they
// may: the roles that the configuration binds to groups and people.
//
// A Desk owns the exchange with the provider (discovery, state, nonce, PKCE, the checks of
// what it answers) and what is on record of people. It serves the pages of the exchange, and is
// the session.People of the server's sessions, which it begins. serve makes it; nobody else
// knows it. It never stores or logs a token of the provider.
package login
