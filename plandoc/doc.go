// Package plandoc is what a plan would do, as agents and the server exchange and keep
// it: a Document of changes with their values, in one canonical encoding, and an Info
// with what the engine said besides.
//
// It owns what makes two plans the same (Digest), what of them an apply would do
// (Fingerprint), how values that are secret or unknown are written (Mark), and
// which documents are accepted (Validate): an agent may send anything.
//
// Package runner/plan makes documents from the engine's JSON, runner/reviewed
// compares them, reconciler/dispatch stores them, and internal/plandiff derives
// from them the holdfast.Plan that people are shown. It is pure, knows the
// vocabulary and nobody else, and never decides whether a plan is applied.
package plandoc
