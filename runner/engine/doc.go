// Package engine finds engines: which of Terraform and OpenTofu a cluster and its code ask
// for, which are installed and what version they answer, and how another one is
// downloaded and verified. It also names what an engine's init prepares.
//
// It owns the folder of downloads and the rules by which one engine is taken and not
// another. The executor asks it once for each attempt. It starts an engine for its
// version only, in an empty folder; for all else an engine is started in a sandbox,
// by the attempt.
package engine
