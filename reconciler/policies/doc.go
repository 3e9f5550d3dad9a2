// Package policies says which policies are evaluated over the plans of a cluster.
//
// It owns what holdfast.yaml binds: sets of policies, each in a folder of a watched repository
// and at a version or at the head of its tracked branch, and the ones that Holdfast ships; and
// for whose clusters they are. The rooms that read documents, make decisions and hand out runs
// ask it. It reads repositories as they were last fetched. It evaluates nothing, and decides
// nothing.
package policies
