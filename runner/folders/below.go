package folders

import (
	"path/filepath"
	"slices"
)

// Below returns what leads from dir to name, empty if name is not below it. No
// folder is the whole of the file system.
func Below(dir, name string) string {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return ""
	}
	rest, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rest) || rest == "." {
		return ""
	}
	return rest
}

// Within reports whether name is one of the dirs, or below one.
func Within(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return dir == name || Below(dir, name) != "" })
}
