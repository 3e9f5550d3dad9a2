package sandbox

import (
	"io"
	"strings"
	"testing"
)

// TestListener says words in pieces, and as whole.
func TestListener(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, test := range map[string]struct {
		said   []string
		code   int
		limits Limits
		want   Exit
	}{
		"nothing":             {code: 1, limits: Limits{Memory: 1, Processes: 1}},
		"Go":                  {said: []string{"fatal error: runtime: out of memory\n"}, code: 2, limits: Limits{Memory: 1}, want: Exit{OutOfMemory: Probably}},
		"in pieces":           {said: []string{long + "fork: cannot al", "l", "ocate memory" + long}, code: 1, limits: Limits{Memory: 1}, want: Exit{OutOfMemory: Probably}},
		"one byte at a time":  {said: strings.Split("out of memory", ""), code: 1, limits: Limits{Memory: 1}, want: Exit{OutOfMemory: Probably}},
		"it ended well":       {said: []string{"out of memory"}, limits: Limits{Memory: 1}},
		"there is no limit":   {said: []string{"out of memory"}, code: 1, limits: Limits{Processes: 1}},
		"processes":           {said: []string{"fork: Resource temporarily unavailable"}, code: 1, limits: Limits{Processes: 1}, want: Exit{OutOfProcesses: Probably}},
		"coreutils":           {said: []string{"tail: memory exhausted\n"}, code: 1, limits: Limits{Memory: 1}, want: Exit{OutOfMemory: Probably}},
		"perl":                {said: []string{"Out of memory in perl:sv"}, code: 1, limits: Limits{Memory: 1}, want: Exit{OutOfMemory: Probably}},
		"a shell":             {said: []string{"sh: 1: Cannot fork\n"}, code: 2, limits: Limits{Processes: 1}, want: Exit{OutOfProcesses: Probably}},
		"not next to another": {said: []string{"out of ", long, "memory"}, code: 1, limits: Limits{Memory: 1}},
	} {
		var l listener
		w := l.hear(io.Discard)
		for _, s := range test.said {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		got := Exit{Code: test.code}
		l.conclude(&got, test.limits)
		test.want.Code = test.code
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
