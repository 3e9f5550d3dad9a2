package library_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
)

var clouds = []string{"aws", "azure", "digitalocean", "gcp", "linode", "local"}

// idle are the inputs that a module takes because all clouds have them, and has
// no use for, with the reason.
var idle = map[string]string{
	"kubernetes/modules/aws/kubernetes network_id":                "EKS finds the network by its subnets",
	"kubernetes/modules/azure/kubernetes network_id":              "AKS finds the network by its subnets",
	"kubernetes/modules/azure/network high_availability":          "what the network consists of is in all zones",
	"kubernetes/modules/digitalocean/kubernetes subnet_ids":       "a VPC has no subnets",
	"kubernetes/modules/digitalocean/kubernetes private_endpoint": "there is none: true is refused",
	"kubernetes/modules/digitalocean/network high_availability":   "a VPC is regional",
	"kubernetes/modules/digitalocean/network tags":                "a VPC takes none",
	"kubernetes/modules/gcp/network high_availability":            "a VPC and its router are regional",
	"kubernetes/modules/gcp/network tags":                         "networks take none",
	"kubernetes/modules/linode/kubernetes network_id":             "LKE makes the network of its nodes",
	"kubernetes/modules/linode/kubernetes subnet_ids":             "LKE makes the network of its nodes",
	"kubernetes/modules/linode/kubernetes private_endpoint":       "there is none: true is refused",
	"kubernetes/modules/linode/network high_availability":         "a VPC is regional",
	"kubernetes/modules/linode/network tags":                      "a VPC takes none",
}

// read reads the module in a folder.
func read(t *testing.T, dir string) *tfschema.Module {
	t.Helper()
	m, faults := tfschema.Check(os.DirFS("."), dir, facts(t))
	if len(faults) > 0 {
		t.Fatalf("%s: %v", dir, faults)
	}
	return m
}

// variables and outputs are what of a module is the same on all clouds.
func variables(m *tfschema.Module) map[string]string {
	out := map[string]string{}
	for name, v := range m.Variables {
		value := "required"
		if !v.Required {
			value = v.Default.GoString()
		}
		out[name] = fmt.Sprintf("%s, default %s, sensitive %t", v.Type.GoString(), value, v.Sensitive)
	}
	return out
}

func outputs(m *tfschema.Module) map[string]string {
	out := map[string]string{}
	for name, o := range m.Outputs {
		out[name] = fmt.Sprintf("sensitive %t", o.Sensitive)
	}
	return out
}

func TestAllCloudsHaveTheSameInputsAndOutputs(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"network", "kubernetes"} {
		want := read(t, path.Join("kubernetes/modules", clouds[0], kind))
		for _, cloud := range clouds[1:] {
			got := read(t, path.Join("kubernetes/modules", cloud, kind))
			if diff := cmp.Diff(variables(want), variables(got)); diff != "" {
				t.Errorf("inputs of %s: -%s +%s\n%s", kind, clouds[0], cloud, diff)
			}
			if diff := cmp.Diff(outputs(want), outputs(got)); diff != "" {
				t.Errorf("outputs of %s: -%s +%s\n%s", kind, clouds[0], cloud, diff)
			}
		}
	}
	real, local := read(t, "kubernetes/modules/essentials"), read(t, "kubernetes/modules/local/essentials")
	if diff := cmp.Diff(variables(real), variables(local)); diff != "" {
		t.Errorf("inputs of essentials: -real +local\n%s", diff)
	}
	if diff := cmp.Diff(outputs(real), outputs(local)); diff != "" {
		t.Errorf("outputs of essentials: -real +local\n%s", diff)
	}
}

// TestOutputsMeanTheSame holds what the modules give to the types that others
// rely on; null is of any type.
func TestOutputsMeanTheSame(t *testing.T) {
	t.Parallel()

	exec := cty.Object(map[string]cty.Type{"api_version": cty.String, "command": cty.String, "args": cty.List(cty.String)})
	want := map[string]map[string]cty.Type{
		"network": {"network_id": cty.String, "subnet_ids": cty.List(cty.String)},
		"kubernetes": {
			"endpoint": cty.String, "ca_certificate": cty.String, "kubeconfig": cty.String, "token": cty.String, "exec": exec,
			"cluster_name": cty.String, "cluster_version": cty.String, "node_count": cty.Number,
		},
	}
	secret := map[string]bool{"ca_certificate": true, "kubeconfig": true, "token": true}
	for kind, types := range want {
		for _, cloud := range clouds {
			m := read(t, path.Join("kubernetes/modules", cloud, kind))
			for name, typ := range types {
				o, ok := m.Outputs[name]
				if !ok {
					t.Errorf("%s/%s has no output %q", cloud, kind, name)
					continue
				}
				if o.Type != cty.DynamicPseudoType && !o.Type.Equals(typ) && convert.GetConversion(o.Type, typ) == nil {
					t.Errorf("%s:%d: output %q is of type %s, not %s", o.At.Filename, o.At.Start.Line, name, o.Type.FriendlyName(), typ.FriendlyName())
				}
				if o.Sensitive != secret[name] {
					t.Errorf("%s:%d: output %q: sensitive is %t", o.At.Filename, o.At.Start.Line, name, o.Sensitive)
				}
			}
		}
	}
}

