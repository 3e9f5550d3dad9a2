package location_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// TestAmbient: where the arguments do not say which state it is, the environment of the
// engine may.
func TestAmbient(t *testing.T) {
	t.Parallel()
	of := func(kind string, c config) string {
		return location.Of(location.Backend{Kind: kind, Config: c, Home: "infra/a", Scope: "p/e"})
	}
	for name, want := range map[string]bool{
		"":                                     false,
		"clusters/a":                           false,
		"pg:infra/a":                           true, // as an earlier version called it
		of("pg", config{}):                     true,
		of("pg", config{"conn_str": "host=h"}): true,
		of("pg", config{"conn_str": "postgres:///d"}):                                         true,
		of("pg", config{"conn_str": "postgres://h/d"}):                                        false,
		of("http", config{}):                                                                  true,
		of("http", config{"address": "https://h/s"}):                                          false,
		of("consul", config{"path": "s"}):                                                     true,
		of("consul", config{"path": "s", "address": "h:8500"}):                                false,
		of("kubernetes", config{"secret_suffix": "s", "namespace": "n"}):                      true,
		of("kubernetes", config{"secret_suffix": "s", "config_path": "/k"}):                   false,
		of("kubernetes", config{"secret_suffix": "s", "in_cluster_config": true}):             false,
		of("s3", config{"bucket": "b", "key": "k"}):                                           false,
		of("gcs", config{"bucket": "b"}):                                                      false,
		of("azurerm", config{"storage_account_name": "a", "container_name": "c", "key": "k"}): false,
		of("remote", config{"organization": "o", "workspaces.name": "w"}):                     false,
		of("remote", config{"workspaces.name": "w"}):                                          true,
		of("local", config{"path": "/s"}):                                                     false,
		of("inmem", config{}):                                                                 false,
		of("state_store", config{}):                                                           true,
	} {
		if got := location.Ambient(name); got != want {
			t.Errorf("the environment has a say in %q: %t", name, got)
		}
	}
}

func TestOther(t *testing.T) {
	t.Parallel()
	at := func(name, environment string) location.Place {
		return location.PlaceOf(name, holdfast.Cluster{Project: "p", Environment: environment})
	}
	for name, c := range map[string]struct {
		is, to location.Place
		want   bool
	}{
		"the same":                     {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k", "e"), false},
		"another key":                  {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=l", "e"), true},
		"another environment":          {at("consul:path=s", "e"), at("consul:path=s", "f"), true},
		"another, and it has no say":   {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k", "f"), false},
		"another name":                 {at("clusters/a", "e"), at("clusters/b", "f"), false},
		"from Holdfast's own":          {at("clusters/a", "e"), at("consul:path=s", "e"), true},
		"nobody knows where it is":     {at("", "e"), at("consul:path=s", "f"), false},
		"nobody knows where it is now": {at("consul:path=s", "f"), at("", "e"), false},
	} {
		if got := location.Other(c.is, c.to); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
