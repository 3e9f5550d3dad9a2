//go:build race

package server_test

// raceOverhead is how many times as much memory goroutines take with the race detector.
const raceOverhead = 2
