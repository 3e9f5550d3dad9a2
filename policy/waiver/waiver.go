package waiver

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Kind is that of the document.
const Kind = "Waiver"

// Waiver is one document.
type Waiver struct {
	Policy, Reason, By string
	Until              time.Time // the first moment at which it no longer counts

	projects, environments, clusters []string // globs; none: all
	file                             string
	line, column                     int // of the policy
}

// Is reports whether the waiver is for a cluster.
func (w Waiver) Is(c holdfast.Cluster) bool {
	return matches(w.projects, c.Project) && matches(w.environments, c.Environment) && matches(w.clusters, c.Name)
}

func matches(globs []string, value string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, value)
		return ok && err == nil
	})
}

// Fault is something that is wrong with the policy that the waiver names.
func (w Waiver) Fault(message, hint string) holdfast.Fault {
	return holdfast.Fault{File: w.file, Line: w.line, Column: w.column, Message: message, Hint: hint}
}

// Bounds of a file.
const (
	mostOfFile = 200
	maxText    = 500 // bytes of a reason, or of a name
)

// Parse reads the waivers of a file. With any fault there are none.
func Parse(file string, data []byte) ([]Waiver, holdfast.Faults) {
	roots, syntax := decode.Parse(file, data)
	if syntax != nil {
		return nil, holdfast.Faults{*syntax}
	}
	r := reader{Reader: &decode.Reader{File: file}}
	var found []Waiver
	for i, root := range roots {
		kind, _ := decode.ScalarOf(root, "kind")
		version, _ := decode.ScalarOf(root, "apiVersion")
		switch {
		case version != decode.APIVersion || kind != Kind:
			r.Add(root, "this document is not a waiver", fmt.Sprintf("begin it with apiVersion: %s and kind: %s", decode.APIVersion, Kind))
		case i == mostOfFile:
			r.Add(root, fmt.Sprintf("the file has more than %d waivers", mostOfFile), "divide it")
		default:
			found = append(found, r.waiver(root))
		}
	}
	if len(r.Faults) > 0 {
		decode.SortFaults(r.Faults)
		return nil, r.Faults
	}
	return found, nil
}

// reader reads one file.
type reader struct{ *decode.Reader }

func (r reader) waiver(root *yaml.Node) Waiver {
	w := Waiver{file: r.File}
	before := len(r.Faults)
	expanded := r.Expand(root)
	if len(r.Faults) > before {
		return w
	}
	top := r.Object(expanded, "")
	top.Get("apiVersion")
	top.Get("kind")
	metadata := top.Child("metadata")
	metadata.Name("name")
	metadata.Done()
	if !top.Has("spec") {
		top.Missing("spec")
		top.Done()
		return w
	}
	spec := top.Child("spec")
	w.Policy, w.Reason, w.By = r.text(spec, "policy"), r.text(spec, "reason"), r.text(spec, "by")
	if n := spec.Get("policy"); n != nil {
		w.line, w.column = n.Line, n.Column
	}
	w.Until = r.until(spec)
	r.scope(spec, &w)
	spec.Done()
	top.Done()
	return w
}

func (r reader) text(o *decode.Object, key string) string {
	text := strings.TrimSpace(o.Required(key))
	if len(text) > maxText {
		r.Add(o.Get(key), fmt.Sprintf("%s is longer than %d bytes", o.Label(key), maxText), "")
	}
	return text
}

// until returns the end, in UTC, of the day that the document names.
func (r reader) until(o *decode.Object) time.Time {
	text := o.Required("until")
	if text == "" {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		r.Add(o.Get("until"), fmt.Sprintf("%s is %q", o.Label("until"), wording.Clip(text)), "write the last day on which it counts, such as 2027-01-31")
	}
	return day.AddDate(0, 0, 1)
}

func (r reader) scope(spec *decode.Object, w *Waiver) {
	if !spec.Has("scope") {
		spec.Missing("scope")
		return
	}
	o := spec.Child("scope")
	given := false
	for _, part := range []struct {
		key   string
		globs *[]string
	}{{"projects", &w.projects}, {"environments", &w.environments}, {"clusters", &w.clusters}} {
		n := o.Get(part.key)
		globs, nodes := o.Strings(part.key)
		if n != nil && len(globs) == 0 {
			r.Add(n, o.Label(part.key)+" is empty", "leave it out for all, or name some")
		}
		for i, glob := range globs {
			if _, err := path.Match(glob, ""); err != nil || glob == "" {
				r.Add(nodes[i], fmt.Sprintf("%s[%d] is %q", o.Label(part.key), i, wording.Clip(glob)), "write a name, or a pattern such as prod-*")
			}
		}
		*part.globs, given = globs, given || n != nil
	}
	if !given {
		r.Add(spec.Get("scope"), o.Label("")+" names nothing", "name projects, environments or clusters")
	}
	o.Done()
}
