package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// bindings limits clusters to what their repository and path may define.
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
			if (len(a.Kinds) == 0 || slices.Contains(a.Kinds, decode.KindCluster)) && matches(a.Paths, c.Path) && matches(a.Projects, c.Project) &&
				matches(a.Environments, c.Environment) && (matches(a.States, stateLocation) || matches(a.States, location.Written(stateLocation))) {
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
	var bound []config.Credential
	for _, entry := range cfg.Credentials {
		if isBoundTo(entry, c, kind) {
			bound = append(bound, entry)
		}
	}
	return bound
}

// varied returns which of the variables that may lead to another store of states have
// another value in another project or environment: they are bound there to something else
// than everywhere.
func varied(cfg *config.Config) []string {
	return slices.DeleteFunc(location.Variables(), func(name string) bool {
		var scoped, everywhere []string
		for _, entry := range cfg.Credentials {
			leads, bound := leadsTo(entry, name)
			switch all := []string{"*", "**"}; {
			case !bound:
			case slices.Contains(all, entry.Project) && slices.Contains(all, entry.Environment):
				everywhere = append(everywhere, leads)
			default:
				scoped = append(scoped, leads)
			}
		}
		if len(everywhere) == 0 {
			everywhere = []string{location.Leads(name, "")}
		}
		return !slices.ContainsFunc(scoped, func(leads string) bool {
			return slices.ContainsFunc(everywhere, func(other string) bool { return other != leads })
		})
	})
}

// leadsTo is the store of states to which an entry's variable leads, and whether it has
// the variable. A secret is identified by its place.
func leadsTo(entry config.Credential, name string) (leads string, bound bool) {
	if s, secret := entry.Secrets[name]; secret {
		return fmt.Sprintf("secret %q %q", s.File, s.Env), true
	}
	value, bound := entry.Env[name]
	if region := entry.AWS.Region; name == "AWS_REGION" && region != "" {
		value, bound = region, true
	}
	return location.Leads(name, value), bound
}

func isBoundTo(entry config.Credential, c holdfast.Cluster, kind holdfast.RunKind) bool {
	phase := "plan"
	if kind.Writes() {
		phase = "apply"
	}
	return (entry.Phase == "" || entry.Phase == phase) &&
		matches([]string{entry.Project}, c.Project) && matches([]string{entry.Environment}, c.Environment)
}

