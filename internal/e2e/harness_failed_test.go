package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// failed has the tests whose worlds ended in failure. Logs of stories are long: the names
// come once more at the end, for people who see only that.
var failed failures

type failures struct {
	mu    sync.Mutex
	names []string
}

func (f *failures) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = append(f.names, name)
}

func (f *failures) print() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) > 0 {
		fmt.Fprintf(os.Stderr, "failed: %s\n", strings.Join(f.names, ", "))
	}
}
