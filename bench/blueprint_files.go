package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const (
	blueprint     = "kubernetes" // the template of the library
	libraryFolder = "templates/library/" + blueprint
	released      = "1.0.0" // its version that clusters name
	next          = "1.1.0"
	oneUpgrades   = 10 // of so many clusters one says `upgrades`
)

// cloud is a provider of the template, with what its clusters say.
type cloud struct{ name, region, machine string }

var clouds = []cloud{
	{"aws", "eu-west-1", "m7i.large"},
	{"gcp", "europe-west1", "e2-standard-4"},
	{"azure", "westeurope", "Standard_D4s_v5"},
	{"digitalocean", "fra1", "s-4vcpu-8gb"},
	{"linode", "eu-central", "g6-standard-4"},
}

// featureSets are what clusters switch on: nothing, a little, everything.
var featureSets = []string{
	"node_count: %d, instance_type: %s",
	"node_count: %d, instance_type: %s, enable_monitoring: true, tags: {team: shop}",
	"node_count: %d, instance_type: %s, enable_monitoring: true, enable_ingress: true, enable_cert_manager: true, " +
		"high_availability: true, monitoring_retention_days: 30, allowed_cidrs: [203.0.113.0/24, 198.51.100.0/24]",
}

// blueprintFleet returns n clusters that are made from a version of the template.
func blueprintFleet(n int) []member {
	members := fleet(n)
	for i := range members {
		members[i].released = true
	}
	return members
}

// upgrades reports whether newer versions are proposed to a cluster.
func (m member) upgrades() bool { return m.number%oneUpgrades == 0 }

// releasedDocument is document for clusters of the template.
func (m member) releasedDocument(edited int) string {
	on := clouds[m.number%len(clouds)]
	features := fmt.Sprintf(featureSets[m.number/len(clouds)%len(featureSets)], 3+edited, on.machine)
	upgrades := ""
	if m.upgrades() {
		upgrades = `, upgrades: "~> 1.0"`
	}
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: %s
  labels: {team: team-%02d} # who is called
spec:
  project: %s
  environment: %s
  template: {name: %s, version: %s%s}
  provider: %s
  region: %s
  variables: {%s}
  drift: {schedule: "0 3 * * *"}
  deletion: {protected: %t}
`, m.name, m.number%40, m.project, m.environment, blueprint, released, upgrades, on.name, on.region, features, m.environment == "production")
}

// documents parses what the clusters say.
func (s *stage) documents(members []member) []document.Document {
	docs := make([]document.Document, len(members))
	for i, m := range members {
		parsed, faults := document.ParseClusters(m.path(), []byte(m.document(0)))
		if len(parsed) != 1 || len(faults) > 0 {
			s.Fatalf("parse %s: %v", m.path(), faults)
		}
		docs[i] = parsed[0]
	}
	return docs
}

var versionLine = regexp.MustCompile(`(?m)^  version: .*$`)

// libraryFiles are the files of the template, which is in dir, as that version, in
// the folder of its name. In a newer one every module is another.
func libraryFiles(dir, version string) (map[string]string, error) {
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		below = filepath.ToSlash(below)
		text := string(data)
		switch {
		case below == templates.DocumentFile:
			text = versionLine.ReplaceAllString(text, "  version: "+version)
		case strings.HasSuffix(below, "/main.tf") && version != released:
			text += "\n# " + version + "\n"
		}
		files[blueprint+"/"+below] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the template of the library: %w", err)
	}
	return files, nil
}

// changedFiles are those of files that differ from before.
func changedFiles(before, files map[string]string) map[string]string {
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name, text string) bool { return before[name] == text })
	return files
}

// releases are versions of the template for a resolver.
type releases map[string]templates.TemplateVersion

// Version implements templates.Versions.
func (r releases) Version(_ context.Context, name, version string) (templates.TemplateVersion, error) {
	v, ok := r[version]
	if !ok || name != blueprint {
		return v, &templates.NoVersionError{Name: name, Version: version, Available: slices.Sorted(maps.Keys(r))}
	}
	return v, nil
}
