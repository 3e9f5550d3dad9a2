package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// readsPlan has a change, what data sources said, and code.
func readsPlan(configuration, said string) string {
	return `{"format_version":"1.2","resource_changes":[
		{"address":"x.y","mode":"managed","type":"x","name":"y","change":{"actions":["create"],"before":null,"after":{}}},
		{"address":"data.a.late","mode":"data","type":"a","name":"late","change":{"actions":["read"],"before":null,"after":{"query":"q"},"after_unknown":{"answer":true}}}],
	"prior_state":{"values":{"root_module":{
		"resources":[{"address":"data.a.b[\"k.l\"]","mode":"data","type":"a","name":"b","values":{"host":"` + said + `","token":"t-` + said + `","at":"` + said + `"},"sensitive_values":{"token":true}}],
		"child_modules":[{"address":"module.m[0]","resources":[{"address":"module.m[0].data.a.c","mode":"data","type":"a","name":"c","values":{"host":"h"}}]}]}}},
	"configuration":` + configuration + `}`
}

func addressesOf(d plandoc.Document) []string {
	var all []string
	for _, r := range d.Reads {
		all = append(all, r.Address)
	}
	return all
}

// TestReads states what of what a plan has read is in its document.
func TestReads(t *testing.T) {
	t.Parallel()
	const k = `data.a.b["k.l"]`
	refs := func(list ...string) string { return `{"references":["` + strings.Join(list, `","`) + `"]}` }
	b := refs(`data.a.b[\"k.l\"].host`, `data.a.b[\"k.l\"]`, `data.a.b`)
	resource := func(rest string) string { return `{"root_module":{"resources":[{"address":"x.y",` + rest + `}]}}` }
	for name, c := range map[string]struct {
		configuration string
		code          *plan.ModuleCode
		want          []string
	}{
		"nothing is given":      {configuration: resource(`"expressions":{"a":` + b + `}`)},
		"a provisioner":         {configuration: resource(`"provisioners":[{"type":"local-exec","expressions":{"command":` + b + `}}]`), want: []string{k}},
		"a write-only argument": {configuration: resource(`"expressions":{"password_wo":` + b + `}`), want: []string{k}},
		"the one of azapi":      {configuration: resource(`"expressions":{"sensitive_body":` + b + `}`), want: []string{k}},
		"a write-only argument in a block": {
			configuration: resource(`"expressions":{"block":[{"inner":{"password_wo":` + b + `}}]}`), want: []string{k},
		},
		"names that begin alike": {
			configuration: resource(`"provisioners":[{"type":"local-exec","expressions":{"command":` +
				refs("data.a.late2.answer", "data.a.late2", "data.a.late.answer", "data.a.late", "var.s2", "var.s") + `}}]`),
			want: []string{"data.a.late", "var.s"},
		},
		"a name that begins another": {
			configuration: resource(`"provisioners":[{"type":"local-exec","expressions":{"command":` + refs("data.a.late2", "data.a.late", "var.s2", "var.s") + `}}]`),
			want:          []string{"data.a.late", "var.s"},
		},
		"a provider":            {configuration: `{"provider_config":{"p":{"expressions":{"host":` + b + `,"block":[{"s":` + refs("var.s") + `}]}}}}`, want: []string{k}},
		"a provider's secret":   {configuration: `{"provider_config":{"p":{"expressions":{"token":` + refs("var.s") + `}}}}`},
		"a secret":              {configuration: resource(`"provisioners":[{"type":"local-exec","expressions":{"command":` + refs("var.s") + `}}]`), want: []string{"var.s"}},
		"read while it applies": {configuration: resource(`"provisioners":[{"type":"local-exec","expressions":{"command":` + refs("data.a.late.answer", "data.a.late") + `}}]`), want: []string{"data.a.late"}},
		"for each": {
			configuration: resource(`"for_each_expression":` + b + `,"provisioners":[{"type":"local-exec","expressions":{"command":` + refs("each.value") + `}}]`),
			want:          []string{k},
		},
		"an output of a module": {
			configuration: `{"provider_config":{"p":{"expressions":{"host":` + refs("module.m[0].o", "module.m[0]", "module.m") + `}}},
				"root_module":{"module_calls":{"m":{"module":{"outputs":{"o":{"expression":` + refs("data.a.c.host", "data.a.c") + `},"other":{"expression":` + b + `}}}}}}}`,
			want: []string{"module.m[0].data.a.c"},
		},
		"an argument of a module": {
			configuration: `{"provider_config":{"module.m:p":{"module_address":"module.m","expressions":{"host":` + refs("var.v") + `}}},
				"root_module":{"module_calls":{"m":{"expressions":{"v":` + b + `},"module":{}}}}}`,
			want: []string{k},
		},
		"a local": {
			configuration: `{"provider_config":{"p":{"expressions":{"host":` + refs("local.l") + `}}},"root_module":{}}`,
			code:          &plan.ModuleCode{Locals: map[string][]plan.Reference{"l": {{"data", "a", "b", "host"}}}},
			want:          []string{k},
		},
		"a local of code that is not known": {
			configuration: `{"provider_config":{"p":{"expressions":{"host":` + refs("local.l") + `}}},"root_module":{}}`,
			want:          []string{k, "data.a.late", "module.m[0].data.a.c", "var.s"},
		},
		"a dynamic block of a provider": {
			configuration: `{"provider_config":{"p":{"name":"p"}},"root_module":{}}`,
			code:          &plan.ModuleCode{Providers: []plan.Reference{{"data", "a", "b", "host"}, {"var", "s"}, {"assume_role", "value"}}},
			want:          []string{k},
		},
		"a dynamic block of a resource": {
			configuration: resource(`"expressions":{}`),
			code:          &plan.ModuleCode{WriteOnly: []plan.Reference{{"data", "a", "b", "host"}, {"block", "value"}}},
			want:          []string{k},
		},
		"an ephemeral resource": {
			configuration: `{"provider_config":{"p":{"expressions":{"token":` + refs("ephemeral.e.f.token", "ephemeral.e.f") + `}}},
				"root_module":{"resources":[{"address":"ephemeral.e.f","mode":"ephemeral","expressions":{"id":` + b + `}},
				{"address":"ephemeral.e.other","mode":"ephemeral","expressions":{"id":` + refs("data.a.late.answer", "data.a.late") + `}}]}}`,
			want: []string{k},
		},
		"a connection": {
			configuration: resource(`"provisioners":[{"type":"remote-exec","expressions":{}}]`),
			code:          &plan.ModuleCode{Connections: []plan.Reference{{"data", "a", "c", "host"}, {"data", "a", "b"}}},
			want:          []string{k},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(said string) plandoc.Document {
				options := plan.Options{Key: []byte("key"), Secrets: map[string]string{"s": plan.Hash([]byte("key"), "s")}}
				if c.code != nil {
					options.Code = func(module []string) (plan.ModuleCode, bool) { return *c.code, len(module) == 0 }
				}
				got, err := plan.Read(strings.NewReader(readsPlan(c.configuration, said)), options)
				if err != nil {
					t.Fatal(err)
				}
				return got.Document
			}
			one, same, other := read("1"), read("1"), read("2")
			if diff := cmp.Diff(c.want, addressesOf(one)); diff != "" {
				t.Error(diff)
			}
			if one.Digest() != same.Digest() {
				t.Error("the same plan has another document")
			}
			named := strings.Contains(strings.Join(c.want, " "), k)
			if changed := one.Digest() != other.Digest(); changed != named {
				t.Errorf("a value that changed makes another document: %v, want %v", changed, named)
			}
			lines := strings.Join(reviewed.Differences(other, one), "\n")
			if named != strings.Contains(lines, `host ("2", reviewed was "1")`) || strings.Contains(lines, "token") {
				t.Errorf("differences: %s", lines)
			}
			if reviewed.Remains(other, one) == named || !reviewed.Remains(same, one) {
				t.Error("what remains is not compared with what was read")
			}
			var b strings.Builder
			if err := one.Encode(&b); err != nil {
				t.Fatal(err)
			}
			again, err := plandoc.Decode(strings.NewReader(b.String()))
			if err != nil || again.Digest() != one.Digest() {
				t.Errorf("decoded: %v", err)
			}
		})
	}
}

