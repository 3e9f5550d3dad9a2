package redact_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

// TestNames: connection strings have passwords in them.
func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"conn_str": "host=db user=ann password=hunter2"}`:   true,
		`{"conn_str": "host=db password = hunter2"}`:          true,
		`{"address": "https://host/state?access_token=abc"}`:  true,
		`{"conn_str": "host=db user=ann sslmode=require"}`:    false,
		`{"path": "/states/a=b", "password": null, "key": 1}`: false,
	} {
		if got := redact.Names(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
