package runnerdoc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// sectionsOf are the keys of spec that say how agents of a type are started, and those
// of them that must be there.
func sectionsOf(t runnerspec.Type) (may, must []string) {
	switch t {
	case runnerspec.Kubernetes, runnerspec.KubernetesGKE, runnerspec.KubernetesEKS:
		return []string{"kubernetes", "job"}, []string{"kubernetes", "job"}
	case runnerspec.KubernetesAgent:
		return []string{"job", "keys"}, []string{"job"}
	case runnerspec.Remote:
		return []string{"keys"}, nil
	case runnerspec.ECS:
		return []string{"ecs"}, []string{"ecs"}
	default:
		return nil, nil
	}
}

// runner reads the spec of a Runner.
func (r reader) runner(o *decode.Object) *runnerspec.Runner {
	runner := &runnerspec.Runner{Type: r.typeOf(o)}
	r.sections(o, runner)
	if s := o.Child("storage"); s.Node != nil {
		runner.Storage = r.storage(s, runner.Type)
	}
	if n := o.Get("maxRuns"); n != nil {
		number, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || number < 1 {
			r.Add(n, fmt.Sprintf("spec.maxRuns must be a whole number of at least 1, not %s", decode.Describe(n)), "leave it out for no limit")
		}
		runner.MaxRuns = number
	}
	allow := o.Child("allow")
	runner.Allow.Resources = allow.Child("resources").RunLimits("leave it out for the server's own limit")
	runner.Allow.ServiceAccounts = r.globs(allow, "serviceAccounts")
	runner.Allow.PodTemplate = allow.Bool("podTemplate", false)
	allow.Done()
	o.Done()
	return runner
}

func (r reader) typeOf(o *decode.Object) runnerspec.Type {
	if !o.Has("type") {
		o.Get("type")
		o.Missing("type")
		return ""
	}
	var types []string
	for _, t := range runnerspec.Types() {
		types = append(types, string(t))
	}
	return runnerspec.Type(o.Choice("type", types...))
}

// sections reads what says how agents are started, and checks that it fits the type.
// Where that is not known, all are read.
func (r reader) sections(o *decode.Object, runner *runnerspec.Runner) {
	may, must := sectionsOf(runner.Type)
	for _, section := range []struct {
		key  string
		read func()
	}{
		{"kubernetes", func() { runner.Kubernetes = r.kubernetes(o.Child("kubernetes"), runner.Type) }},
		{"job", func() { runner.Job = r.job(o.Child("job")) }},
		{"keys", func() { runner.Keys = r.keys(o) }},
		{"ecs", func() { runner.ECS = r.ecs(o.Child("ecs")) }},
	} {
		key, _ := o.Find(section.key)
		o.Get(section.key)
		switch {
		case o.Has(section.key) && runner.Type != "" && !slices.Contains(may, section.key):
			r.Add(key, fmt.Sprintf("spec.%s does not belong to a runner of type %s", section.key, runner.Type), "remove it, or write another type")
		case o.Has(section.key):
			section.read()
		case slices.Contains(must, section.key):
			o.Missing(section.key)
		}
	}
}

// globs reads patterns of names.
func (r reader) globs(o *decode.Object, key string) []string {
	patterns, nodes := o.Strings(key)
	for i, pattern := range patterns {
		if !validGlob(pattern) {
			r.Add(nodes[i], fmt.Sprintf("%s[%d] is not a glob", o.Label(key), i), "such as apps-*")
		}
	}
	return patterns
}

// mapping reads a mapping as JSON: what others know the keys of.
func (r reader) mapping(n *yaml.Node, label string) json.RawMessage {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.Add(n, fmt.Sprintf("%s must be a mapping, not %s", label, decode.Describe(n)), "")
		return nil
	}
	data, err := json.Marshal(r.Value(n))
	if err != nil {
		r.Add(n, label+" cannot be written as JSON", "")
		return nil
	}
	return data
}

// texts reads a mapping of names to texts; check says what is wrong with a name or a text.
func (r reader) texts(o *decode.Object, check func(name, text string) (message, hint string)) map[string]string {
	if o.Node == nil || len(o.Node.Content) == 0 {
		return nil
	}
	out := make(map[string]string, len(o.Node.Content)/2)
	for i := 0; i+1 < len(o.Node.Content); i += 2 {
		key := o.Node.Content[i]
		text := o.Text(key.Value)
		out[key.Value] = text
		if message, hint := check(key.Value, text); message != "" {
			r.Add(key, o.Label(key.Value)+" "+message, hint)
		}
	}
	return out
}

// secret reads a reference to one of the server's secrets. No fault repeats what is
// written there: it may be the secret itself.
func (r reader) secret(o *decode.Object, key string) *runnerspec.ServerSecret {
	const example = "write {secret: NAME}, and NAME: {file: PATH} under secrets in holdfast.yaml"
	n := o.Get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.Add(n, o.Label(key)+" must refer to a secret", example)
		return nil
	}
	ref := o.Child(key)
	name := ref.Get("secret")
	switch {
	case name == nil:
		ref.Missing("secret")
	case name.Kind != yaml.ScalarNode || name.Tag != "!!str":
		r.Add(name, ref.Label("secret")+" must be the name of a secret", example)
	case !r.opts.AnySecret && !slices.Contains(r.opts.Secrets, name.Value):
		r.Add(name, ref.Label("secret")+" names no secret of the server", r.secretHint(name.Value, example))
	}
	ref.Done()
	if name == nil {
		return nil
	}
	return &runnerspec.ServerSecret{Secret: name.Value}
}
