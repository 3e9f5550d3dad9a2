package main

import (
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	burstSize = 20 // pull requests
	bigOnes   = 5  // pull requests next to a small one

	besideBigOnes = "pull request of one cluster next to 5 of"
)

// burst measures pull requests of one cluster each that are opened at once, until all of
// them show their plans.
func (b *bench) burst(s *stage) {
	var took, floor []time.Duration
	width := 0
	for round := range s.rounds() {
		floor = append(floor, s.floor(plainModule, burstSize, "", planScript, &width))
		w := s.newWorld("")
		w.start()
		var all []proposed
		for i := range burstSize {
			all = append(all, w.propose(plainModule, 1, fmt.Sprintf("burst-%02d", i)))
		}
		began := time.Now()
		for _, p := range all {
			w.open(p)
		}
		for _, p := range all {
			w.planned(p)
		}
		took = append(took, time.Since(began))
		w.stop()
		fmt.Fprintf(b.log, "%d pull requests at once: %s, floor %s\n", burstSize, ms(took[round]), ms(floor[round]))
	}
	f := figure{Name: "burst of pull requests, one cluster each", N: burstSize, Unit: "s", Value: median(took).Seconds()}
	s.add(f.against(median(floor).Seconds()))
}

// neighbours measures a pull request of one cluster that is opened right after some big ones,
// against the same alone.
func (b *bench) neighbours(s *stage) {
	w := s.newWorld("")
	w.start()
	_, first := w.pullRequest(plainModule, 1, "first")
	var alone, crowded []time.Duration
	for round := range s.rounds() {
		_, took := w.pullRequest(plainModule, 1, fmt.Sprintf("alone-%d", round))
		alone = append(alone, took)
		var big []proposed
		for i := range bigOnes {
			big = append(big, w.propose(plainModule, b.big, fmt.Sprintf("big-%d-%d", round, i)))
		}
		small := w.propose(plainModule, 1, fmt.Sprintf("small-%d", round))
		for _, p := range big {
			w.open(p)
		}
		began := time.Now()
		w.open(small)
		w.planned(small)
		crowded = append(crowded, time.Since(began))
		for _, p := range big {
			w.planned(p)
		}
		fmt.Fprintf(b.log, "a pull request of one cluster: first %s, alone %s, next to %d of %d %s\n",
			ms(first), ms(alone[round]), bigOnes, b.big, ms(crowded[round]))
	}
	w.stop()
	f := figure{Name: besideBigOnes, N: b.big, Unit: "s", Value: median(crowded).Seconds()}
	s.add(f.against(median(alone).Seconds()))
}

// hanging measures a pull request of one cluster while the host of another repository
// accepts connections and answers nothing, against the same without that repository.
func (b *bench) hanging(s *stage) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	defer listener.Close()
	go func() {
		var held []net.Conn // otherwise they would be closed when they are collected
		for {
			conn, err := listener.Accept()
			if err != nil {
				for _, conn := range held {
					_ = conn.Close()
				}
				return
			}
			held = append(held, conn)
		}
	}()
	other := fmt.Sprintf("  - {name: acme/silent, forge: github, url: \"http://%s/acme/silent.git\", clusters: [\"clusters/*.yaml\"], webhookSecret: {file: secret}}\n",
		listener.Addr())
	medians := make(map[string]time.Duration)
	for _, more := range []string{"", other} {
		w := s.newWorldWith(more+fmt.Sprintf("runs: {max: %d}\nagent: {slots: %[1]d}\nengines: {download: false}\n", b.parallel), "clusters/*.yaml", "")
		w.start()
		w.pullRequest(plainModule, 1, "first")
		var took []time.Duration
		for round := range s.rounds() {
			_, one := w.pullRequest(plainModule, 1, fmt.Sprintf("later-%d", round))
			took = append(took, one)
		}
		medians[more] = median(took)
		fmt.Fprintf(b.log, "a pull request of one cluster, %d hosts hang: %s\n", strings.Count(more, "silent,"), ms(medians[more]))
		w.stop()
	}
	f := figure{Name: "pull request of one cluster, another repository's host hangs", N: 1, Unit: "s", Value: medians[other].Seconds()}
	s.add(f.against(medians[""].Seconds()))
}
