package main

import (
	"slices"
	"strings"
	"testing"
)

// TestAClaimAsksNoCodeHost: an agent that asks for work waits for no code host and for no
// Git server. One that hangs would keep all agents waiting, also those that could execute
// something else meanwhile. A function that is handed on counts as called.
func TestAClaimAsksNoCodeHost(t *testing.T) {
	t.Parallel()
	code := loadCode(t)
	for name, handed := range code.handed {
		code.calls[name] = append(code.calls[name], handed...)
	}
	code.link()
	for name := range code.talks {
		if !isNamed(codeHosts, name) {
			delete(code.talks, name)
		}
	}
	code.spread()
	const claim = "reconciler/dispatch.Dispatcher.Claim"
	if _, asks := code.talks[claim]; asks {
		t.Error(strings.Join(code.way(claim), " → "))
	}
	for _, name := range []string{"reconciler/act.Loop.Reconcile", "reconciler/act.Loop.Merges", "reconciler/publish.Publisher.Run"} {
		if _, asks := code.talks[name]; !asks {
			t.Errorf("%s asks a code host, and that was not found", name)
		}
	}
	for _, name := range []string{"reconciler/act.Loop.Stopped", "reconciler/act.Loop.Assignment"} {
		if !code.reaches(claim, name) {
			t.Errorf("%s calls %s, and that was not found", claim, name)
		}
	}
}

// isNamed reports whether a list names a function, or all of its type.
func isNamed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(known string) bool {
		return known == name || strings.HasSuffix(known, ".") && strings.HasPrefix(name, known)
	})
}

// way is how a function comes to wait for the network.
func (p *program) way(name string) []string {
	way := []string{name}
	for next := p.talks[name]; next != "" && len(way) < 24; next = p.talks[next] {
		way = append(way, next)
	}
	return way
}

// reaches reports whether a function calls another one, however far down.
func (p *program) reaches(from, to string) bool {
	seen, todo := map[string]bool{}, []string{from}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, c := range p.calls[name] {
			todo = append(todo, c.to)
		}
	}
	return seen[to]
}
