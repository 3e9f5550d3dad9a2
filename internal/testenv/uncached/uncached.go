// Package uncached is for tests that look at very many files.
package uncached

import "flag"

// Package keeps `go test` from caching the result of this package's tests; TestMain calls it.
//
// To decide later whether a cached result still counts, go test has each file written down
// that a test looks at, and examines all of them: for packages that keep Git repositories,
// that took as long as the tests themselves.
func Package() {
	flag.Parse()
	_ = flag.Set("test.testlogfile", "") // all test binaries have it
}
