// Package outgoing is what Holdfast wants to be seen elsewhere: posts on code hosts, with how
// far each has come, and notifications of channels.
//
// reconciler/publish and reconciler/notify say what is wanted and bring it there, datastore
// keeps it, notify writes messages of it. It is pure, and knows the vocabulary and nobody
// else. What posts say is written by report.
package outgoing
