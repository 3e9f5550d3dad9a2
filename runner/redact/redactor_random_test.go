//go:build !race

package redact_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

var texts = flag.Int("redact.texts", 100, "how many texts to draw")

// TestRedactorWriterIsString: however a text is cut, the writer passes on what
// String returns.
func TestRedactorWriterIsString(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	secrets := []string{"aaaaaaaaaa", "abababababab", "first secret\nof two lines", "bbbbbbbbaaaaaaaa", strings.Repeat("long-", 9000)}
	r := redact.New(secrets)
	for range *texts {
		var text strings.Builder
		for range random.IntN(60) {
			switch random.IntN(6) {
			case 0:
				text.WriteString(secrets[random.IntN(len(secrets))])
			case 1:
				text.WriteString("\n")
			case 2:
				s := secrets[random.IntN(4)]
				text.WriteString(s[:random.IntN(len(s))])
			default:
				text.WriteString([]string{"a", "b", "ab ", "password = \"x\" ", "first"}[random.IntN(5)])
			}
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text.String(); rest != ""; {
			n := min(len(rest), 1+random.IntN(1<<random.IntN(12)))
			write(t, w, rest[:n])
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.String(text.String()); once(out.String()) != once(want) {
			t.Fatalf("in pieces: %q\n  at once: %q\n text: %q", out.String(), want, text.String())
		}
	}
}
