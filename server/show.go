package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// masked stands where a value is not shown.
const masked = "(sensitive value)"

// maxOutputs bounds how much of outputs is read for an answer.
const maxOutputs = 8 << 20

// secretName matches names of values that are shown to nobody, whoever wrote
// them down in plain text.
var secretName = regexp.MustCompile(
	`(?i)passw(or)?d|passphrase|secret|token|private_?key|credential|api_?key|access_?key|account_?key|connection_?string|kube_?config`)

func showCluster(r holdfast.ClusterRecord) holdfast.ClusterRecord {
	r.Desired.Document = showDocument(r.Desired.Document)
	r.Applied.Document = showDocument(r.Applied.Document)
	return r
}

func showRun(r holdfast.Run) holdfast.Run {
	r.Document = showDocument(r.Document)
	return r
}

func showPullRequest(r holdfast.PullRequestRecord) holdfast.PullRequestRecord {
	clusters := make([]holdfast.PullRequestCluster, len(r.Clusters))
	for i, c := range r.Clusters {
		c.Document = showDocument(c.Document)
		clusters[i] = c
	}
	r.Clusters = clusters
	return r
}

// showPlan leaves out what only comparisons need, and makes sure of the marks.
func showPlan(p holdfast.Plan) holdfast.Plan {
	p.Changes = showChanges(p.Changes)
	p.Drift = showChanges(p.Drift)
	p.OutputChanges = slices.Clone(p.OutputChanges)
	for i := range p.OutputChanges {
		o := &p.OutputChanges[i]
		if o.BeforeMark, o.AfterMark = "", ""; o.Sensitive {
			o.Before, o.After = maskJSON(o.Before), maskJSON(o.After)
		}
	}
	return p
}

func showChanges(changes []holdfast.ResourceChange) []holdfast.ResourceChange {
	shown := make([]holdfast.ResourceChange, len(changes))
	for i, change := range changes {
		change.Attributes = showAttributes(change.Attributes)
		shown[i] = change
	}
	return shown
}

func showAttributes(attributes []holdfast.AttributeChange) []holdfast.AttributeChange {
	shown := make([]holdfast.AttributeChange, len(attributes))
	for i, a := range attributes {
		if a.Sensitive {
			a.Before, a.After = maskJSON(a.Before), maskJSON(a.After)
		}
		a.BeforeMark, a.AfterMark = "", ""
		shown[i] = a
	}
	return shown
}

func maskJSON(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return value
	}
	return json.RawMessage(`"` + masked + `"`)
}

func showDocument(doc holdfast.Cluster) holdfast.Cluster {
	doc.Variables = maskMap(doc.Variables)
	if doc.State != nil {
		state := *doc.State
		state.Config = maskMap(state.Config)
		doc.State = &state
	}
	return doc
}

func maskMap(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	shown := make(map[string]any, len(values))
	for key, value := range values {
		switch value.(type) {
		case nil, bool: // says nothing, as in enable_token_rotation
			shown[key] = value
		default:
			if isReference(value) {
				shown[key] = value
			} else if secretName.MatchString(key) {
				shown[key] = masked
			} else {
				shown[key] = maskValue(value)
			}
		}
	}
	return shown
}

// isReference reports whether a value is none, but says where it is: {secret: ...}
// with nothing beside it that could be one.
func isReference(value any) bool {
	outer, _ := value.(map[string]any)
	inner, _ := outer["secret"].(map[string]any)
	if len(outer) != 1 {
		return false
	}
	var ref holdfast.SecretRef
	known := 0
	for key, into := range map[string]*string{"env": &ref.Env, "file": &ref.File, "store": &ref.Store, "key": &ref.Key} {
		if text, ok := inner[key].(string); ok {
			*into = text
			known++
		}
	}
	return known == len(inner) && ref.Check() == nil
}

func maskValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return maskMap(value)
	case []any:
		shown := make([]any, len(value))
		for i, item := range value {
			shown[i] = maskValue(item)
		}
		return shown
	default:
		return value
	}
}

// outputs returns what a run put out, without the values of sensitive ones.
func (s *Server) outputs(ctx context.Context, run string) ([]holdfast.Output, error) {
	if run == "" {
		return nil, nil
	}
	data, err := s.opts.Blobs.Artefact(ctx, run, holdfast.ArtefactOutputs)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("open outputs of run %s: %w", run, err)
	}
	defer data.Close()
	var outputs []holdfast.Output
	if err := json.NewDecoder(io.LimitReader(data, maxOutputs)).Decode(&outputs); err != nil {
		return nil, fmt.Errorf("read outputs of run %s: %w", run, err)
	}
	for i := range outputs {
		if outputs[i].Sensitive || secretName.MatchString(outputs[i].Name) {
			outputs[i].Value = nil
		}
	}
	return outputs, nil
}