// sameCredential reports whether runs of two clusters get a credential from the same
// entry: the last one that matches and has it.
func sameCredential(cfg *config.Config) func(name string, kind holdfast.RunKind, a, b holdfast.Cluster) bool {
	from := func(name string, kind holdfast.RunKind, c holdfast.Cluster) int {
		last := -1
		for i, entry := range cfg.Credentials {
			_, plain := entry.Env[name]
			_, secret := entry.Secrets[name]
			if (plain || secret) && isBoundTo(entry, c, kind) {
				last = i
			}
		}
		return last
	}
	return func(name string, kind holdfast.RunKind, a, b holdfast.Cluster) bool {
		entry := from(name, kind, a)
		return entry >= 0 && entry == from(name, kind, b)
	}
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

// credentials gathers the environment of a run from the entries that match. What cannot
// be read is missing; where it should be is only logged.
func credentials(cfg *config.Config, logger *slog.Logger) func(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error) {
	return func(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error) {
		out := protocol.Credentials{Env: make(map[string]string)}
		secret, missing := make(map[string]bool), make(map[string]error)
		hosts := make(map[string]config.GitHost)
		for _, entry := range boundTo(cfg, c, kind) {
			for name, value := range entry.Env {
				out.Env[name], secret[name] = value, false
				delete(missing, name)
			}
			for name, s := range entry.Secrets {
				value, err := s.Value()
				if delete(missing, name); err != nil {
					missing[name] = err
				}
				out.Env[name], secret[name] = value, true
			}
			maps.Copy(hosts, entry.Git)
		}
		for name, is := range gitEnv(hosts, out.Env, logger) {
			secret[name] = is
		}
		for _, name := range slices.Sorted(maps.Keys(secret)) {
			switch err := missing[name]; {
			case err != nil:
				logger.Error("credential was not read", "name", name, "project", c.Project, "environment", c.Environment, "err", err)
				delete(out.Env, name)
				out.Missing = append(out.Missing, name)
			case secret[name]:
				out.Secrets = append(out.Secrets, name)
			}
		}
		out.Identities = identities(cfg, c, kind)
		return out, checkIdentities(out.Identities, out.Env, c, kind)
	}
}

// gitEnv adds to env what makes Git show hosts their credentials, each to its own
// host only, and returns the names it added: true for those of secrets. The values
// are in variables that a helper prints when Git asks for them, so that what is
// masked is exactly what is secret. A host whose password cannot be read has none:
// only who fetches from it fails. Settings that env has already (GIT_CONFIG_COUNT) stay.
func gitEnv(hosts map[string]config.GitHost, env map[string]string, logger *slog.Logger) map[string]bool {
	added := make(map[string]bool)
	set := func(name, value string, secret bool) { env[name], added[name] = value, secret }
	n, settings := 0, givenSettings(env)
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		password, err := hosts[host].Password.Value()
		if err != nil {
			logger.Error("credential of a Git host was not read", "host", host, "err", err)
			continue
		}
		user, pass := fmt.Sprintf("HOLDFAST_GIT_USERNAME_%d", n), fmt.Sprintf("HOLDFAST_GIT_PASSWORD_%d", n)
		set(user, cmp.Or(hosts[host].Username, "x-access-token"), false)
		set(pass, password, true)
		helper := `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + user + `" "$` + pass + `"; }; f`
		for _, value := range []string{"", helper} { // the first one drops what the machine's own configuration has
			set(fmt.Sprintf("GIT_CONFIG_KEY_%d", settings), "credential."+host+".helper", false)
			set(fmt.Sprintf("GIT_CONFIG_VALUE_%d", settings), value, false)
			settings++
		}
		n++
	}
	if n > 0 {
		set("GIT_CONFIG_COUNT", strconv.Itoa(settings), false)
		set("GIT_TERMINAL_PROMPT", "0", false)
	}
	return added
}

// givenSettings is how many settings an environment has for Git.
func givenSettings(env map[string]string) int {
	given, err := strconv.Atoi(env["GIT_CONFIG_COUNT"])
	if err != nil {
		return 0
	}
	return max(given, 0)
}

// limits gathers what the engine of a cluster's runs may use: what its document asks
// for, as far as that is allowed, otherwise what the configuration says. The second is
// the most that a document may ask for.
func limits(cfg *config.Config) func(c holdfast.Cluster) (granted, most holdfast.RunLimits) {
	return func(c holdfast.Cluster) (granted, most holdfast.RunLimits) {
		global := cfg.Runs.Limits
		granted = holdfast.RunLimits{Memory: int64(global.Memory), Processes: global.Processes, CPU: global.CPU}
		most = holdfast.RunLimits{Memory: int64(global.Max.Memory), Processes: global.Max.Processes, CPU: global.Max.CPU}
		for _, entry := range global.Overrides {
			if !matches([]string{entry.Project}, c.Project) || !matches([]string{entry.Cluster}, c.Name) {
				continue
			}
			granted.Memory = cmp.Or(int64(entry.Memory), granted.Memory)
			granted.Processes = cmp.Or(entry.Processes, granted.Processes)
			granted.CPU = cmp.Or(entry.CPU, granted.CPU)
			most.Memory = cmp.Or(int64(entry.Max.Memory), most.Memory)
			most.Processes = cmp.Or(entry.Max.Processes, most.Processes)
			most.CPU = cmp.Or(entry.Max.CPU, most.CPU)
		}
		granted.Memory, most.Memory = bounded(c.Limits.Memory, granted.Memory, most.Memory)
		granted.Processes, most.Processes = bounded(c.Limits.Processes, granted.Processes, most.Processes)
		granted.CPU, most.CPU = bounded(c.Limits.CPU, granted.CPU, most.CPU)
		return granted, most
	}
}

// bounded returns what is granted to a document that asks for a limit, and the most
// that it may ask for, where usual is granted without. Zero means no limit, or
// nothing that is asked for.
func bounded[T int | int64 | float64](asked, usual, most T) (granted, bound T) {
	if usual == 0 {
		return asked, 0
	}
	most = max(usual, most)
	return min(cmp.Or(asked, usual), most), most
}
