// Package local starts an agent on the server's machine and keeps it running.
//
// It owns the agent's process and the permissions of its folder: the agent has a session of
// its own, is adopted by a server that starts while it lives, and is started again when it
// dies or hangs. The server starts one Process for each of its agents. It never speaks to
// the agent but over its standard input and by signals, stops it only when it is told to,
// and knows nothing of runs.
package local
