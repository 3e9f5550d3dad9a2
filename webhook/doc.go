// Package webhook receives the deliveries of code hosts: it verifies them, turns them
// into requests to look again, and stores what people command, before it answers.
// Nothing here waits for work: a delivery is answered in milliseconds, and one that
// gets lost costs time, never a change.
//
// It owns what a delivery may say and who is believed: signatures, sizes, the
// grammar of commands in comments. The public listener of the server calls it, and
// it calls what it is given: a store for commands, a queue for requests. It never
// asks a code host, and never checks permissions: that comes after the answer.
package webhook
