// Package launchdesk answers those who launch the runs of a runner elsewhere.
//
// It owns what such a launcher may ask: for its runner's document and settings, for runs of
// its runner, their tickets, and to say how attempts end of which no agent has called, or
// whose processes are dead. The server's listener of agents calls it once it knows who asks.
//
// Whatever is asked for, it is limited to the caller's runner, and to attempts that were
// launched: a run of another runner does not exist here. It decides nothing itself, and knows
// no HTTP.
package launchdesk
