package propose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// place finds the path of the file, and reads it.
func (r *draft) place() error {
	if r.Change != proposals.Create {
		return r.existing()
	}
	switch r.path = path.Clean(r.Path); {
	case r.Path == "":
		if r.path = usualPath(r.repo.Globs, r.Name); r.path == "" {
			return invalid("", "where in repository %s the document is to be is not clear, name a path: its clusters are in %s", r.repo.Name, strings.Join(r.repo.Globs, ", "))
		}
	case path.IsAbs(r.path), r.path == "..", strings.HasPrefix(r.path, "../"), notForGit(r.path), !defines(r.repo.Globs, r.path):
		return invalid("", "repository %s has no clusters in %.200q, but in %s", r.repo.Name, r.Path, strings.Join(r.repo.Globs, ", "))
	}
	if len(r.cat.Named(r.Name)) > 0 {
		return holdfast.ErrorOf(holdfast.ErrConflict, "there is a cluster %q already", r.Name)
	}
	data, err := r.cat.Tree.ReadFile(r.path)
	if why, refused := modules.Refused(err); refused {
		return holdfast.ErrorOf(holdfast.ErrConflict, "%s is there, and cannot be added to: %s", r.path, why)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", r.path, err) // it must not be written over
	}
	r.file = data
	return nil
}

// existing is the file that has the cluster's document.
func (r *draft) existing() error {
	entries := r.cat.Named(r.Name)
	switch {
	case len(entries) == 0:
		return holdfast.ErrorOf(holdfast.ErrConflict, "the document of %s is not on branch %s of repository %s", r.Name, r.repo.Branch, r.repo.Name)
	case len(entries) > 1:
		return holdfast.ErrorOf(holdfast.ErrConflict, "several documents of repository %s claim the name %s: correct that first", r.repo.Name, r.Name)
	}
	r.path = entries[0].File.Path
	data, err := r.cat.Tree.ReadFile(r.path)
	if err != nil {
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	r.file = data
	return nil
}

// notForGit reports whether a path is one that Git does not check out, or hardly anybody can name.
func notForGit(name string) bool {
	return !utf8.ValidString(name) || strings.Contains(name, `\`) || strings.ContainsFunc(name, unicode.IsControl) ||
		slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

func defines(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { ok, err := doublestar.Match(glob, name); return ok && err == nil })
}

// usualPath is a separate file for a cluster, by the first glob that says where: *.yaml is
// NAME.yaml, and no folder is needed where any may be.
func usualPath(globs []string, name string) string {
	for _, glob := range globs {
		parts := strings.Split(glob, "/")
		folders := slices.DeleteFunc(slices.Clone(parts[:len(parts)-1]), func(part string) bool { return part == "**" })
		file := parts[len(parts)-1]
		if strings.Count(file, "*") == 1 {
			file = strings.Replace(file, "*", name, 1)
		}
		candidate := path.Join(append(folders, file)...)
		if !strings.ContainsAny(candidate, "*?[{") && defines(globs, candidate) && strings.Contains(candidate, name) {
			return candidate
		}
		if strings.Count(file, "*") == 0 && strings.Contains(file, "{") { // such as *.{yaml,yml}
			if candidate = path.Join(append(folders, name+".yaml")...); !strings.ContainsAny(candidate, "*?[{") && defines(globs, candidate) {
				return candidate
			}
		}
	}
	return ""
}
