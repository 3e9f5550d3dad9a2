// Package agentkey is how agents prove by an Ed25519 key who they are.
//
// It owns the form of keys (PEM), the id of a key, and the short-lived tokens (JWT, EdDSA)
// that agents sign and the server verifies. Agents call New, the server Verify, people's
// commands Generate. It never reads a file, and knows neither runners nor requests.
package agentkey
