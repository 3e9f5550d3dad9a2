package serve

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/replica"
)

// TestAlone: a server shares its database if nothing that this takes is missing, and else says
// what is.
func TestAlone(t *testing.T) {
	t.Parallel()
	all := config.Config{
		Datastore: config.Datastore{URL: "postgres://x", Blobs: config.Blobs{URL: "s3://b"}}, Lock: config.Lock{Type: "redis"},
	}
	if got := alone(&all); got != "" {
		t.Errorf("with everything: %q", got)
	}
	for _, missing := range []struct {
		words string
		from  func(c *config.Config)
	}{
		{"datastore.blobs.url is not set", func(c *config.Config) { c.Datastore.Blobs.URL = "" }},
		{"lock.type is not redis", func(c *config.Config) { c.Lock.Type = "memory" }},
		{"datastore.url is not set", func(c *config.Config) { c.Datastore.URL = "" }},
	} {
		c := all
		missing.from(&c)
		if got := alone(&c); got != missing.words {
			t.Errorf("alone() = %q, want %q", got, missing.words)
		}
	}
	if got := alone(&config.Config{}); strings.Count(got, " and ") != 2 {
		t.Errorf("with nothing: %q", got)
	}
}

func TestDeadReplicas(t *testing.T) {
	t.Parallel()
	if got := dead([]replica.Replica{{Living: true}, {Living: true}}); got != "" {
		t.Errorf("of living ones: %q", got)
	}
	if got := dead([]replica.Replica{{Living: true}, {}}); !strings.HasPrefix(got, "1 of 2 replicas died") {
		t.Errorf("of a dead one: %q", got)
	}
}

func TestOwnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"127.0.0.1:8081": "127.0.0.1:8081", "hf-0:1": "hf-0:1", "": ""} {
		if got := ownAddress(config.Server{API: config.API{Address: address}}); got != want {
			t.Errorf("ownAddress(%q) = %q, want %q", address, got, want)
		}
	}
	for _, address := range []string{":8081", "0.0.0.0:8081", "[::]:8081"} {
		if got := ownAddress(config.Server{API: config.API{Address: address}}); strings.HasPrefix(got, ":") || strings.HasPrefix(got, "0") || strings.HasPrefix(got, "[") {
			t.Errorf("ownAddress(%q) = %q, want the name of the machine", address, got)
		}
	}
}
