package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// A resource that does not change is a part of the document as far as a command or a
// provider is given it: what it has there is compared, secrets of it by their hashes.
// While it changes, the change has it.
func TestReadsOfResources(t *testing.T) {
	t.Parallel()
	document := func(action, address, secret string) plandoc.Document {
		values := `{"address":"` + address + `","key":"` + secret + `","size":3}`
		before := values
		if action == "create" {
			before = "null"
		}
		text := fmt.Sprintf(`{"format_version":"1.2","resource_changes":[
			{"address":"module.m[0].a.b","mode":"managed","type":"a","name":"b","change":{"actions":[%q],"before":%s,"after":%s,"after_sensitive":{"key":true}}},
			{"address":"a.run","mode":"managed","type":"a","name":"run","change":{"actions":["create"],"before":null,"after":{}}}],
		"prior_state":{"values":{"root_module":{"child_modules":[{"resources":[
			{"address":"module.m[0].a.b","mode":"managed","type":"a","name":"b","values":%s,"sensitive_values":{"key":true}},
			{"address":"module.m[0].a.b","mode":"managed","type":"a","name":"b","deposed_key":"d","values":{"address":"old"}}]}]}}},
		"configuration":{"root_module":{
			"resources":[{"address":"a.run","mode":"managed","provisioners":[{"type":"local-exec","expressions":{"command":{"references":["module.m[0].o","module.m[0]","module.m"]}}}]}],
			"module_calls":{"m":{"module":{"outputs":{"o":{"expression":{"references":["a.b.address","a.b","resource.a.b.key","resource.a.b"]}}}}}}}}}`,
			action, before, values, values)
		found, err := plan.Read(strings.NewReader(text), plan.Options{Key: printKey})
		if err != nil {
			t.Fatal(err)
		}
		return found.Document
	}
	one := document("no-op", "10.0.0.1", "a-secret-key")
	if diff := cmp.Diff([]string{"module.m[0].a.b"}, addressesOf(one)); diff != "" {
		t.Error(diff)
	}
	if lines := reviewed.Differences(document("no-op", "10.0.0.2", "a-secret-key"), one); len(lines) != 1 ||
		lines[0] != `module.m[0].a.b: the value that was read has changed: address ("10.0.0.2", reviewed was "10.0.0.1")` {
		t.Errorf("differences %q", lines)
	}
	if lines := reviewed.Differences(document("no-op", "10.0.0.1", "another-key"), one); len(lines) != 1 || strings.Contains(lines[0], "another-key") {
		t.Errorf("differences %q", lines)
	}
	created := document("create", "10.0.0.1", "a-secret-key")
	if got := addressesOf(created); len(got) > 0 {
		t.Errorf("what is created is read: %q", got)
	}
	// An apply that failed after it was made continues.
	if !reviewed.Remains(one, created) || reviewed.Remains(document("no-op", "10.0.0.2", "a-secret-key"), created) || reviewed.Remains(document("no-op", "10.0.0.1", "another-key"), created) {
		t.Error("what remains is not compared with what was to be made")
	}
}

// comparedPlan deletes an object, of a module, and imports one.
const comparedPlan = `{"format_version":"1.2","resource_changes":[
	{"address":"module.m[\"k\"].a.b","mode":"managed","type":"a","name":"b","deposed":"d",
		"change":{"actions":["delete"],"before":{"id":"1","size":3,"tags":null,"any":{"x":1}},"after":null,"before_sensitive":{"any":{"x":true}}}},
	{"address":"a.i","mode":"managed","type":"a","name":"i",
		"change":{"actions":["no-op"],"before":{"id":"i-1"},"after":{"id":"i-1"},"importing":{"id":"IMPORT"}}}],
"output_changes":{"o":{"actions":["no-op"],"before":{"a":1},"after":{"a":1}}},
"prior_state":{"values":{"root_module":{"resources":[{"address":"a.i","mode":"managed","type":"a","values":{"id":"i-1"}}],"child_modules":[{"resources":[
	{"address":"module.m[\"k\"].a.b","mode":"managed","type":"a","deposed_key":"d","values":{"id":"1","size":SIZE,"any":{"x":1}},"sensitive_values":{"any":{"x":MARK}}}]}]}}},
"configuration":{"provider_config":{"p":{"name":"p","full_name":"r/x/p"},"module.m:p":{"name":"p","full_name":"r/x/p","module_address":"module.m"},
	"p.w":{"name":"p","full_name":"r/x/p","alias":"w","expressions":{}}},
	"root_module":{"outputs":{"o":{"sensitive":SENSITIVE}},"resources":[{"address":"a.i","mode":"managed","provider_config_key":"p.w"}],
	"module_calls":{"m":{"module":{"resources":[{"address":"a.b","mode":"managed","provider_config_key":"module.m:p"}]}}}}}}`

