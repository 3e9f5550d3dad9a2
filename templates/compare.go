package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// RootChange is how two root modules of one cluster differ.
type RootChange struct {
	// Key is the same for clusters whose root modules change in the same way,
	// whatever they are called and whatever their variables are. It is empty if
	// nothing changes.
	Key holdfast.Digest

	before, after *Root
}

// Compare says how the root module of a cluster changes from before to after. Without
// before all of it is new.
func Compare(before, after *Root) RootChange {
	if before == nil {
		digest := holdfast.NewDigester("new root")
		digest.Add(string(after.shared))
		return RootChange{Key: digest.Digest(), before: new(Root), after: after}
	}
	if before.Digest.Equal(after.Digest) {
		return RootChange{}
	}
	digest := holdfast.NewDigester("root change")
	digest.Add(string(before.shared), string(after.shared))
	if before.shared == "" || after.shared == "" { // a custom module, which is in no shared part
		digest.Add("custom", string(before.Code), string(after.Code))
	}
	change := RootChange{before: before, after: after}
	digest.Add(change.own()...)
	digest.Add(change.ownValues()...)
	change.Key = digest.Digest()
	return change
}

// ownValues are the values that only this cluster has and that change, with their
// former values: what own says of them is shortened, and leaves out the former values.
func (c RootChange) ownValues() []string {
	var out []string
	add := func(kind, name string, was, is any) {
		if one, other := text(was), text(is); one != other {
			out = append(out, kind, name, one, other)
		}
	}
	for _, name := range union(c.before.Variables, c.after.Variables) {
		add("var", name, c.before.Variables[name], c.after.Variables[name])
	}
	for _, name := range union(c.before.Secrets, c.after.Secrets) {
		add("secret", name, c.before.Secrets[name], c.after.Secrets[name])
	}
	was, is := attributeLines(c.before.file(clusterFile)), attributeLines(c.after.file(clusterFile))
	for _, name := range union(was, is) {
		_, had := was[name]
		_, has := is[name]
		if had && has { // otherwise the template sets it, or no longer does: Values has what that reaches
			add("cluster", name, was[name], is[name])
		}
	}
	return out
}

// owned reports whether a file of a root module belongs to one cluster only: it has the
// cluster's own values in it.
func owned(name string) bool {
	return name == clusterFile || name == variablesFile || name == rootmodule.SecretFile
}

// ownHeader cuts off the comment that says what a file was made from: the
// version in it is not a change.
func ownHeader(data []byte) []byte {
	for bytes.HasPrefix(data, []byte("#")) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return bytes.TrimLeft(data, "\n")
}

// own says in words how the files change that only this cluster has.
func (c RootChange) own() []string {
	var words []string
	for _, name := range union(c.before.Variables, c.after.Variables) {
		was, had := c.before.Variables[name]
		is, has := c.after.Variables[name]
		switch {
		case had && !has:
			words = append(words, "variable "+name+" is given no more")
		case !same(was, is):
			words = append(words, fmt.Sprintf("variable %s is given as %s", name, wording.Clip(text(is))))
		}
	}
	was, is := attributeLines(c.before.file(clusterFile)), attributeLines(c.after.file(clusterFile))
	for _, line := range union(was, is) {
		if was[line] != is[line] {
			words = append(words, "the cluster's "+line)
		}
	}
	for _, name := range c.declared() {
		if c.gives(name) {
			words = append(words, "variable "+name+" is declared differently, and has a value of its own")
		}
	}
	return words
}

// gives reports whether the cluster has its own value for a variable, both before and
// after: another default does not affect it.
func (c RootChange) gives(name string) bool {
	for _, root := range []*Root{c.before, c.after} {
		_, plain := root.Variables[name]
		_, secret := root.Secrets[name]
		if !plain && !secret {
			return false
		}
	}
	return true
}