// TestReadsOfAnotherState: outputs of another state are the same each time, secrets
// among them too.
func TestReadsOfAnotherState(t *testing.T) {
	t.Parallel()
	read := func(kind, token string) plandoc.Document {
		const address = "data.%.net[0]"
		plain := `{"format_version":"1.2","resource_changes":[
			{"address":"x.y","mode":"managed","type":"x","name":"y","change":{"actions":["create"],"before":null,"after":{}}}],
		"prior_state":{"values":{"root_module":{"resources":[{"address":"` + address + `","mode":"data","type":"%","name":"net",
			"values":{"outputs":{"api_token":"` + token + `","host":"h"}},"sensitive_values":{"outputs":{}}}]}}},
		"configuration":{"root_module":{"resources":[{"address":"x.y","provisioners":[{"type":"local-exec",
			"expressions":{"command":{"references":["data.%.net[0].outputs.api_token","data.%.net[0].outputs","data.%.net[0]"]}}}]}]}}}`
		got, err := plan.Read(strings.NewReader(strings.ReplaceAll(plain, "%", kind)), plan.Options{Key: []byte("key")})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Document.Reads) != 1 {
			t.Fatalf("reads %v", addressesOf(got.Document))
		}
		var b strings.Builder
		if err := got.Document.Encode(&b); err != nil || strings.Contains(b.String(), token) {
			t.Errorf("the document has the token: %v", err)
		}
		return got.Document
	}
	one, same, other := read("terraform_remote_state", "hunter-one-22"), read("terraform_remote_state", "hunter-one-22"), read("terraform_remote_state", "hunter-two-22")
	if one.Digest() != same.Digest() || one.Digest() == other.Digest() {
		t.Error("a token of another state is not compared")
	}
	if lines := strings.Join(reviewed.Differences(other, one), "\n"); !strings.Contains(lines, "api_token") || strings.Contains(lines, "hunter") {
		t.Errorf("differences: %s", lines)
	}
	if read("aws_eks_cluster_auth", "hunter-one-22").Digest() != read("aws_eks_cluster_auth", "hunter-two-22").Digest() {
		t.Error("a token that is another one each time is compared")
	}
}

