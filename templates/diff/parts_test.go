package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/diff"
)

// What is not the schema of the variables: each change is told, under the name
// of what has changed.
func TestDiffParts(t *testing.T) {
	t.Parallel()
	sized := map[string]any{"properties": map[string]any{"size": map[string]any{"type": "string", "format": "instance-type"}}}
	provider := func(edit func(*templates.ProviderBlueprint)) templates.Blueprint {
		p := templates.ProviderBlueprint{
			Name: "aws", Regions: []string{"eu-west-1", "eu-west-2"}, InstanceTypes: []string{"m7i.*", "t3.medium"},
			Defaults:  map[string]any{"size": "t3.medium"},
			Configure: []templates.EngineProvider{{Name: "aws", Source: "hashicorp/aws", Version: "~> 6.0"}},
			Modules: []templates.ModuleBlueprint{{
				Name: "network", Source: "./network", DependsOn: []string{"a"}, Inputs: map[string]string{"cidr": "${var.cidr}", "zone": "1"},
			}},
		}
		if edit != nil {
			edit(&p)
		}
		return templates.Blueprint{Name: "t", Schema: sized, Required: []string{"size"}, Providers: []templates.ProviderBlueprint{p}}
	}
	rules := func(list ...templates.RuleBlueprint) templates.Blueprint { return templates.Blueprint{Rules: list} }
	outputs := func(list ...templates.OutputBlueprint) templates.Blueprint {
		return templates.Blueprint{Outputs: list}
	}
	for name, tc := range map[string]struct {
		from, to templates.Blueprint
		want     []string
	}{
		"name": {
			templates.Blueprint{Name: "a", Description: "x"},
			templates.Blueprint{Name: "b"},
			[]string{"! template is now called b, not a", "template has a new description"},
		},
		"rules": {
			rules(templates.RuleBlueprint{Rule: "self.a", Message: "a"}, templates.RuleBlueprint{Rule: "self.b", Message: "b"}, templates.RuleBlueprint{Rule: "self.c", Message: "c"}, templates.RuleBlueprint{Rule: "self.same", Message: "s"}),
			rules(templates.RuleBlueprint{Rule: "self.a2", Message: "a"}, templates.RuleBlueprint{Rule: "self.b", Message: "b2"}, templates.RuleBlueprint{Rule: "self.d", Message: "d"}, templates.RuleBlueprint{Rule: " self.same\n", Message: "s", Path: "x"}),
			[]string{`! rule "a" now requires self.a2`, `rule "b2" has a new message, not "b"`, `rule "c" is gone`, `! rule "d" is new: self.d`, `rule "s" is reported at x`},
		},
		"provider gone": {provider(nil), templates.Blueprint{Name: "t", Schema: sized, Required: []string{"size"}}, []string{"! provider aws is gone"}},
		"provider new":  {templates.Blueprint{Name: "t", Schema: sized, Required: []string{"size"}}, provider(nil), []string{"provider aws is new"}},
		"regions": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.Regions = []string{"eu-west-2", "eu-west-3"} }),
			[]string{"! provider aws no longer allows the region eu-west-1", "provider aws allows the region eu-west-3, too"},
		},
		"regions at all": {
			provider(func(p *templates.ProviderBlueprint) { p.Regions = nil }), provider(nil),
			[]string{"! provider aws now allows only some regions: eu-west-1, eu-west-2"},
		},
		"any region": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.Regions = nil }),
			[]string{"provider aws now allows any region"},
		},
		"instance types": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.InstanceTypes = []string{"m*", "t3.large"} }),
			[]string{"! provider aws no longer allows the instance type t3.medium", "provider aws allows the instance type m*, t3.large, too"},
		},
		"instance types, and a glob with a class": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.InstanceTypes = []string{"[mt]*"} }),
			[]string{"! provider aws no longer allows the instance type m7i.*", "provider aws allows the instance type [mt]*, too"},
		},
		"default gone that was needed": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.Defaults = map[string]any{"other": 1} }),
			[]string{"! provider aws no longer has a default for size", "provider aws has a default for other: 1"},
		},
		"default": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) { p.Defaults = map[string]any{"size": "m7i.large"} }),
			[]string{`provider aws has the default "m7i.large" for size, not "t3.medium"`},
		},
		"engine providers": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) {
				p.Configure = []templates.EngineProvider{{Name: "aws", Source: "acme/aws"}, {Name: "helm", Source: "hashicorp/helm"}}
			}),
			[]string{
				"engine provider aws (aws) comes from acme/aws, not hashicorp/aws", "engine provider aws (aws) has the constraint any version, not ~> 6.0",
				"engine provider helm (aws) is now configured: hashicorp/helm",
			},
		},
		"modules": {
			provider(nil), provider(func(p *templates.ProviderBlueprint) {
				p.Modules = []templates.ModuleBlueprint{
					{
						Name: "network", Source: "acme/network/aws", Version: "1.2.3", When: "self.n", DependsOn: []string{"b"},
						Inputs: map[string]string{"cidr": "${var.range}", "name": "n"},
					}, {Name: "essentials", Source: "./essentials"},
				}
			}),
			[]string{
				"module essentials (aws) is new: ./essentials",
				"module network (aws) comes from acme/network/aws, not ./network",
				"module network (aws) depends on b, too",
				"module network (aws) gets cidr = ${var.range}, not ${var.cidr}",
				"module network (aws) gets name = n, too",
				"module network (aws) has the version 1.2.3, not any version",
				"module network (aws) is now on only when self.n",
				"module network (aws) no longer depends on a",
				"module network (aws) no longer gets zone",
			},
		},
		"outputs": {
			outputs(templates.OutputBlueprint{Name: "a"}, templates.OutputBlueprint{Name: "e", Value: "v", Means: "endpoint"}, templates.OutputBlueprint{Name: "k", Means: "kubeconfig"}, templates.OutputBlueprint{Name: "n"}),
			outputs(templates.OutputBlueprint{Name: "b"}, templates.OutputBlueprint{Name: "e", Value: "w", Means: "nodeCount", Sensitive: true}, templates.OutputBlueprint{Name: "k"}, templates.OutputBlueprint{Name: "n", Means: "nodeCount"}),
			[]string{
				"! output a is gone", "output b is new", "! output e means nodeCount to Holdfast, not endpoint", "output e is now sensitive", "output e is w, not v",
				"! output k no longer means kubeconfig to Holdfast", "output n now means nodeCount to Holdfast",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, lines(diff.Templates(tc.from, tc.to))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for _, b := range []templates.Blueprint{tc.from, tc.to} {
				if got := diff.Templates(b, b); len(got) > 0 {
					t.Errorf("a template differs from itself: %v", lines(got))
				}
			}
		})
	}
}

// What is the same for several providers is told once.
func TestDiffReportsOnce(t *testing.T) {
	t.Parallel()
	blueprint := func(when string) templates.Blueprint {
		var b templates.Blueprint
		for _, name := range []string{"aws", "gcp"} {
			b.Providers = append(b.Providers, templates.ProviderBlueprint{Name: name, Modules: []templates.ModuleBlueprint{{Name: "m", Source: "./m", When: when}}})
		}
		return b
	}
	want := []string{"module m (aws, gcp) is now always on, not only when self.a"}
	if diff := cmp.Diff(want, lines(diff.Templates(blueprint("self.a"), blueprint("")))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
