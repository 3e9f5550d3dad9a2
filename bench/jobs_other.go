//go:build !linux

package main

// jobs needs a server that the tests start on Linux alone.
func (b *bench) jobs(s *stage) { s.Fatal("Jobs are measured on Linux only") }