func TestEveryInputIsDescribedTypedAndUsed(t *testing.T) {
	t.Parallel()

	left := maps.Clone(idle)
	for _, dir := range modules(t, os.DirFS(".")) {
		m := read(t, dir)
		for name, v := range m.Variables {
			at := fmt.Sprintf("%s:%d: variable %q", v.At.Filename, v.At.Start.Line, name)
			if v.Description == "" {
				t.Errorf("%s has no description", at)
			}
			if v.Type == cty.DynamicPseudoType {
				t.Errorf("%s has no type", at)
			}
			key := dir + " " + name
			switch _, listed := idle[key]; {
			case !v.Used && !listed && !strings.Contains(dir, "/local/"):
				t.Errorf("%s is not used", at)
			case v.Used && listed:
				t.Errorf("%s is used, and listed as idle", at)
			}
			delete(left, key)
		}
		for name, o := range m.Outputs {
			if o.Description == "" {
				t.Errorf("%s:%d: output %q has no description", o.At.Filename, o.At.Start.Line, name)
			}
		}
	}
	for key := range left {
		t.Errorf("%s is listed as idle, and does not exist", key)
	}
}

// TestProvidersAreTheRoots makes sure that modules leave the providers to who
// calls them, and require no more than a major version.
func TestProvidersAreTheRoots(t *testing.T) {
	t.Parallel()

	pessimistic := regexp.MustCompile(`^~> \d+\.\d+$`)
	for _, dir := range modules(t, os.DirFS(".")) {
		for name, r := range read(t, dir).Providers {
			if !pessimistic.MatchString(r.Version) {
				t.Errorf("%s:%d: the version of %q is %q, want one such as \"~> 6.0\"", r.At.Filename, r.At.Start.Line, name, r.Version)
			}
		}
		required := false
		eachBlock(t, dir, func(block *hclsyntax.Block) {
			if block.Type == "provider" {
				t.Errorf("%s:%d: a module configures a provider", block.TypeRange.Filename, block.TypeRange.Start.Line)
			}
			if block.Type != "terraform" {
				return
			}
			_, ok := block.Body.Attributes["required_version"]
			required = required || ok
			for _, inner := range block.Body.Blocks {
				if inner.Type != "required_providers" {
					t.Errorf("%s:%d: a module has a %s block", inner.TypeRange.Filename, inner.TypeRange.Start.Line, inner.Type)
				}
			}
		})
		if !required {
			t.Errorf("%s says no required_version", dir)
		}
	}
}

// untagged are resources that have tags or labels of another meaning.
var untagged = map[string]string{}

func TestEverythingThatTakesTagsHasThem(t *testing.T) {
	t.Parallel()

	known := facts(t)
	for _, dir := range modules(t, os.DirFS(".")) {
		eachBlock(t, dir, func(block *hclsyntax.Block) {
			if block.Type != "resource" {
				return
			}
			provider, _, _ := strings.Cut(block.Labels[0], "_")
			if _, not := untagged[block.Labels[0]]; not {
				return
			}
			for _, name := range []string{"tags", "labels", "resource_labels"} {
				a, ok := known[provider].Resources[block.Labels[0]].Attributes[name]
				if _, set := block.Body.Attributes[name]; ok && !a.Computed && !set {
					t.Errorf("%s:%d: %s %q takes %s and has none", block.TypeRange.Filename, block.TypeRange.Start.Line, block.Labels[0], block.Labels[1], name)
				}
			}
		})
	}
}

// TestFactsAreThoseOfTheModules tells when the facts have to be generated again:
// they are about what the modules use, and about nothing else.
func TestFactsAreThoseOfTheModules(t *testing.T) {
	t.Parallel()

	used := map[string]bool{}
	for _, dir := range modules(t, os.DirFS(".")) {
		eachBlock(t, dir, func(block *hclsyntax.Block) {
			if block.Type == "resource" || block.Type == "data" {
				used[block.Type+" "+block.Labels[0]] = true
			}
		})
	}
	for name, p := range facts(t) {
		if name == "terraform" {
			continue
		}
		if p.Package == "" || p.Version == "" {
			t.Errorf("the facts about %s do not say what they are of", name)
		}
		if p.Config == nil {
			t.Errorf("the facts about %s do not say what a provider block takes", name)
		}
		for typ := range p.Resources {
			if !used["resource "+typ] {
				t.Errorf("the facts about the resource %s are not used: generate them again", typ)
			}
		}
		for typ := range p.DataSources {
			if !used["data "+typ] {
				t.Errorf("the facts about the data source %s are not used: generate them again", typ)
			}
		}
	}
}

func TestModulesAreFormatted(t *testing.T) {
	t.Parallel()

	fsys := library(t)
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		data := fsys[name].Data
		if got := hclwrite.Format(data); string(got) != string(data) {
			t.Errorf("%s is not formatted: run terraform fmt", name)
		}
	}
}

// eachBlock visits the top-level blocks of a module.
func eachBlock(t *testing.T, dir string, visit func(*hclsyntax.Block)) {
	t.Helper()
	fsys := library(t)
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		if path.Dir(name) != dir {
			continue
		}
		file, diags := hclsyntax.ParseConfig(fsys[name].Data, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			visit(block)
		}
	}
}
