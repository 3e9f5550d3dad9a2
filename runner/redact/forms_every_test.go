//go:build !race

// What is searched here is long, and searched by one goroutine: the race detector would
// see nothing that it does not see in the other tests.

package redact_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

// TestEveryForm prints secrets in every form, wrapped at the usual columns, and
// in pieces: nothing of them is left.
func TestEveryForm(t *testing.T) {
	t.Parallel()
	random := strings.NewReplacer("\n", "").Replace(pemBody)
	secrets := map[string]string{
		"a password":   `p4$$"w'ö<r>d&/\x`,
		"with a pair":  "correct 🐴 battery 🔋 staple <tag> & more",
		"a token":      "ghs_" + random[:100],
		"a long token": "eyJ" + random,
		"a key":        "-----BEGIN PRIVATE KEY-----\n" + pemBody + "\n-----END PRIVATE KEY-----\n",
	}
	for name, secret := range secrets {
		r := redact.New([]string{secret})
		for _, encoder := range slices.Sorted(maps.Keys(encoders)) {
			printed := encoders[encoder](secret)
			texts := map[string]string{"in a line": printed}
			for between, with := range wraps {
				for _, column := range []int{64, 72, 76} {
					texts[fmt.Sprintf("%s of %d", between, column)] = wrap(strings.TrimSpace(printed), with, column)
				}
			}
			for where, text := range texts {
				window := 12
				if strings.Contains(where, "prefix") { // a line that is short is not secret
					window = 28
				}
				text = "value: " + text + " .\nnext line\n"
				got := r.String(text)
				if part := left(got, printed, window); part != "" || !strings.HasPrefix(got, "value: ") || !strings.HasSuffix(got, "next line\n") {
					t.Errorf("%s, %s, %s: %q of %q is left in %q", name, encoder, where, part, text, got)
				}
				var out bytes.Buffer
				w := r.Writer(&out)
				for rest := text; rest != ""; rest = rest[min(61, len(rest)):] {
					_, _ = io.WriteString(w, rest[:min(61, len(rest))])
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if part := left(out.String(), printed, window); part != "" {
					t.Errorf("%s, %s, %s: %q of %q is left in pieces %q", name, encoder, where, part, text, &out)
				}
			}
		}
	}
}

// What a provisioner prints in short lines is found behind the words that the engine
// puts before each of them, in whatever pieces it comes; its other lines stay as they
// are.
func TestShortLinesOfAProvisioner(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"a password": `p4$$"w'ö<r>d&/\x`, "a token": "ghs_0123456789abcdefghijklmnopqrstuvwxyzABCDEF"}
	for name, secret := range secrets {
		r := redact.New([]string{secret})
		for _, encoder := range []string{"as it is", "upper case", "hex", "hex with colons", "base32", "base64", "JSON"} {
			for _, at := range []string{"null_resource.this (local-exec): ", `module.a["b"].terraform_data.x[0] (remote-exec): `} {
				for _, column := range []int{5, 8, 16, 20} {
					printed := encoders[encoder](secret)
					text := at + "begin\n" + at + wrap(printed, "\n"+at, column) + "\n" + at + "end: (local-exec) is not the end\nmore\n"
					want := at + "begin\n" + at + redacted + "\n" + at + "end: (local-exec) is not the end\nmore\n"
					if got := r.String(text); got != want {
						t.Errorf("%s, %s, %d: %q becomes %q", name, encoder, column, text, got)
					}
					for _, piece := range []int{1, 7, 61} {
						var out bytes.Buffer
						w := r.Writer(&out)
						for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
							_, _ = io.WriteString(w, rest[:min(piece, len(rest))])
						}
						if err := w.Close(); err != nil || out.String() != want {
							t.Errorf("%s, %s, %d, in pieces of %d: %q becomes %q, %v", name, encoder, column, piece, text, &out, err)
						}
					}
				}
			}
		}
	}
}
