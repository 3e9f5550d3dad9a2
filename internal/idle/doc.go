// Package idle gives the memory that a process does not use back to the machine once the
// process has little to do: the runtime keeps what the last large piece of work took, and gives
// it back slowly; and the pages of the program that a start has read stay mapped although
// nothing needs them again.
//
// It owns when that is done, by how much is allocated. The commands that serve, and that are an
// agent, start it. It never looks at what the process does, and holds up nothing except for the
// time of one collection of garbage.
package idle
