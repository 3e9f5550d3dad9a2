package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// allowance lets one figure be beyond its bound.
type allowance struct {
	kind kind
	name string
	most int
	why  string
}

// step is what an allowance is rounded up to, so that a change here and there
// does not need another one.
func (k kind) step() int {
	if k == roomLines {
		return 500
	}
	return 1
}

// readAllowed reads the list: kind, name, number and reason, one a line.
func readAllowed(file string) ([]allowance, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []allowance
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 {
			return nil, fmt.Errorf("%s: %q: want kind, name, number and reason", file, line)
		}
		most, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		list = append(list, allowance{kind(words[0]), words[1], most, strings.Join(words[3:], " ")})
	}
	return list, lines.Err()
}

// verdict is what is wrong with the figures and the list.
type verdict struct {
	beyond []string // its bound, and what is allowed
	stale  []string // lines of the list that are not needed
	falls  []string // numbers of the list that can be lowered
}

func judge(measures []measure, list []allowance) verdict {
	var v verdict
	used := map[int]bool{}
	for _, b := range bounds {
		for _, m := range measures {
			if m.kind != b.kind || m.n <= b.most {
				continue
			}
			i := slices.IndexFunc(list, func(a allowance) bool { return a.kind == m.kind && a.name == m.name })
			switch {
			case i < 0:
				v.beyond = append(v.beyond, fmt.Sprintf("%s %s: %d, the bound is %d", m.kind, m.name, m.n, b.most))
				continue
			case m.n > list[i].most:
				v.beyond = append(v.beyond, fmt.Sprintf("%s %s: %d, allowed are %d", m.kind, m.name, m.n, list[i].most))
			case m.n <= list[i].most-m.kind.step():
				v.falls = append(v.falls, fmt.Sprintf("%s %s: %d, allowed are %d", m.kind, m.name, m.n, list[i].most))
			}
			used[i] = true
		}
	}
	for i, a := range list {
		if !used[i] {
			v.stale = append(v.stale, fmt.Sprintf("%s %s", a.kind, a.name))
		}
	}
	return v
}

// lower writes the list without what is not needed, and with lower numbers where
// the figures are lower. No number rises.
func lower(file string, measures []measure) error {
	list, err := readAllowed(file)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		i := slices.IndexFunc(list, func(a allowance) bool {
			return len(words) > 1 && string(a.kind) == words[0] && a.name == words[1]
		})
		if i < 0 {
			out.WriteString(line)
			continue
		}
		a := list[i]
		for _, m := range measures {
			if m.kind == a.kind && m.name == a.name && m.n > boundOf(m.kind) {
				step := m.kind.step()
				most := min(a.most, (m.n+step-1)/step*step)
				fmt.Fprintf(&out, "%-15s %-42s %6d  %s\n", a.kind, a.name, most, a.why)
			}
		}
	}
	return os.WriteFile(file, []byte(out.String()), 0o600)
}

func boundOf(k kind) int {
	for _, b := range bounds {
		if b.kind == k {
			return b.most
		}
	}
	return 0
}
