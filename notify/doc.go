// Package notify sends messages to channels outside of code hosts: rooms of Slack
// and of Microsoft Teams, and plain webhooks. Each gets its host's own format.
//
// It owns how a message looks and how it is sent: one request with a deadline, no
// redirects, and a verdict on the answer, by which the caller tries again or does not. The
// notifier of the reconciler calls it, with what it has decided to send.
//
// It keeps nothing, retries nothing, and decides nothing. What it is given is other
// people's text: none of it becomes markup, mentions anybody, or becomes a link. An address
// is a secret, and is in no error.
package notify
