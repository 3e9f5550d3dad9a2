//go:build !race

package redact_test

// draws is how many texts a test of random ones makes.
const draws = 400
