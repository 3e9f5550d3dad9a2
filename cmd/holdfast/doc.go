// Command holdfast is Holdfast: the server, its agents, and the client with which
// people look at a fleet and command it.
//
// It owns the root command, the exit codes and the commands that command a server:
// plan, apply, approve, cancel, suspend, unlock, state, logs. What they have in common
// is in cli, how answers are printed in table; get and describe are in show, what needs
// no server in offline, what authors of templates use in template, and what serve wires
// in serve. Only people, scripts and units of systemd call it: no package imports it. It
// never decides about a cluster: a command asks the server, by the client of its API,
// and prints what it answers.
package main
