package library_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/diff"
)

// blueprint reads the template.
func blueprint(t *testing.T) templates.Blueprint {
	t.Helper()
	loaded, faults, err := templates.NewResolver(nil).Load(diskTree{os.DirFS("kubernetes")}, "")
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v\n%v", err, faults)
	}
	return loaded.Blueprint()
}

func TestTheVersionHasNotes(t *testing.T) {
	t.Parallel()

	b := blueprint(t)
	changelog, err := os.ReadFile("kubernetes/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if notes := diff.Notes(changelog, "0.0.0", b.Version); !strings.Contains(notes, "## "+b.Version+"\n") {
		t.Errorf("CHANGELOG.md says nothing about version %q:\n%s", b.Version, notes)
	}
	if b.Description == "" {
		t.Error("the template has no description")
	}
}

// TestRootsRequireWhatTheModulesRequire holds the providers that root modules
// configure to those that the modules need: the same ones, of the same versions,
// and none besides.
func TestRootsRequireWhatTheModulesRequire(t *testing.T) {
	t.Parallel()

	for _, p := range blueprint(t).Providers {
		want, got := map[string]string{}, map[string]string{}
		for _, module := range p.Modules {
			for name, r := range read(t, path.Join("kubernetes", module.Source)).Providers {
				want[name] = r.Source + " " + r.Version
			}
		}
		for _, c := range p.Configure {
			got[c.Name] = c.Source + " " + c.Version
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s configures %v, want %v", p.Name, got, want)
		}
	}
}

// machines are real ones of each cloud, which the template must not refuse, and
// names that nobody has, some of which are near to one.
var machines = map[string]struct{ real, wrong []string }{
	"aws": {
		real: []string{
			"t3.small", "t3.medium", "t3a.xlarge", "t4g.2xlarge", "m5.large", "m6gd.metal", "m7i-flex.large", "m7g.medium", "m8g.48xlarge",
			"m7i.metal-24xl", "c7gn.16xlarge", "c6in.32xlarge", "r7iz.xlarge", "r8g.metal-48xl", "x2iedn.24xlarge", "x8g.large", "z1d.6xlarge",
			"g4dn.xlarge", "g5g.metal", "g6e.48xlarge", "gr6.8xlarge", "p4d.24xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "inf2.48xlarge",
			"trn1.32xlarge", "trn2.48xlarge", "i4i.large", "i7ie.metal-48xl", "i3en.metal", "im4gn.16xlarge", "is4gen.medium", "d3en.12xlarge", "h1.8xlarge",
			"hpc7g.16xlarge", "f2.12xlarge", "dl1.24xlarge", "u-6tb1.112xlarge", "u7i-12tb.224xlarge", "u7in-16tb.224xlarge", "vt1.24xlarge", "a1.xlarge",
		},
		wrong: []string{"m7i.larg", "m7i", "large", "t3,medium", "T3.medium", "Standard_D4s_v5", "e2-standard-4", "m7i.xlarg", "i7i.2xlrge", "t3.nano2"},
	},
	"gcp": {
		real: []string{
			"e2-small", "e2-medium", "e2-standard-16", "e2-highmem-8", "e2-highcpu-32", "e2-custom-4-8192", "n1-standard-1", "n1-highmem-96",
			"custom-4-8192", "n2-standard-2", "n2d-highcpu-224", "n4-standard-80", "n4d-standard-2", "c2-standard-60", "c2d-highmem-112", "c3-standard-4-lssd",
			"c3-standard-192-metal", "c3d-highcpu-360", "c4-highmem-288", "c4a-standard-1", "c4d-highcpu-384", "t2d-standard-1", "t2a-standard-48",
			"h3-standard-88", "h4d-standard-192", "z3-highmem-88", "z3-highmem-14-standardlssd", "m1-ultramem-160", "m1-megamem-96", "m2-hypermem-416",
			"m3-ultramem-128", "x4-megamem-960-metal", "a2-highgpu-1g", "a2-megagpu-16g", "a2-ultragpu-8g", "a3-highgpu-8g", "a3-edgegpu-8g-nolssd", "a4-highgpu-8g",
			"g2-standard-96", "g4-standard-48", "ct5lp-hightpu-4t", "ct6e-standard-8t", "n2-custom-8-65536-ext",
		},
		wrong: []string{"e2-standrd-4", "e2-standard", "e2_standard_4", "standard-4", "n2-large", "m7i.large", "Standard_D4s_v5", "s-4vcpu-8gb"},
	},
	"azure": {
		real: []string{
			"Standard_B2s", "Standard_B2ms", "Standard_B16ms", "Standard_B2s_v2", "Standard_B4als_v2", "Standard_B2pts_v2", "Standard_A2_v2", "Standard_A8m_v2",
			"Standard_D2_v3", "Standard_D4s_v5", "Standard_D96ads_v5", "Standard_D4plds_v6", "Standard_DS2_v2", "Standard_DC4as_cc_v5", "Standard_DC2ds_v3",
			"Standard_E2s_v5", "Standard_E104ids_v5", "Standard_E16-4as_v5", "Standard_F8s_v2", "Standard_F4ams_v6", "Standard_FX4mds", "Standard_L8s_v3", "Standard_L80as_v3",
			"Standard_M128s", "Standard_M64ms", "Standard_M208ms_v2", "Standard_M176bds_4_v3", "Standard_NC6s_v3", "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5",
			"Standard_ND96asr_v4", "Standard_NV36ads_A10_v5", "Standard_NV12s_v3", "Standard_HB120rs_v3", "Standard_HX176rs", "Standard_GS5", "Standard_G4",
			"Standard_NP10s", "Standard_NC4as_T4_v3",
		},
		wrong: []string{"Standard_D4_s_v5x", "standard_d4s_v5", "D4s_v5", "Standard_D4s_v", "Standard_D4s-v5", "m7i.large", "e2-standard-4"},
	},
	"digitalocean": {
		real: []string{
			"s-1vcpu-2gb", "s-2vcpu-4gb", "s-8vcpu-16gb-amd", "s-4vcpu-16gb-320gb-intel", "s-2vcpu-4gb-120gb-intel", "c-2", "c-4-intel", "c-60-intel", "c2-2vcpu-4gb", "c5-16vcpu-32gb",
			"g-2vcpu-8gb", "g-60vcpu-240gb-intel", "gd-8vcpu-32gb", "gd-2vcpu-8gb-intel", "m-4vcpu-32gb", "m3-8vcpu-64gb", "m6-2vcpu-16gb", "so-2vcpu-16gb",
			"so1_5-4vcpu-32gb", "gpu-h100x1-80gb", "gpu-mi300x8-1536gb", "gpu-4000adax1-20gb",
		},
		wrong: []string{"s-4vcpu-8g", "s-4cpu-8gb", "4vcpu-8gb", "s4vcpu8gb", "m7i.large", "e2-standard-4"},
	},
	"linode": {
		real: []string{
			"g6-standard-1", "g6-standard-8", "g6-dedicated-2", "g6-dedicated-64", "g7-highmem-16", "g7-premium-50", "g7-dedicated-4-2", "g8-dedicated-8-4",
			"g1-gpu-rtx6000-1", "g2-gpu-rtx4000a1-s", "g3-gpu-rtxpro6000-blackwell-1", "g1-accelerated-netint-vpu-t1u1-s",
		},
		wrong: []string{"g6-standart-4", "g6-standard-3", "g6-nanode-1", "standard-4", "m7i.large", "s-4vcpu-8gb"},
	},
}

