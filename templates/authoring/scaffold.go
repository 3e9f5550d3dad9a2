package authoring

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed scaffold
var scaffold embed.FS

// starter is what a new template says of a provider.
type starter struct {
	Name, Template         string
	Regions, InstanceTypes []string
	Default                string // instance type
	Engine, Source         string // of the engine's provider; empty: none
	Configure              []string
}

// Region is one that examples are made in.
func (s starter) Region() string {
	if len(s.Regions) == 0 {
		return ""
	}
	return s.Regions[0]
}

// starters are the providers for which a new template has content.
func starters() map[string]starter {
	return map[string]starter{
		"local": {Default: "small"},
		"aws": {
			Regions: []string{"eu-west-1", "eu-central-1", "us-east-1"}, InstanceTypes: []string{"t3.medium", "m7i.*"}, Default: "t3.medium",
			Engine: "aws", Source: "hashicorp/aws", Configure: []string{`arguments: {region: "${cluster.region}"}`},
		},
		"gcp": {
			Regions: []string{"europe-west1", "europe-west3", "us-central1"}, InstanceTypes: []string{"e2-*", "n2-*"}, Default: "e2-standard-2",
			Engine: "google", Source: "hashicorp/google", Configure: []string{`arguments: {region: "${cluster.region}"}`},
		},
		"azure": {
			Regions: []string{"westeurope", "northeurope", "eastus"}, InstanceTypes: []string{"Standard_D*", "Standard_B*"}, Default: "Standard_D2s_v5",
			Engine: "azurerm", Source: "hashicorp/azurerm", Configure: []string{"blocks: [{type: features}]"},
		},
		"digitalocean": {
			Regions: []string{"fra1", "ams3", "nyc3"}, InstanceTypes: []string{"s-*", "g-*"}, Default: "s-2vcpu-4gb",
			Engine: "digitalocean", Source: "digitalocean/digitalocean",
		},
		"linode": {
			Regions: []string{"eu-central", "eu-west", "us-east"}, InstanceTypes: []string{"g6-*"}, Default: "g6-standard-2",
			Engine: "linode", Source: "linode/linode",
		},
	}
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// New returns the files of a new template, by path. It is valid, its tests pass,
// and its modules need no cloud. Without providers it is for local.
func New(name string, providers []string) (map[string][]byte, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("%q cannot be the name of a template: use a-z, 0-9 and - inside, at most 63 characters", clip(name))
	}
	if len(providers) == 0 {
		providers = []string{"local"}
	}
	type page struct {
		Name      string
		Providers []starter
	}
	all := page{Name: name}
	for _, p := range providers {
		if !validName.MatchString(p) {
			return nil, fmt.Errorf("%q cannot be the name of a provider: use a-z, 0-9 and - inside", clip(p))
		}
		s, known := starters()[p]
		if !known {
			s.Default = "small"
		}
		s.Name, s.Template = p, name
		if slices.ContainsFunc(all.Providers, func(other starter) bool { return other.Name == p }) {
			return nil, fmt.Errorf("the provider %q is given twice", p)
		}
		all.Providers = append(all.Providers, s)
	}
	files := map[string][]byte{}
	var errs []error
	fill := func(to, from string, data any) {
		text, err := filled(from, data)
		errs = append(errs, err)
		files[to] = text
	}
	fill("template.yaml", "template.yaml.tmpl", all)
	fill("README.md", "README.md.tmpl", all)
	fill("CHANGELOG.md", "CHANGELOG.md.tmpl", all)
	fill("tests/basic.yaml", "tests.yaml.tmpl", all)
	for _, s := range all.Providers {
		example := "examples/basic.yaml"
		if len(all.Providers) > 1 {
			example = "examples/" + s.Name + "-basic.yaml"
		}
		fill(example, "example.yaml.tmpl", s)
		errs = append(errs, copied(files, "scaffold/each", "modules/"+s.Name))
	}
	errs = append(errs, copied(files, "scaffold/shared", "modules"))
	return files, errors.Join(errs...)
}

func filled(name string, data any) ([]byte, error) {
	text, err := scaffold.ReadFile("scaffold/" + name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Funcs(template.FuncMap{"join": func(words []string) string { return `"` + strings.Join(words, `", "`) + `"` }}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, data)
	return out.Bytes(), err
}

func copied(files map[string][]byte, from, to string) error {
	return fs.WalkDir(scaffold, from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := scaffold.ReadFile(name)
		files[path.Join(to, strings.TrimPrefix(name, from))] = data
		return err
	})
}
