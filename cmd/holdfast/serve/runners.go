package serve

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/runner/ecs"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// runnerGrants are what documents of runners and rules may say.
func runnerGrants(cfg *config.Config) reconciler.RunnerGrants {
	allow := make(map[string][]config.Allow)
	for _, r := range cfg.Repositories {
		allow[r.Name] = r.Allow
	}
	return reconciler.RunnerGrants{
		Allow: func(repo string, doc runnerdoc.Document) error {
			var beyond string
			for _, a := range allow[repo] {
				if allowsRunner(a, doc) {
					if beyond = beyondSecrets(a, doc); beyond == "" {
						return nil
					}
				}
			}
			if beyond != "" {
				return fmt.Errorf("%s may not have %s refer to secret %q", repo, described(doc), beyond)
			}
			return fmt.Errorf("%s may not define %s in %s", repo, described(doc), doc.Path)
		},
		Documents: runnerdoc.Options{Secrets: cfg.Secrets.Names(), Check: checkRunner(cfg)},
	}
}

// checkRunner finds faults that only the part that starts a runner's agents can know.
func checkRunner(cfg *config.Config) func(runnerspec.Runner) []runnerspec.FieldFault {
	return func(r runnerspec.Runner) []runnerspec.FieldFault {
		var faults []runnerspec.FieldFault
		if key, err := kubernetes.CheckRunner(r); err != nil {
			faults = append(faults, runnerspec.FieldFault{
				Path: []string{"job", key}, Message: "spec.job." + key + ": " + err.Error(), Hint: "see runners-kubernetes.md",
			})
		}
		if key, err := ecs.CheckRunner(r); err != nil {
			faults = append(faults, runnerspec.FieldFault{
				Path: []string{"ecs", key}, Message: "spec.ecs." + key + ": " + err.Error(), Hint: "choose another name: see runners-ecs.md",
			})
		}
		if provesItself(r.Type) && cfg.Server.Issuer.URL == "" {
			faults = append(faults, runnerspec.FieldFault{
				Path: []string{"type"}, Message: fmt.Sprintf("spec.type: %s: %v", r.Type, errNoIssuer), Hint: "set server.issuer.url: see keyless.md",
			})
		}
		return faults
	}
}

// allowsRunner reports whether an entry allows a document. For a rule for all projects
// or environments the empty name has to match, as "*" does.
func allowsRunner(a config.Allow, doc runnerdoc.Document) bool {
	if !slices.Contains(a.Kinds, doc.Kind()) || !matches(a.Paths, doc.Path) {
		return false
	}
	if doc.Rule != nil {
		return matches(a.Runners, doc.Rule.Runner) && matches(a.Projects, doc.Rule.Project) && matches(a.Environments, doc.Rule.Environment)
	}
	return matches(a.Runners, doc.Runner.Name)
}

// beyondSecrets is the first secret to which a document refers and an entry does not let it;
// empty: there is none.
func beyondSecrets(a config.Allow, doc runnerdoc.Document) string {
	if doc.Runner == nil || doc.Runner.Kubernetes == nil {
		return ""
	}
	refs := []*runnerspec.ServerSecret{doc.Runner.Kubernetes.Kubeconfig}
	if server := doc.Runner.Kubernetes.Server; server != nil {
		refs = append(refs, server.Token, server.ClientKey)
	}
	for _, ref := range refs {
		if ref != nil && !matches(a.Secrets, ref.Secret) {
			return ref.Secret
		}
	}
	return ""
}

// described is a document in a sentence.
func described(doc runnerdoc.Document) string {
	if doc.Rule == nil {
		return fmt.Sprintf("runner %q", doc.Runner.Name)
	}
	return fmt.Sprintf("a rule for project %q, environment %q, runner %q", doc.Rule.Project, doc.Rule.Environment, doc.Rule.Runner)
}

// runnerPaths are the globs of files in which a repository may define runners and rules.
func runnerPaths(r config.Repository) []string {
	var globs []string
	for _, a := range r.Allow {
		if slices.Contains(a.Kinds, decode.KindRunner) || slices.Contains(a.Kinds, decode.KindRunnerRule) {
			globs = append(globs, a.Paths...)
		}
	}
	return globs
}