func TestMachines(t *testing.T) {
	t.Parallel()

	for _, p := range blueprint(t).Providers {
		allowed := func(machine string) bool {
			return slices.ContainsFunc(p.InstanceTypes, func(glob string) bool {
				ok, err := path.Match(glob, machine)
				if err != nil {
					t.Fatalf("%s: %q: %s", p.Name, glob, err)
				}
				return ok
			})
		}
		for _, machine := range machines[p.Name].real {
			if !allowed(machine) {
				t.Errorf("%s refuses %s", p.Name, machine)
			}
		}
		for _, machine := range machines[p.Name].wrong {
			if allowed(machine) {
				t.Errorf("%s takes %s", p.Name, machine)
			}
		}
		if p.Name == "local" {
			continue
		}
		// What is near to a name is found only among names that are written out.
		exact := slices.DeleteFunc(slices.Clone(p.InstanceTypes), func(glob string) bool { return strings.ContainsAny(glob, "*?[") })
		for _, machine := range exact[1:] {
			if slices.ContainsFunc(exact, func(other string) bool { return other != machine && strings.EqualFold(other, machine) }) {
				t.Errorf("%s has %s twice", p.Name, machine)
			}
		}
		if fallback, _ := p.Defaults["instance_type"].(string); !slices.Contains(exact, fallback) {
			t.Errorf("%s has %q by default, which is not written out among its machines", p.Name, fallback)
		}
		if !slices.IsSorted(p.Regions) {
			t.Errorf("the regions of %s are not sorted", p.Name)
		}
	}
}