func TestCompared(t *testing.T) {
	t.Parallel()
	const address, of, root = `module.m["k"].a.b`, "module.m.", `provider["r/x/p"]`
	given := map[string]plan.GivenOutput{"o": {Value: []byte(`{"a": 1}`)}}
	drifted := func(attributes ...plan.DriftedAttribute) *plan.Compared {
		return &plan.Compared{Outputs: given, Drifted: []plan.Drifted{{Address: address, Deposed: "d", Type: "a", Attributes: attributes}}}
	}
	by := func(provider, made string, kept bool) *plan.Compared {
		return &plan.Compared{Outputs: given, Providers: []plan.ProviderUse{{Address: address, Deposed: "d", Provider: provider, Made: made, Kept: kept}}}
	}
	for name, c := range map[string]struct {
		compared *plan.Compared
		replace  []string
		own      bool     // the module has a block for the provider
		says     string   // of an error
		drift    []string // else
	}{
		"honest":                      {compared: &plan.Compared{Outputs: given}},
		"another object":              {compared: &plan.Compared{Outputs: given}, replace: []string{"SIZE", "4"}, says: "the former object"},
		"hidden":                      {compared: &plan.Compared{Outputs: given}, replace: []string{"MARK", "false"}, says: "hides attributes"},
		"nothing was compared":        {replace: []string{"SIZE", "4", "MARK", "false"}},
		"not in the state":            {compared: &plan.Compared{Outputs: given}, replace: []string{`"deposed_key":"d"`, `"deposed_key":"e"`}, says: "not in its state"},
		"as in the given state":       {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte("3")}), replace: []string{"SIZE", "4"}, drift: []string{"size: 3 → 4"}},
		"as in neither":               {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte("5")}), replace: []string{"SIZE", "4"}, says: "the former object"},
		"drift":                       {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte("2")}), drift: []string{"size: 2 → 3"}},
		"drift of any type":           {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte(`{"value":2,"type":"number"}`)}), drift: []string{"size: 2 → 3"}},
		"drift of an object":          {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte(`{"value":2,"type":"x"}`)}), drift: []string{`size: {"type":"x","value":2} → 3`}},
		"hidden drift":                {compared: drifted(plan.DriftedAttribute{Name: "size", Was: []byte("2"), Hidden: true}), drift: []string{`size: "(sensitive value)" → "(sensitive value)"`}},
		"drift of what is hidden":     {compared: drifted(plan.DriftedAttribute{Name: "any", Was: []byte(`{"x":2}`)}), drift: []string{`any: "(sensitive value)" → "(sensitive value)"`}},
		"the output is another one":   {compared: &plan.Compared{Outputs: map[string]plan.GivenOutput{"o": {Value: []byte("1")}}}, says: "said not to change"},
		"the output is new":           {compared: &plan.Compared{}, says: "said not to change"},
		"an output of the state":      {compared: &plan.Compared{Outputs: given}, replace: []string{`"after":{"a":1}}`, `"after":{"a":1},"after_sensitive":true}`}, says: "hides a value"},
		"a sensitive output":          {compared: &plan.Compared{Outputs: given}, replace: []string{`"after":{"a":1}}`, `"after":{"a":1},"after_sensitive":true}`, "SENSITIVE", "true"}},
		"the module above configures": {compared: by(root, root, false)},
		"the module does not":         {compared: by(of+root, of+root, false), says: "another configuration"},
		"it was made by the module":   {compared: by(of+root, of+root, true)},
		"the module configures":       {compared: by(of+root, root, false), own: true},
		"the module above does not":   {compared: by(root, root, false), own: true, says: "another configuration"},
		"an alias":                    {compared: by(root+".w", root, true), says: "another configuration"},
		"an instance":                 {compared: by(root+`["k"]`, root, true)},
		"of no configuration":         {compared: &plan.Compared{Outputs: given, Providers: []plan.ProviderUse{{Address: "a.gone", Provider: root, Made: root + ".w"}}}, says: "another configuration"},
		"an import by an alias":       {compared: &plan.Compared{Outputs: given, Providers: []plan.ProviderUse{{Address: "a.i", Provider: root + ".w"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer(append(c.replace, "SIZE", "3", "MARK", "true", "SENSITIVE", "false", "IMPORT", "i-1")...).Replace(comparedPlan)
			found, err := plan.Read(strings.NewReader(text), plan.Options{
				Key: printKey, Compared: c.compared,
				Code: func([]string) (plan.ModuleCode, bool) {
					return plan.ModuleCode{Configures: map[string]bool{"p": c.own}}, true
				},
			})
			if c.says != "" {
				if !errors.Is(err, plan.ErrUntrusted) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("Read() = %v, want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var drift []string
			for _, change := range plandiff.Plan(found.Document, found.Info).Drift {
				for _, a := range change.Attributes {
					drift = append(drift, fmt.Sprintf("%s: %s → %s", a.Path, a.Before, a.After))
				}
			}
			if diff := cmp.Diff(c.drift, drift); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An import shows the object that was found if that has another id than was asked
// for.
func TestImportOfAnotherObject(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"i-1": "i-1", "vpc/other": `{"id":"vpc/other","object":"i-1"}`} {
		text := strings.NewReplacer("SIZE", "3", "MARK", "true", "SENSITIVE", "false", "IMPORT", id).Replace(comparedPlan)
		found, err := plan.Read(strings.NewReader(text), plan.Options{Key: printKey})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, change := range plandiff.Plan(found.Document, found.Info).Changes {
			got += change.Importing
		}
		if got != want {
			t.Errorf("import of %s is shown as %q, want %q", id, got, want)
		}
	}
}