// TestReadsOfFiles: files outside of the bundle that the code of any module reads are
// compared by keyed hashes.
func TestReadsOfFiles(t *testing.T) {
	t.Parallel()
	read := func(hash string) plandoc.Document {
		options := plan.Options{Key: []byte("key"), Code: func(module []string) (plan.ModuleCode, bool) {
			if len(module) == 0 {
				return plan.ModuleCode{}, true
			}
			return plan.ModuleCode{Files: map[string]string{"/opt/job.tpl": hash}}, true
		}}
		got, err := plan.Read(strings.NewReader(readsPlan(`{"root_module":{"module_calls":{"m":{"module":{}}}}}`, "1")), options)
		if err != nil {
			t.Fatal(err)
		}
		return got.Document
	}
	one, other := read("aaaa"), read("bbbb")
	if got := addressesOf(one); len(got) != 1 || got[0] != `file("/opt/job.tpl")` {
		t.Errorf("reads %q", got)
	}
	if one.Digest() != read("aaaa").Digest() || one.Digest() == other.Digest() {
		t.Error("the file is not compared")
	}
	if lines := reviewed.Differences(other, one); len(lines) != 1 || !strings.Contains(lines[0], "/opt/job.tpl") || strings.Contains(lines[0], "aaaa") {
		t.Errorf("differences: %q", lines)
	}
}
