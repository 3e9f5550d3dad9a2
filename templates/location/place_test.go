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
		"the same":            {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k", "e"), false},
		"another key":         {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=l", "e"), true},
		"another environment": {at("consul:path=s", "e"), at("consul:path=s", "f"), true},
		"another, and another store": {
			at("s3:bucket=b,key=k,store=environment", "e"), at("s3:bucket=b,key=k,store=environment", "f"), true,
		},
		"another, and an earlier version knew of no store":  {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k,store=environment", "f"), true},
		"the same, and an earlier version knew of no store": {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k,store=environment", "e"), false},
		"the same, and it has no say any longer":            {at("s3:bucket=b,key=k,store=environment", "e"), at("s3:bucket=b,key=k", "e"), false},
		"another, and it has no say":                        {at("s3:bucket=b,key=k", "e"), at("s3:bucket=b,key=k", "f"), false},
		"another name":                                      {at("clusters/a", "e"), at("clusters/b", "f"), false},
		"from Holdfast's own":                               {at("clusters/a", "e"), at("consul:path=s", "e"), true},
		"nobody knows where it is":                          {at("", "e"), at("consul:path=s", "f"), false},
		"nobody knows where it is now":                      {at("consul:path=s", "f"), at("", "e"), false},
	} {
		if got := location.Other(c.is, c.to); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStoresOfTheEnvironment: a bucket is one of the store that the environment of the engine
// leads to, where no argument says which one that is.
func TestStoresOfTheEnvironment(t *testing.T) {
	t.Parallel()
	bucket := func(name string, value any) config { return config{"bucket": "b", "key": "k", name: value} }
	for name, c := range map[string]struct {
		kind   string
		config config
		varied string
		want   bool
	}{
		"nothing differs":            {"s3", bucket("region", "r"), "", false},
		"an endpoint":                {"s3", bucket("region", "r"), "AWS_ENDPOINT_URL_S3", true},
		"the endpoint of all":        {"s3", bucket("region", "r"), "AWS_ENDPOINT_URL", true},
		"a profile":                  {"s3", bucket("region", "r"), "AWS_PROFILE", true},
		"the file of profiles":       {"s3", bucket("region", "r"), "AWS_CONFIG_FILE", true},
		"a written endpoint":         {"s3", bucket("endpoint", "https://store"), "AWS_ENDPOINT_URL_S3", false},
		"a written block of them":    {"s3", bucket("endpoints", config{"s3": "https://store"}), "AWS_PROFILE", false},
		"an endpoint of others":      {"s3", bucket("endpoints.dynamodb", "https://store"), "AWS_ENDPOINT_URL_S3", true},
		"a written region":           {"s3", bucket("region", "r"), "AWS_REGION", false},
		"a region of another part":   {"s3", config{"bucket": "b", "key": "k"}, "AWS_REGION", true},
		"another backend":            {"gcs", config{"bucket": "b"}, "AWS_PROFILE", false},
		"another context of a file":  {"kubernetes", config{"secret_suffix": "s", "config_path": "/k"}, "KUBE_CTX", true},
		"another cloud":              {"azurerm", config{"storage_account_name": "a", "container_name": "c", "key": "k"}, "ARM_ENVIRONMENT", true},
		"a state of Terraform Cloud": {"cloud", config{"organization": "o", "workspaces.name": "w"}, "TF_CLOUD_HOSTNAME", true},
	} {
		of := func(scope string) string {
			return location.Of(location.Backend{Kind: c.kind, Config: c.config, Home: "infra/a", Scope: scope, Varied: []string{c.varied}})
		}
		if got := location.Ambient(of("p/e")); got != c.want {
			t.Errorf("%s: the environment has a say in %q: %t", name, of("p/e"), got)
		}
		if of("p/e") != of("p/f") {
			t.Errorf("%s: two clusters may have one state as %q and %q", name, of("p/e"), of("p/f"))
		}
	}
}
