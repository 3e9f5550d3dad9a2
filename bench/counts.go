package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	counted = 10 // clusters of the pull request that is counted

	startsPerCluster = ": engine starts per cluster"
)

// counts counts how often engines are started, and how many calls the code host gets, for
// each cluster of a pull request and of its merge. The engine is a script that notes its
// subcommand and becomes the real one, for which runs are not isolated.
func (b *bench) counts(s *stage) {
	engine := s.engine()
	bin := filepath.Join(s.dir, "counting")
	log := filepath.Join(bin, "starts.log")
	s.write(log, "", 0o666)
	s.check(os.Chmod(log, 0o666)) //nolint:gosec // the agent may be another user
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexec %s \"$@\"\n", log, engine)
	s.write(filepath.Join(bin, filepath.Base(engine)), script, 0o755)
	w := s.newWorldWith(fmt.Sprintf("runs: {max: %d}\nagent: {slots: %[1]d}\nisolation: none\nengines: {download: false, dirs: [%q]}\n",
		b.parallel, bin), "clusters/*.yaml", "")
	w.start()
	// Each agent asks for versions once, and prepares once what its runs share.
	first, _ := w.pullRequest(plainModule, 1, "first")
	w.merge(first, "first")
	time.Sleep(quietFor)
	number := 0
	for _, phase := range []struct {
		name string
		act  func()
	}{
		{"pull request", func() { number, _ = w.pullRequest(plainModule, counted, "counted") }},
		{"merge", func() { w.merge(number, "counted") }},
	} {
		s.check(os.Truncate(log, 0))
		w.host.ResetCalls()
		phase.act()
		time.Sleep(quietFor) // what is posted last, too
		data, err := os.ReadFile(log)
		s.check(err)
		starts := strings.Fields(string(data))
		calls := w.host.CallCount()
		fmt.Fprintf(b.log, "%s of %d clusters: engine %v; calls %v\n", phase.name, counted, tally(starts), w.host.Calls())
		s.add(
			figure{Name: phase.name + startsPerCluster, N: counted, Value: float64(len(starts)) / counted},
			figure{Name: phase.name + ": calls of the code host per cluster", N: counted, Value: float64(calls) / counted})
	}
	w.stop()
}

func tally(words []string) map[string]int {
	counts := make(map[string]int)
	for _, word := range words {
		counts[word]++
	}
	return counts
}
