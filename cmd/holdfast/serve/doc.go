// Package serve is the server process: what "holdfast serve" wires and runs.
//
// It owns how the parts of a server are made from a configuration, in which order
// they start and end (Run), and what belongs to none of them: folders and identity of
// the server, tokens, certificates, the agents on its machine, and which repository may
// use what. The command serve calls it, and nobody else.
//
// It decides nothing about clusters and speaks no protocol: each part does that
// behind its own options. It parses no command line, ends no process, and does not
// know the other commands; what it says to people it says in its log, in the errors
// that it returns, and in what DescribeForges writes.
package serve
