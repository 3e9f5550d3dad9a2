package datastore

// SetQuarantine bounds the bytes that an attempt keeps in quarantine.
func SetQuarantine(store *Store, size int64) { store.quarantine = size }
