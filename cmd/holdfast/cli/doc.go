// Package cli is what all commands share: the environment they run in, how a server is
// reached, and what their errors mean.
//
// App owns inputs, environment, clock and Printer. Besides it there are the flags that
// commands have in common (server, token, output format), the reading of arguments (a
// cluster, a run, a pull request), completion of names, and exit codes. The rooms of the
// commands embed App; main makes it.
//
// It has no command of its own, and never prints an answer.
package cli
