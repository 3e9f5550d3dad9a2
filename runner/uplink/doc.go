// Package uplink brings what an attempt leaves behind to the server: its log, its
// artefacts, the states that the engine writes, and the result.
//
// It owns the folder of an agent, in which all of that lies until the server has it, and
// from which a successor brings a dead agent's attempts to their end; the client of the
// server's protocol; and the state endpoint on loopback, which engines speak to in place of
// the server. The agent opens a session for each attempt that it has claimed. It never
// executes anything, decides nothing of what is claimed, and never drops a state: what the
// server refuses goes to quarantine.
package uplink
