package folders

import "path/filepath"

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
