// Package diff owns how two versions of a template differ for those who use it: what
// changes of its variables, rules, providers, modules and outputs, what of that may
// break documents, and what its changelog says of the versions between.
//
// The reconciler and the commands call it. It compares what was read (a
// templates.Blueprint), and reads no tree itself. How the root modules of one cluster
// differ is templates.Compare's to say.
package diff
