// Package login logs people in by an identity provider (OpenID Connect), and command lines by
// people who have logged in; and says what they may: the roles that the configuration binds to
// groups and people, and what personal tokens are for.
//
// A Desk owns the exchange with the provider (discovery, state, nonce, PKCE, the checks of
// what it answers), that with command lines, and what is on record of people and their tokens.
// It serves the pages of the exchange, and is
// the session.People of the server's sessions, which it begins. serve makes it; nobody else
// knows it. It never stores or logs a token of the provider.
package login
