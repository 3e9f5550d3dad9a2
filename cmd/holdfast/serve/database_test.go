package serve

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// Engines can connect to whatever the machine can, so a database that asks for no password is
// refused, unless they are trusted anyway.
func TestDatabaseWithoutPasswordIsRefused(t *testing.T) {
	t.Parallel()
	guarded, open := postgresserver.New(t, ""), postgresserver.Open(t)
	password, err := guarded.Password()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		datastore config.Datastore
		isolation string
		refused   bool
	}{
		"none":                 {isolation: "auto"},
		"guarded":              {config.Datastore{URL: guarded.URL(), Password: config.Secret{File: file}}, "auto", false},
		"open":                 {config.Datastore{URL: open}, "auto", true},
		"open, we have one":    {config.Datastore{URL: open, Password: config.Secret{File: file}}, "slots", true},
		"open, nobody matters": {config.Datastore{URL: open}, "none", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &config.Config{Isolation: tt.isolation, Datastore: tt.datastore}
			address, err := Database(t.Context(), cfg, slog.New(slog.DiscardHandler))
			if errors.Is(err, postgres.ErrOpen) != tt.refused || !tt.refused && err != nil {
				t.Fatalf("Database() = %v, want a refusal: %t", err, tt.refused)
			}
			if address.URL != tt.datastore.URL && !tt.refused {
				t.Errorf("Database() = %q, want %q", address.URL, tt.datastore.URL)
			}
			for _, want := range []string{"datastore.url", "pg_hba.conf", "datastore.password", "isolation: none"} {
				if text := errorText(err); tt.refused && !strings.Contains(text, want) {
					t.Errorf("%q does not name %q", text, want)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n" + hint.Of(err)
}
