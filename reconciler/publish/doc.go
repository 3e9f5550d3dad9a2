// Package publish keeps true what the forges show: the comment of a pull request,
// the statuses of commits, the issues that tell of drift, and the answers to
// commands.
//
// A Publisher owns what people look at: it is asked for a pull request, a commit
// or a cluster, reads the records, has package report word them, and writes to
// the outbox what should be seen. From there it brings the content to the forge and
// records what is there, and since when. A decision may depend on that, so a
// content counts as seen only when the forge has said so.
//
// The reconciler calls it after each decision, and the commands for their answers; it
// tells through Fleet what it knows of clusters. A Publisher never decides what is done
// with a cluster, never writes a record but those of the outbox, and reads no
// repository except for whether one commit comes before another.
package publish
