// Package record writes the records of clusters and runs by the rules that hold
// whoever writes them.
//
// It owns what follows from a record when it is saved: its phase, its conditions, the
// time of its next drift check and the entries of its history; how a run is
// canceled; which time a new run gets; and the words of the audit trail. Intake,
// the act of a decision, drift and commands write through it.
//
// It decides nothing and queues nothing: what follows from a run's end is
// asked for through Options.Ended.
package record
