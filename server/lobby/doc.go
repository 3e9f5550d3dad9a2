// Package lobby is where connections wait until they have shown who they are.
//
// It owns a listener whose connections cost next to nothing before their first byte, and
// little until Known is called for a request of theirs: beyond its bounds the oldest
// that waits, or that is a stranger still, is closed. Package server puts one in front
// of each TCP listener; whoever checks a credential calls Known: the server for tokens,
// the webhook handler for signatures. It never reads more than the first byte, and knows
// neither HTTP's contents nor credentials.
package lobby
