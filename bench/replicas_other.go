//go:build !linux

package main

// replicas needs servers that the tests start on Linux alone.
func (b *bench) replicas(s *stage) { s.Fatal("replicas are measured on Linux only") }
