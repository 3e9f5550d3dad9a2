package templates

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Reach names what of a cluster's own values can reach the parts of its root
// module that a change touches. It is the same for all clusters whose root modules
// change in the same way (RootChange.Key).
type Reach struct {
	variables []string // of the root module, sorted
	fields    []string // of the cluster, sorted: name, region, ...
	cluster   bool     // all of them

	was, is map[string]string // the defaults of variables, before and after
}

var (
	//nolint:gochecknoglobals // constants
	reachesFrom = regexp.MustCompile(`\b(var|module|local\.cluster)\b(?:\.([A-Za-z_][A-Za-z0-9_-]*))?`)
	callDir     = regexp.MustCompile(`(?m)^  source *= "\.\./` + modulesDir + `/([^"]*)"`) //nolint:gochecknoglobals // a constant
)

// Reach returns what can reach what changes. It would rather name too much: every
// module whose call or code changes counts, those that depend on one, and those that
// they depend on; and all of them, if what changes belongs to none.
func (c RootChange) Reach() Reach {
	was, is := c.before.blocks(), c.after.blocks()
	blocks := maps.Clone(was)
	maps.Copy(blocks, is)
	touched := make(map[string]bool) // blocks
	everything := false
	for name, text := range blocks {
		before, had := was[name]
		if after, has := is[name]; had && has && before == after {
			continue
		}
		touched[name] = true
		switch kind, _, _ := strings.Cut(name, " "); kind {
		case "module", "output":
		case "variable":
			_, variable, _ := strings.Cut(name, " ")
			for other, text := range blocks {
				touched[other] = touched[other] || refers(text, "var", variable)
			}
		default: // a provider, or which there are
			everything = true
		}
		if before := was[name]; before != text {
			blocks[name] += before // what it referred to counts, too
		}
	}
	everything = c.touchFiles(blocks, touched) || everything
	for name := range blocks {
		if everything && strings.HasPrefix(name, "module ") {
			touched[name] = true
		}
	}
	spread(blocks, touched, true)
	spread(blocks, touched, false)
	reach := reachOf(blocks, touched)
	reach.was, reach.is = defaultsOf(was), defaultsOf(is)
	return reach
}

// defaultsOf returns the defaults of variables, as they are written.
func defaultsOf(blocks map[string]string) map[string]string {
	out := make(map[string]string)
	for name, text := range blocks {
		if variable, ok := strings.CutPrefix(name, "variable "); ok {
			if value, ok := attributeLines([]byte(text))["default"]; ok {
				out[variable] = value
			}
		}
	}
	return out
}

// touchFiles marks the modules whose files change, and reports whether there are
// others that do.
func (c RootChange) touchFiles(blocks map[string]string, touched map[string]bool) (others bool) {
	before, after := hashes(c.before), hashes(c.after)
	dirs := make(map[string][]string) // blocks by the folders that they call
	for name, text := range blocks {
		for _, found := range callDir.FindAllStringSubmatch(text, -1) {
			dirs[found[1]] = append(dirs[found[1]], name)
		}
	}
	for _, file := range union(before, after) {
		if before[file] == after[file] {
			continue
		}
		found := false
		for dir := path.Dir(strings.TrimPrefix(file, modulesDir+"/")); dir != "." && dir != "/"; dir = path.Dir(dir) {
			for _, name := range dirs[dir] {
				touched[name], found = true, true
			}
		}
		others = others || !found
	}
	return others
}

// spread marks what depends on what is touched or, upwards, what that depends on.
func spread(blocks map[string]string, touched map[string]bool, down bool) {
	for more := true; more; {
		more = false
		for name, text := range blocks {
			for _, found := range reachesFrom.FindAllStringSubmatch(text, -1) {
				if found[1] != "module" {
					continue
				}
				from, to := "module "+found[2], name // values go this way
				if !down {
					from, to = to, from
				}
				if _, ok := blocks[to]; ok && touched[from] && !touched[to] {
					touched[to], more = true, true
				}
			}
		}
	}
}

func reachOf(blocks map[string]string, touched map[string]bool) Reach {
	var r Reach
	for name, text := range blocks {
		if variable, ok := strings.CutPrefix(name, "variable "); ok && touched[name] {
			r.variables = append(r.variables, variable)
			continue
		}
		for _, found := range reachesFrom.FindAllStringSubmatch(text, -1) {
			switch {
			case !touched[name]:
			case found[1] == "var":
				r.variables = append(r.variables, found[2])
			case found[1] == "local.cluster" && found[2] == "":
				r.cluster = true
			case found[1] == "local.cluster":
				r.fields = append(r.fields, found[2])
			}
		}
	}
	slices.Sort(r.variables)
	slices.Sort(r.fields)
	r.variables, r.fields = slices.Compact(r.variables), slices.Compact(r.fields)
	return r
}

func refers(text, kind, name string) bool {
	return slices.ContainsFunc(reachesFrom.FindAllStringSubmatch(text, -1), func(found []string) bool {
		return found[1] == kind && found[2] == name
	})
}

// Values are the values of this cluster that reach what changes, before and after, as
// a digest: of two clusters with the same one the same change of the code has the same
// to work on. How they change is in the Key.
func (c RootChange) Values(reach Reach) holdfast.Digest {
	digest := holdfast.NewDigester("values")
	reach.add(digest, c.before, reach.was)
	reach.add(digest, c.after, reach.is)
	return digest.Digest()
}

// add adds the values of one root module, whose variables have these defaults.
func (reach Reach) add(digest *holdfast.Digester, root *Root, defaults map[string]string) {
	digest.Add("root")
	for _, name := range reach.variables {
		if value, ok := root.Variables[name]; ok {
			digest.Add("var", name, text(value))
		} else if ref, ok := root.Secrets[name]; ok {
			digest.Add("secret", name, text(ref))
		} else if value, ok := defaults[name]; ok {
			digest.Add("var", name, value) // as if the cluster gave it
		}
	}
	if len(reach.fields) == 0 && !reach.cluster {
		return
	}
	_, own, _ := bytes.Cut(root.file(clusterFile), []byte("\nlocals {"))
	if reach.cluster {
		digest.Add("cluster", string(own))
	}
	lines := attributeLines(own)
	for _, name := range reach.fields {
		value, ok := lines[`"`+name+`"`]
		if !ok {
			continue // nothing of this root module refers to it
		}
		if strings.HasSuffix(value, "{") || strings.HasSuffix(value, "[") { // over lines
			value = string(own)
		}
		digest.Add("cluster", name, value)
	}
}
