//go:build !race

package server_test

const raceOverhead = 1
