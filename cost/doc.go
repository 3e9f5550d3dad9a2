// Package cost says what a plan changes of the monthly price of a cluster, from the values
// before and after in its plan document.
//
// It owns which resources of the clouds are billed, by what (Estimate), how ranges are
// counted, and how costs of several clusters are added (Sum). Prices come from a chain of
// tables (package price): a price book, a cache, the embedded table. The gate, comments, the
// API and the commands are its callers.
//
// It is pure: it asks no network and no clock, and the same document with the same prices
// has the same cost. It never adds up two currencies, never takes what is not known for
// zero, and never decides whether a cost is too high.
package cost
