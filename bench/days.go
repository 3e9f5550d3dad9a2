package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// dayFigures is what the simulation of a day reports; see TestDaysOfAFleet.
type dayFigures struct {
	Checks         int
	Wait50, Wait99 time.Duration // simulated
	Pass, PassAll  time.Duration
	Wall           time.Duration
	Database       int64
	Before         int64 // of the database
	Blobs          int64
	Heap           uint64
}

// wholeDay is up to how many clusters whole days are simulated, unless that is
// asked for: of larger fleets some hours tell as much.
const (
	wholeDay   = 1000
	someHours  = 2
	severalDay = 100 // clusters up to which days are simulated until nothing grows
)

// days measures what drift checks cost a fleet that is checked once a day,
// with a clock and an engine that are simulated.
func (b *bench) days(s *stage) {
	program := filepath.Join(s.dir, "days.test")
	s.run("go", "test", "-c", "-o", program, "./reconciler")
	for _, n := range b.fleetSizes {
		days, hours := 1, 24
		switch {
		case n <= severalDay:
			days = 4
		case n > wholeDay && !b.whole:
			hours = someHours
		}
		all := s.simulate(program, n, days, hours)
		first, last := all[0], all[len(all)-1]
		add := func(name string, value float64, unit string) {
			f := figure{Name: driftPrefix + name, N: n, Value: value, Unit: unit}
			s.add(f)
			fmt.Fprintln(b.log, strings.Join(f.cells(), "  "))
		}
		checks := float64(first.Checks)
		add("wait for a check, p50", first.Wait50.Seconds(), "s")
		add("wait for a check, p99", first.Wait99.Seconds(), "s")
		add("pass of the schedule", inMS(first.Pass), "ms")
		add("pass of the schedule, everything due", inMS(last.PassAll), "ms")
		add("1000 checks", first.Wall.Seconds()/checks*1000, "s")
		add("kept of a check, in the database", float64(first.Database-first.Before)/checks/1024, "KiB")
		add("kept of a check, next to it", float64(first.Blobs)/checks/1024, "KiB")
		add("memory that lives after it", float64(last.Heap)/(1<<20), "MiB")
		if days > 3 {
			add("kept more on day 4 than on day 3", float64(all[3].Database+all[3].Blobs)/float64(all[2].Database+all[2].Blobs)*100-100, "%")
		}
	}
}

func (s *stage) simulate(program string, n, days, hours int) []dayFigures {
	out := filepath.Join(s.TempDir(), "days.json")
	cmd := s.command(program, "-test.run", "^TestDaysOfAFleet$", "-test.timeout", "2h", "-day.out", out,
		"-day.clusters", strconv.Itoa(n), "-day.days", strconv.Itoa(days), "-day.hours", strconv.Itoa(hours))
	cmd.Dir = s.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("simulate days of %d clusters: %v: %s", n, err, text)
	}
	data, err := os.ReadFile(out)
	s.check(err)
	var figures []dayFigures
	s.check(json.Unmarshal(data, &figures))
	if len(figures) != days || figures[0].Checks == 0 {
		s.Fatalf("simulate days of %d clusters: %s", n, data)
	}
	return figures
}
