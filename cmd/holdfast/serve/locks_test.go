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
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// Engines can connect to whatever the machine can, so a Redis that asks for
// nothing is refused, unless they are trusted anyway.
func TestRedisWithoutPasswordIsRefused(t *testing.T) {
	t.Parallel()
	guarded, open := redisserver.Start(t), redisserver.StartOpen(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(guarded.Password()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped := redisserver.Start(t)
	stopped.Stop()
	tests := map[string]struct {
		url, isolation string
		password       config.Secret
		refused        bool
	}{
		"guarded":              {url: guarded.URL(), isolation: "auto", password: config.Secret{File: file}},
		"open":                 {url: open.URL(), isolation: "auto", refused: true},
		"open, strong mode":    {url: open.URL(), isolation: "slots", refused: true},
		"open, we have one":    {url: open.URL(), isolation: "auto", password: config.Secret{File: file}, refused: true},
		"open, nobody matters": {url: open.URL(), isolation: "none"},
		"not there yet":        {url: stopped.URL(), isolation: "auto"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &services{logger: slog.New(slog.DiscardHandler), cfg: &config.Config{
				Isolation: tt.isolation,
				Lock:      config.Lock{Type: "redis", Redis: config.Redis{URL: tt.url, Password: tt.password}},
			}}
			defer s.close()
			err := s.openLock(t.Context(), &reconciler.Options{})
			if errors.Is(err, lock.ErrOpen) != tt.refused || !tt.refused && err != nil {
				t.Fatalf("openLock() = %v, want a refusal: %t", err, tt.refused)
			}
			if !tt.refused {
				return
			}
			for _, want := range []string{"lock.redis: ", strings.TrimPrefix(tt.url, "redis://"), "requirepass", "isolation: none"} {
				if text := err.Error() + "\n" + hint.Of(err); !strings.Contains(text, want) {
					t.Errorf("%q does not name %q", text, want)
				}
			}
		})
	}
}
