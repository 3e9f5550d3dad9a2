// Package session says who asks the API: by a bearer token, or by the cookie of a login.
//
// It owns the tokens of the configuration, sessions (their cookie, rotation, expiry and end),
// what protects forms against other sites, and the pages to log in with a token and to log
// out. The server asks it for each request; server/login begins sessions for whom an identity
// provider knows; datastore keeps them, of whose ids it has hashes only. Roles are not
// remembered: they are asked for with each request.
//
// It never decides what somebody may do, and never writes a secret to a log, an address or a
// record.
package session
