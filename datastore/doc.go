// Package datastore keeps what must survive: the records of clusters, runs,
// pull requests, posts and commands, and the states of Holdfast's own backend
// in SQL; the plans, bundles and states themselves in a bucket or, if they are
// small, next to their records; and the logs of runs while they are written.
//
// What people and engines wrote is encrypted at rest: documents with their
// variables, plans, outputs, states, comments. In plain text are only what is
// looked up and counted (names, labels, statuses, times, the addresses and ids
// of resources) and the audit trail. Agents redact plans and logs before they
// send them; here logs are encrypted, too.
//
// A [Store] has a part for each kind of record, and a part has the files of its kind:
// clusters.go and runs.go are [ClusterStore] and [RunStore], and so on. What has to happen
// at once is one transaction of one part. sql.go has the database, migrations its tables.
// The reconciler, the server and the local forge call it through the small interfaces that
// they declare; it knows nothing of them, of Git or of engines, and decides nothing.
package datastore
