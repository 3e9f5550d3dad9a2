package v1

import (
	"encoding/json"
	"testing"
)

// TestReferencesAreShown: where a secret is may be seen by everybody who may see
// the cluster, and what may be one is masked.
func TestReferencesAreShown(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{
		`{"secret": {"env": "DB_PASSWORD"}}`:                 true,
		`{"secret": {"file": "/run/secrets/db"}}`:            true,
		`{"secret": {"store": "vault", "key": "prod/db"}}`:   true,
		`{"secret": "hunter22"}`:                             false,
		`{"secret": {"env": "hunter 22"}}`:                   false,
		`{"secret": {"env": 3}}`:                             false,
		`{"secret": {"file": "hunter22"}}`:                   false,
		`{"secret": {"key": "hunter22"}}`:                    false,
		`{"secret": {"store": "vault"}}`:                     false,
		`{"secret": {"env": "A", "value": "hunter22"}}`:      false,
		`{"secret": {"env": "A"}, "value": "hunter22"}`:      false,
		`{"secret": {"store": "a b", "key": "hunter22"}}`:    false,
		`{"secret": {"store": "vault", "keys": "hunter22"}}`: false,
		`[{"secret": {"env": "A"}}]`:                         false,
		`"hunter22"`:                                         false,
	} {
		var decoded any
		if err := json.Unmarshal([]byte(value), &decoded); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(maskMap(map[string]any{"db_password": decoded})["db_password"])
		if err != nil {
			t.Fatal(err)
		}
		want := `"` + masked + `"`
		if shown {
			var again any
			_ = json.Unmarshal(got, &again)
			reread, _ := json.Marshal(decoded)
			want = string(reread)
		}
		if string(got) != want {
			t.Errorf("%s is shown as %s, want %s", value, got, want)
		}
	}
}
