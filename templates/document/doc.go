// Package document owns what people write about a cluster: it reads documents of kind
// Cluster, says all that is wrong with them at file, line and column, answers what
// their settings mean at a given time (schedules, windows, rules of drift), and edits
// the version of their template in place.
//
// The reconciler, the commands and package templates call it. It reads no template
// and no module: what can only be known with them, such as the types of variables, is
// checked by templates.Resolver, which puts its faults at the places of a Document.
// Nothing here reaches out, and a time is always given.
package document
