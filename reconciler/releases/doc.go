// Package releases finds the released versions of templates.
//
// It owns which tag of which watched repository releases a version, the commit
// that the tag was recorded with when the version was first used, and what is wrong
// with a version: its tag has moved or was deleted, or its template has faults. A
// Reader resolves what documents name; a Look answers, for one pass over a fleet,
// which versions there are and to which one a cluster may go. Upgrades, impacts and
// the list of templates ask it. It never fetches and never changes a repository.
package releases
