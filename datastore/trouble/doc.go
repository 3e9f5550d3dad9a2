// Package trouble remembers what was wrong with a database, or its disk, lately: for /readyz, and
// for whoever is refused.
//
// It owns for how long that counts. The datastore tells it how each write ends.
package trouble
