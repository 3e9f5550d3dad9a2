package address_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore/objects/address"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		name, prefix string
		pathStyle    bool
	}{
		"s3://bucket?region=eu-west-1":                           {"s3://bucket", "", false},
		"s3://bucket/?endpoint=http://127.0.0.1:7070":            {"s3://bucket", "", true},
		"s3://bucket/a/b/?endpoint=https://s3&pathStyle=false":   {"s3://bucket/a/b", "a/b/", false},
		"gs://bucket/team":                                       {"gs://bucket/team", "team/", false},
		"azblob://container?account=acme":                        {"azblob://container", "", false},
		"azblob://container?endpoint=http://127.0.0.1:10000/dev": {"azblob://container", "", true},
	} {
		a, err := address.Parse(raw)
		if err != nil || a.String() != want.name || a.Prefix != want.prefix || a.PathStyle() != want.pathStyle {
			t.Errorf("Parse(%q) = %s, %q, %v, %v; want %+v", raw, a, a.Prefix, a.PathStyle(), err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                  "has the scheme",
		"ftp://bucket":                      `has the scheme "ftp"`,
		"s3://key:hush@bucket":              "has credentials",
		"s3:///folder":                      "names no bucket",
		"s3://bucket#hush":                  "fragment",
		"s3://bucket?region=a&region=b":     "more than once",
		"s3://bucket?secret=hush":           `has the parameter "secret"`,
		"s3://bucket?pathStyle=yes":         "pathStyle",
		"s3://bucket?endpoint=host:9000":    "endpoint",
		"s3://b?endpoint=http://u:hush@h":   "endpoint",
		"gs://bucket?region=a":              `has the parameter "region"`,
		"azblob://container":                "storage account",
		"s3://bu cket/%zz?secret=hush":      "is not a URL",
		"azblob://c?account=a&sas=sig=hush": `has the parameter "sas"`,
	} {
		_, err := address.Parse(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want an error with %q", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("Parse(%q) tells what is secret: %v", raw, err)
		}
	}
}
