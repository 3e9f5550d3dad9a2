// Package table prints what commands answer: tables, fields, JSON and YAML.
//
// A Printer owns the outputs of the command line, whether they are a terminal, how wide
// it is, and its colours. The rooms of the commands fill it: they choose columns and
// cells, it makes them fit. Texts are shortened first, then columns are left out. Names
// and IDs are never cut, as kubectl and gh do not cut them either: people copy them. So a
// table of which only these are left may be wider than the terminal, which wraps it.
//
// Whatever it prints for people is free of control characters, as texts come from pull
// requests, engines and clouds, and a terminal obeys what it is shown. JSON and YAML have
// the same keys in the same order, and are never shortened.
//
// It knows nothing of clusters and runs, asks no server, and never decides anything.
package table
