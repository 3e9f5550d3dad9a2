package initcache

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestSettings: what was used last is remembered, and what was forgotten is not.
func TestSettings(t *testing.T) {
	t.Parallel()
	var s Settings
	name := func(n int) holdfast.Digest { return holdfast.Digest(fmt.Sprint(n)) }
	for n := range maxBackends {
		s.Keep(name(n), []byte{byte(n)})
	}
	if s.Get(name(0)) == nil {
		t.Error("the first is forgotten before there are too many")
	}
	s.Keep(name(maxBackends), []byte("one more"))
	if s.Get(name(0)) == nil || s.Get(name(1)) != nil || string(s.Get(name(maxBackends))) != "one more" {
		t.Error("with one too many, not the one that was not used for longest is forgotten")
	}
	s.Forget(name(0))
	s.Forget("")
	if s.Get(name(0)) != nil || len(s.kept) != maxBackends-1 || len(s.used) != len(s.kept) {
		t.Errorf("%d are kept, %d names", len(s.kept), len(s.used))
	}
}
