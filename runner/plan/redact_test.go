package plan_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// TestRedactorCorpus plants 200 secrets wherever an engine can print one, and
// reads the log in small pieces, the plan JSON, and the Plan.
func TestRedactorCorpus(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(7, 7))
	var log strings.Builder
	var secrets, known []string
	resources, variables := []any{}, map[string]any{}
	for i := range 200 {
		secret := corpusSecret(random, i)
		secrets = append(secrets, secret)
		quotedSecret, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 0, 1: // known from the environment: anywhere in the log, in any form
			known = append(known, secret)
			fmt.Fprintf(&log, "null_resource.x (local-exec): echo %s\n", secret)
			fmt.Fprintf(&log, "%s\n", quotedSecret)
			fmt.Fprintf(&log, "GET https://x/?q=%s&y=%s\n", url.QueryEscape(secret), url.PathEscape(secret))
			fmt.Fprintf(&log, "Basic %s\n", base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(i)+":"+secret)))
			fmt.Fprintf(&log, "│ Error: invalid value %q\n", secret)
			variables[fmt.Sprintf("plain_%d", i)] = map[string]any{"value": "x " + secret + " y"}
		case 2: // marked in the plan
			resources = append(resources, corpusResource(i, map[string]any{"user": "u", "opaque": secret, "copy": "https://" + secret + "@h"},
				map[string]any{"opaque": true}))
		case 3: // named
			fmt.Fprintf(&log, "  + admin_password = %s\n", quotedSecret)
			fmt.Fprintf(&log, "      ~ client_secret = %s -> %s\n", quotedSecret, quotedSecret)
			resources = append(resources, corpusResource(i, map[string]any{"nested": map[string]any{"api_token": secret}}, map[string]any{}))
			variables[fmt.Sprintf("token_%d_secret", i)] = map[string]any{"value": secret}
		}
	}
	r := redact.New(known)
	raw, err := json.Marshal(map[string]any{
		"format_version": "1.2", "resource_changes": resources, "resource_drift": resources, "variables": variables,
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := plan.Read(bytes.NewReader(raw), plan.Options{Key: printKey, Redactor: r, Text: log.String()})
	if err != nil {
		t.Fatal(err)
	}
	var document bytes.Buffer
	if err := found.Document.Encode(&document); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(found.Info)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := json.Marshal(plandiff.Plan(found.Document, found.Info))
	if err != nil {
		t.Fatal(err)
	}
	var streamed bytes.Buffer
	w := r.Writer(&streamed)
	for text := log.String(); text != ""; {
		n := min(len(text), 1+random.IntN(40))
		_, _ = io.WriteString(w, text[:n])
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"document": document.String(), "information": string(info), "plan": string(summary), "log": streamed.String()} {
		for i, secret := range secrets {
			if form := leak(text, secret); form != "" {
				t.Errorf("%s: secret %d (%q) is there as %q", where, i, secret, form)
			}
		}
	}
}

func corpusSecret(random *rand.Rand, i int) string {
	var raw [18]byte
	for j := range raw {
		raw[j] = byte(random.UintN(256))
	}
	switch i % 7 {
	case 0:
		return hex.EncodeToString(raw[:])
	case 1:
		return base64.StdEncoding.EncodeToString(raw[:])
	case 2:
		return "pass phrase " + hex.EncodeToString(raw[:6])
	case 3:
		return "-----BEGIN KEY-----\n" + base64.StdEncoding.EncodeToString(raw[:]) + "\n-----END KEY-----\n"
	case 4:
		return hex.EncodeToString(raw[:4])
	case 5:
		return `q"uote\` + hex.EncodeToString(raw[:5]) + `<&>`
	default:
		return "päß-wört-" + hex.EncodeToString(raw[:5])
	}
}

// TestMoreSecretsThanAreLookedFor: a plan of which nothing could be shown is not read.
func TestMoreSecretsThanAreLookedFor(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 8))
	value := make([]byte, 6<<20)
	for i := range value {
		value[i] = byte('0' + random.IntN(75))
	}
	text, err := json.Marshal(map[string]any{"format_version": "1.2", "resource_changes": []any{
		corpusResource(1, map[string]any{"token": string(value)}, map[string]any{"token": true}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.Read(bytes.NewReader(text), plan.Options{Key: []byte("key")})
	if err == nil || !strings.Contains(err.Error(), "more secret values than can be kept out of what is shown") {
		t.Errorf("read: %v", err)
	}
}

func corpusResource(i int, values, marks map[string]any) map[string]any {
	return map[string]any{
		"address": fmt.Sprintf("x_y.z[%d]", i), "mode": "managed", "type": "x_y", "change": map[string]any{
			"actions": []string{"update"}, "before": values, "after": values, "before_sensitive": marks, "after_sensitive": marks,
		},
	}
}

// leak returns the form in which secret is in text; empty if it is not.
func leak(text, secret string) string {
	marshalled, _ := json.Marshal(secret)
	forms := []string{
		secret, strings.Trim(string(marshalled), `"`), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%q", secret),
	}
	if lines := strings.Split(secret, "\n"); len(lines) > 1 {
		forms = append(forms, lines[1])
	}
	for _, form := range forms {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}
