//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"testing"
)

// engineVerb is the variable that makes this test program an engine: what it
// does is a function of engines.
const engineVerb = "SANDBOX_TEST_ENGINE"

// engines are what a test program does when it is started as an engine. Each
// returns its exit code.
var engines = map[string]func(args []string) int{
	"say": func(args []string) int {
		fmt.Println(args)
		return 0
	},
}

func TestMain(m *testing.M) {
	if verb := os.Getenv(engineVerb); verb != "" {
		os.Exit(engines[verb](os.Args[1:]))
	}
	os.Exit(m.Run())
}
