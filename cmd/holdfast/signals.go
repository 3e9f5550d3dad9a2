package main

import (
	"os"
	"os/signal"
	"syscall"
)

// onSecondSignal calls do at the second SIGINT or SIGTERM, and at each one
// after that: the first asks to stop, the next ones to wait no longer. Call the
// returned function to stop listening.
func onSecondSignal(do func()) (stop func()) {
	signals := make(chan os.Signal, 4)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		first := true
		for range signals {
			if !first {
				do()
			}
			first = false
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
