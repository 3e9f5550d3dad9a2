package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

// TestFind states that a text that was passed on is searched as one that is written.
func TestFind(t *testing.T) {
	t.Parallel()
	const secret = "correct horse battery"
	r := redact.New(nil)
	if got, err := r.Find(strings.NewReader(secret)); err != nil || len(got) > 0 {
		t.Errorf("without secrets: %v, %v", got, err)
	}
	r.Add(secret)
	twice := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(secret))))
	const window = 1 << 20
	var text strings.Builder
	var want []string
	for i, form := range []string{secret, secret + secret, "correct horse\nbattery", twice, strings.ToUpper(secret)} {
		text.WriteString(strings.Repeat("x", (i+1)*window-text.Len()-10) + " ") // over the end of a part
		text.WriteString(form)
		want = append(want, form)
	}
	text.WriteString("\n")
	spans, err := r.Find(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range spans {
		got = append(got, text.String()[s.From:s.To])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
