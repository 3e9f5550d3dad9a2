package v1_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestDescriptionIsOpenAPI holds the description to the schema of OpenAPI 3.1, and each
// schema in it to that of JSON Schema 2020-12.
func TestDescriptionIsOpenAPI(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/openapi-3.1/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, described := unmarshaled(t, data), unmarshaled(t, v1.OpenAPI())
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi-3.1.json", meta); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(described); err != nil {
		t.Errorf("openapi.json is not OpenAPI 3.1: %#v", err)
	}
	broken := unmarshaled(t, bytes.Replace(v1.OpenAPI(), []byte(`"operationId"`), []byte(`"operationID"`), 1))
	if err := schema.Validate(broken); err == nil {
		t.Error("an unknown key of an operation is not noticed")
	}

	if err := compiler.AddResource("openapi.json", described); err != nil {
		t.Fatal(err)
	}
	names := described.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for name := range names {
		if _, err := compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(names) < 50 {
		t.Errorf("only %d schemas were read", len(names))
	}
	for _, ref := range strings.SplitAfter(string(v1.OpenAPI()), `"$ref": "#/components/schemas/`)[1:] {
		if name, _, _ := strings.Cut(ref, `"`); names[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
}

func unmarshaled(t *testing.T, data []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
