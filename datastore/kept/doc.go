// Package kept holds pull requests as they were last decoded: to decrypt and decode a large
// one takes a hundred times as long as to read its row.
//
// It owns what is kept and for how long: the records that were used last, within a bound in
// bytes. A record is found by a mark of the exact bytes that it was decoded from, which the
// caller compares with those of its row: it is never older than the row. Each caller gets a
// copy. The datastore calls it. It reads and decodes nothing.
package kept
