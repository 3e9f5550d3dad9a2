//go:build !race

package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// letters is a text in which nothing repeats.
func letters(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[rng.IntN(62)]
	}
	return string(b)
}

// TestLargeSecretsTakeLittleMemory: what is looked for is bounded, whatever is secret,
// and is found up to there.
func TestLargeSecretsTakeLittleMemory(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = letters(200, uint64(i)+10)
	}
	for name, c := range map[string]struct {
		secrets  []string
		withheld bool
	}{
		"quotes":          {[]string{strings.Repeat(`"`, 4<<20)}, false},
		"one":             {[]string{letters(1<<20, 1)}, false},
		"escaped":         {[]string{strings.ReplaceAll(letters(1<<20, 2), "a", `"`)}, false},
		"lines":           {[]string{strings.ReplaceAll(letters(1<<20, 3), "a", "\n\t")}, false},
		"beyond what is":  {[]string{letters(8<<20, 4)}, true},
		"many":            {many, true},
		"beyond the text": {[]string{strings.Repeat("ä/\"\n", 2<<20)}, false},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := redact.New(c.secrets)
		last := c.secrets[len(c.secrets)-1]
		end := last[len(last)-min(len(last), 600):]
		got := r.String("it is " + end + "!")
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; grown > 256 {
			t.Errorf("%s: %d MiB are kept", name, grown)
		}
		if r.Withholds() != c.withheld {
			t.Errorf("%s: withheld: %t, want %t", name, r.Withholds(), c.withheld)
		}
		if c.withheld && got != holdfast.SensitiveValue {
			t.Errorf("%s: %.80q is passed on", name, got)
		}
		runtime.KeepAlive(r)
	}
}

// TestALongSecretIsFound: in each of its parts, as it is and in base64.
func TestALongSecretIsFound(t *testing.T) {
	t.Parallel()
	secret := letters(900<<10, 5)
	r := redact.New([]string{secret})
	for _, text := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("a" + secret + "b"))} {
		left := strings.ReplaceAll(r.String("> "+text+" <"), holdfast.SensitiveValue, "")
		if len(left) > len(text)/1000 { // between two pieces, a character of base64 depends on both
			t.Errorf("%d of %d bytes are left: %.200q", len(left), len(text), left)
		}
	}
	if got := r.String("nothing of it"); got != "nothing of it" {
		t.Errorf("%q", got)
	}
}

// TestWithheld: what knows of more secrets than it can look for passes on nothing.
func TestWithheld(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	var out strings.Builder
	w := r.Writer(&out)
	fmt.Fprintln(w, "before")
	r.Add(letters(8<<20, 6))
	for range 3 {
		fmt.Fprintln(w, "behind")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "before\n(sensitive value): what follows is withheld") || strings.Contains(got, "behind") || strings.Count(got, "withheld") != 1 {
		t.Errorf("the log is %q", got)
	}
	if got := r.JSON(json.RawMessage(`{"a": [1, "b"]}`)); string(got) != `"(sensitive value)"` {
		t.Errorf("JSON: %s", got)
	}
	if got := r.Known(""); got != "" {
		t.Errorf("nothing is %q", got)
	}
	spans, err := r.Find(strings.NewReader("behind"))
	if err != nil || len(spans) != 1 || spans[0] != (protocol.LogSpan{From: 0, To: 6}) {
		t.Errorf("found: %v %v", spans, err)
	}
}
