// Package durable makes what was written survive a power cut.
//
// A file that is synced is there after a power cut only if its name is: that is in the
// folder, which is synced apart. The datastore, the store of repositories and agents call
// it, and ask it which boot of the machine this is. It writes nothing itself.
package durable
