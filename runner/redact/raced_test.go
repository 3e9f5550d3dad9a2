//go:build race

package redact_test

// draws is how many texts a test of random ones makes: it takes six times as long
// with the race detector, and has nothing that runs beside something else.
const draws = 40
