// Package reviewed compares the plan document that an apply found with the one that
// was reviewed: whether what it found can be what remains of a reviewed apply that
// failed in the middle (Remains), and in words how the two differ (Differences).
//
// Attempts call it. It is pure, it reads valid documents only, and it never decides
// whether anything is applied. Whether two plans are equal it does not say either:
// that is what their digests are for.
package reviewed
