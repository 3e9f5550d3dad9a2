package folders

import (
	"context"
	"io"
	"path"
	"path/filepath"
	"strings"
)

// View is how an engine sees files of the machine, by the names that code gives them.
type View struct {
	Cwd  string            // where the engine is started, as it sees that
	Home string            // as it sees that
	Host map[string]string // where on the machine what it sees is, if not where it sees it
	Own  []string          // folders of the machine that are the run's own
}

// Real is a path without links, the path itself if there is nothing.
func Real(file string) string {
	if led, err := filepath.EvalSymlinks(file); err == nil {
		return led
	}
	return file
}

// On returns where on the machine the file is that code names.
func (v View) On(name string) string {
	file := filepath.Clean(name)
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		file = filepath.Join(v.Home, name[1:])
	case !filepath.IsAbs(name): // the kernel follows it from there
		file = filepath.Join(v.Cwd, name)
	}
	most, host := "", file
	for seen, at := range v.Host {
		if len(seen) > len(most) && Within([]string{seen}, file) {
			most, host = seen, filepath.Join(at, Below(seen, file))
		}
	}
	return host
}

// Open opens the file that code names. It is an error if it is anything else, or is in
// /proc or /sys.
func (v View) Open(name string) (io.ReadCloser, error) {
	file, err := Open(v.On(name))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Outside returns the path on the machine of what code names, if that is not the run's
// own. Links among its own can lead anywhere.
func (v View) Outside(name string) (string, bool) {
	file := v.On(name)
	if !Within(v.Own, file) {
		return file, true
	}
	led, err := filepath.EvalSymlinks(file)
	for _, own := range v.Own {
		if Within([]string{Real(own)}, led) {
			return "", false
		}
	}
	return led, err == nil
}

// Shown is a file as code names it, which does not reveal where the engine was started.
func (v View) Shown(name string) string {
	if rest, ok := strings.CutPrefix(name, v.Cwd); ok && (rest == "" || rest[0] == '/') {
		return path.Join(".", rest)
	}
	if name = strings.ReplaceAll(name, v.Cwd, "${path.cwd}"); strings.HasPrefix(name, "~") {
		return name
	}
	return path.Clean(name)
}

// Sums returns hashes of those of the files that are not the run's own, by how they are
// shown. At most 1 GiB of all of them together is read.
func (v View) Sums(ctx context.Context, names []string) (map[string]string, error) {
	sums, known, left := map[string]string{}, map[string]string{}, int64(maxSums)
	for _, name := range names {
		file, outside := v.Outside(name)
		if !outside {
			continue
		}
		sum, ok := known[file]
		if !ok {
			var err error
			if sum, err = sumOf(ctx, file, &left); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			} else if err != nil { // as the engine finds it, or does not
				sum = "cannot be read"
			}
			known[file] = sum
		}
		sums[v.Shown(name)] = sum
	}
	return sums, nil
}
