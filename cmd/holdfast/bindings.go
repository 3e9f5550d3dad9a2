package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// bindings holds clusters to what their repository and path may define.
func bindings(cfg *config.Config) func(repo string, c holdfast.Cluster, stateLocation string) error {
	allow := make(map[string][]config.Allow)
	for _, r := range cfg.Repositories {
		allow[r.Name] = r.Allow
	}
	return func(repo string, c holdfast.Cluster, stateLocation string) error {
		if len(allow[repo]) == 0 {
			return nil
		}
		for _, a := range allow[repo] {
			if matches(a.Paths, c.Path) && matches(a.Projects, c.Project) &&
				matches(a.Environments, c.Environment) && matches(a.States, stateLocation) {
				return nil
			}
		}
		return fmt.Errorf("%s may not define a cluster of project %q, environment %q, state %q in %s",
			repo, c.Project, c.Environment, stateLocation, c.Path)
	}
}

func matches(globs []string, value string) bool {
	for _, glob := range globs {
		if ok, err := doublestar.Match(glob, value); ok && err == nil {
			return true
		}
	}
	return false
}

// boundTo returns the entries of the credentials that a run of a cluster gets.
func boundTo(cfg *config.Config, c holdfast.Cluster, kind holdfast.RunKind) []config.Credential {
	phase := "plan"
	if kind.Writes() {
		phase = "apply"
	}
	var bound []config.Credential
	for _, entry := range cfg.Credentials {
		if (entry.Phase == "" || entry.Phase == phase) &&
			matches([]string{entry.Project}, c.Project) && matches([]string{entry.Environment}, c.Environment) {
			bound = append(bound, entry)
		}
	}
	return bound
}

// secretSources gathers where the secret variables of a run may come from: the
// folders of all entries that match, and their stores, of which later ones win.
func secretSources(cfg *config.Config) func(c holdfast.Cluster, kind holdfast.RunKind) ([]string, map[string][]string) {
	return func(c holdfast.Cluster, kind holdfast.RunKind) (dirs []string, stores map[string][]string) {
		for _, entry := range boundTo(cfg, c, kind) {
			for _, dir := range entry.SecretDirs {
				if !slices.Contains(dirs, dir) {
					dirs = append(dirs, dir)
				}
			}
			for name, store := range entry.Stores {
				if stores == nil {
					stores = make(map[string][]string)
				}
				stores[name] = store.Command
			}
		}
		return dirs, stores
	}
}

// credentials gathers the environment of a run from the entries that match.
func credentials(cfg *config.Config) func(c holdfast.Cluster, kind holdfast.RunKind) (map[string]string, []string, error) {
	return func(c holdfast.Cluster, kind holdfast.RunKind) (map[string]string, []string, error) {
		env := make(map[string]string)
		secret := make(map[string]bool)
		for _, entry := range boundTo(cfg, c, kind) {
			for name, value := range entry.Env {
				env[name], secret[name] = value, false
			}
			for name, s := range entry.Secrets {
				value, err := s.Value()
				if err != nil {
					return nil, nil, fmt.Errorf("credential %s for %s/%s: %w", name, c.Project, c.Environment, err)
				}
				env[name], secret[name] = value, true
			}
		}
		var secrets []string
		for name, is := range secret {
			if is {
				secrets = append(secrets, name)
			}
		}
		return env, secrets, nil
	}
}

// limits gathers what the engine of a cluster's runs may use.
func limits(cfg *config.Config) func(c holdfast.Cluster) holdfast.RunLimits {
	return func(c holdfast.Cluster) holdfast.RunLimits {
		global := cfg.Runs.Limits
		all := holdfast.RunLimits{Memory: int64(global.Memory), Processes: global.Processes, CPU: global.CPU}
		for _, entry := range global.Overrides {
			if !matches([]string{entry.Project}, c.Project) || !matches([]string{entry.Cluster}, c.Name) {
				continue
			}
			all.Memory = cmp.Or(int64(entry.Memory), all.Memory)
			all.Processes = cmp.Or(entry.Processes, all.Processes)
			all.CPU = cmp.Or(entry.CPU, all.CPU)
		}
		return all
	}
}
