package config

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Policies are the policies that plans are checked against.
type Policies struct {
	Sets    []PolicySet     `yaml:"sets" doc:"Folders with policies in watched repositories."`
	Shipped ShippedPolicies `yaml:"shipped" doc:"[The policies that Holdfast ships](shipped-policies.md)."`
	Status  bool            `yaml:"status" doc:"Report what policies say of a pull request as the commit status holdfast/policy, in addition to holdfast/plan: a failure if one denies a plan. A branch protection can require it."`
}

// PolicySet is a folder with policies.
type PolicySet struct {
	Name         string   `yaml:"name" doc:"Unique. It is shown before the paths of the files."`
	Repository   string   `yaml:"repository" doc:"Name of the repository, in repositories."`
	Path         string   `yaml:"path" default:"." doc:"The folder. Files that end in .rego and data.json are read, also in subfolders; tests are ignored."`
	Version      string   `yaml:"version" doc:"A version, such as 1.4.2: the tag NAME/v1.4.2 or v1.4.2. A tag that has moved since its first use is refused. Left out: the head of the tracked branch."`
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of the projects whose clusters have these policies."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of environments, as projects."`
}

// ShippedPolicies select the clusters to which the policies that Holdfast ships apply.
type ShippedPolicies struct {
	Enabled      bool     `yaml:"enabled" doc:"Evaluate them."`
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of the projects whose clusters have these policies."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of environments, as projects."`
}

var policyVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

func (d contradictions) checkPolicies(c *Config) {
	known := make(map[string]bool)
	for _, r := range c.Repositories {
		known[r.Name] = true
	}
	names := make(map[string]bool)
	for i, set := range c.Policies.Sets {
		at := fmt.Sprintf("policies.sets[%d]", i)
		switch {
		case set.Name == "":
			d.at(at+".name", "is required", "")
		case strings.ContainsAny(set.Name, "/\\ ") || set.Name == "holdfast":
			d.at(at+".name", fmt.Sprintf("%q is not a name for a set", set.Name), "it has no slash and no space, and holdfast is the name of the shipped ones")
		case names[set.Name]:
			d.at(at+".name", fmt.Sprintf("there is another set %q", set.Name), "names of sets are unique")
		}
		names[set.Name] = true
		if !known[set.Repository] {
			d.at(at+".repository", fmt.Sprintf("there is no repository %q", set.Repository), "add it to repositories")
		}
		if clean := path.Clean(set.Path); path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
			d.at(at+".path", "must be a folder in the repository", "")
		}
		if set.Version != "" && !policyVersion.MatchString(set.Version) {
			d.at(at+".version", fmt.Sprintf("%q is not a version", set.Version), "such as 1.4.2; its tag is NAME/v1.4.2 or v1.4.2")
		}
		d.globs(at+".projects", set.Projects)
		d.globs(at+".environments", set.Environments)
	}
	d.globs("policies.shipped.projects", c.Policies.Shipped.Projects)
	d.globs("policies.shipped.environments", c.Policies.Shipped.Environments)
}
