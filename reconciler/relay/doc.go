// Package relay brings what is asked for at one replica to the one that leads the repository
// that it is about.
//
// It owns the way: what is put here is in the store, where it stays until its leader has
// taken it in. The leader looks there each second, and at once at a hint.
//
// The reconciler puts in what it was asked for and does not lead, and receives the rest. It
// never does what is asked, and gives up nothing: what could not be stored is put again by
// whoever has it.
package relay