// declared returns the variables that are there before and after and whose
// declarations differ in more than what they say to people, sorted.
func (c RootChange) declared() []string {
	before, after := c.before.file(mainFile), c.after.file(mainFile)
	if bytes.Equal(before, after) {
		return nil
	}
	var names []string
	was, is := declarations(before), declarations(after)
	for name, text := range was {
		if other, ok := is[name]; ok && !bytes.Equal(text, other) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// declarations are the insides of the blocks of variables in a file of ours, by
// name, without their descriptions. It is asked for each cluster of a fleet.
func declarations(data []byte) map[string][]byte {
	out := make(map[string][]byte)
	for {
		start := bytes.Index(data, []byte("\nvariable \""))
		if start < 0 {
			return out
		}
		name, rest, _ := bytes.Cut(data[start+len("\nvariable \""):], []byte("\" {\n"))
		inside, _, _ := bytes.Cut(rest, []byte("\n}"))
		data = rest
		if first, others, _ := bytes.Cut(inside, []byte("\n")); bytes.HasPrefix(first, []byte("  description")) {
			inside = others
		}
		out[string(name)] = inside
	}
}

// attributeLines are the values in a file by the names before them.
func attributeLines(data []byte) map[string]string {
	lines := make(map[string]string)
	for line := range strings.Lines(string(ownHeader(data))) {
		if name, value, ok := strings.Cut(line, "="); ok {
			lines[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return lines
}

func (r *Root) file(name string) []byte {
	for _, file := range r.files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

func same(a, b any) bool { return text(a) == text(b) }

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func union[V any](a, b map[string]V) []string {
	names := maps.Clone(a)
	if names == nil {
		names = make(map[string]V)
	}
	maps.Copy(names, b)
	return slices.Sorted(maps.Keys(names))
}

// Words says what changes, a line for each part of the root module, sorted:
// "module network: its call", "modules/aws/network: 2 files".
func (c RootChange) Words() []string {
	switch {
	case c.before == nil || c.after == nil:
		return nil
	case c.before.Digest == "":
		return []string{"the root module is new"}
	}
	words := c.own()
	was, is := c.before.blocks(), c.after.blocks()
	for _, name := range union(was, is) {
		_, had := was[name]
		_, has := is[name]
		switch {
		case !had:
			words = append(words, name+" is new")
		case !has:
			words = append(words, name+" is gone")
		case was[name] == is[name] || c.reported(name):
		case strings.HasPrefix(name, "variable "):
			words = append(words, name+" is declared differently")
		default:
			words = append(words, name+" is called or configured differently")
		}
	}
	files := make(map[string]int) // changed ones by folder
	before, after := hashes(c.before), hashes(c.after)
	for _, name := range union(before, after) {
		if before[name] != after[name] {
			files[path.Dir(strings.TrimPrefix(name, modulesDir+"/"))]++
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		if files[dir] == 1 {
			words = append(words, fmt.Sprintf("1 file of %s", dir))
		} else {
			words = append(words, fmt.Sprintf("%d files of %s", files[dir], dir))
		}
	}
	return words
}

// reported reports whether own reports a block.
func (c RootChange) reported(block string) bool {
	name, ok := strings.CutPrefix(block, "variable ")
	return ok && slices.Contains(c.declared(), name) && c.gives(name)
}

func hashes(r *Root) map[string]string {
	out := make(map[string]string, len(r.entries))
	for _, e := range r.entries {
		out[e.Path] = e.Hash
	}
	return out
}

// blocks are the blocks at the top of the files that clusters share, by their
// headings as people say them: "module network", "provider aws". The files are
// ours: each block begins at the start of a line, and its end is there too.
func (r *Root) blocks() map[string]string {
	out := make(map[string]string)
	for _, file := range r.files {
		if owned(file.Name) {
			continue
		}
		name := ""
		for line := range strings.Lines(string(ownHeader(file.Data))) {
			if line[0] != ' ' && line[0] != '}' && line[0] != '\n' {
				heading, _, _ := strings.Cut(line, "{")
				name = strings.TrimSpace(strings.ReplaceAll(heading, `"`, ""))
			}
			out[name] += line
		}
	}
	return out
}

// Digest is of the modules in the repository that a template is made of, its
// lock file included. What its template.yaml says is not in it.
func (t *Template) Digest() holdfast.Digest {
	digest := holdfast.NewDigester("template")
	digest.Add(t.lockFile.Hash)
	for _, name := range t.Providers() {
		digest.Add(name, string(t.providers[name].digest))
	}
	return digest.Digest()
}
