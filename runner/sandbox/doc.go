// Package sandbox starts an engine, and everything that the engine starts, as
// somebody who is not trusted.
//
// It owns how a start is kept from everything else: users, namespaces, the
// files it sees, its limits, its death. Agents call it for every start of an
// engine; each start is a sandbox of its own, and Starter.Run returns when all
// of it is dead. It never decides what an engine runs on, never reads
// configuration, and never keeps anything of a run.
package sandbox
