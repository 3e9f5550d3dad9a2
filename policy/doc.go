// Package policy evaluates policies, in Rego, over what a plan would do.
//
// It owns what policies are given (Input), how files become a Set, which rules of them are
// policies and what their answers mean (Set.Evaluate), and how they are tested (Set.Test).
// Its callers are the process in which policies are evaluated (package policy/confined) and
// the commands for people who write policies.
//
// It is pure: a policy has no network, no clock and no chance, and the same set says the same
// of the same input. It cannot bound what a policy uses of memory, nor stop all that a policy
// may begin: evaluate an untrusted policy in its own process. It never decides whether a plan
// is applied, and never takes a policy that could not answer for one that agrees.
package policy
