package templates

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// File is a file that Holdfast made for a root module.
type File struct {
	Name string // in the root module's folder
	Data []byte
}

// Root is the root module of a cluster: what is handed to the engine. It is
// immutable and safe for concurrent use.
type Root struct {
	Dir string // of the root module in the bundle
	// Digest is the source digest: of all that Git says of the root module and
	// that can change a plan, and of nothing else. It has no commit, no label, no
	// description and no path of the cluster's file in it.
	Digest holdfast.Digest
	// Code is of the files alone; Bound also of the project and the environment. Digest is
	// one of the two: which, depends on whether the environment of the engine says which
	// state it is, as far as this version and the server's configuration know.
	Code, Bound holdfast.Digest
	// StateLocation says where the state is; two clusters with the same one
	// must not run at once. It has no secrets in it.
	StateLocation string
	OwnState      bool // the state is in Holdfast's own backend
	// Template is "kubernetes@1.4.2 (abc1234)" for people; empty for a custom
	// module.
	Template         string
	TemplateRevision holdfast.Revision // of a released template
	EngineConstraint string            // of the cluster's document; empty: the code says
	Variables        map[string]any    // after the template's defaults; not to be changed

	// Secrets says where the secret variables that the cluster gives are, by
	// name; they are not among Variables. Not to be changed.
	Secrets map[string]rootmodule.SecretRef
	// CodeSecrets says the same of those that the code itself gives. Not to be changed.
	CodeSecrets map[string]rootmodule.SecretRef
	// OutputRoles names the outputs that mean something to Holdfast, by what they mean
	// (holdfast.OutputRoleEndpoint and its like). Not to be changed.
	OutputRoles map[string]string

	// Unset are the faults of variables of a custom module that have no value from the
	// document nor from files: an engine would fail.
	Unset holdfast.Faults

	// Reads are the files and folders of the cluster's own repository that the
	// root module depends on, sorted; whether they are there or not. As long as
	// none of them changes, nor the cluster's file, Resolve gives the same.
	Reads []string

	state   backend
	files   []File          // by name
	entries []modules.Entry // from the tree, sorted by path
	tree    holdfast.Tree
	// shared is of the part that other clusters of the same template, provider
	// and modules have, too: what of main.tf and providers.tf can change a plan,
	// the modules' files and the lock file. It is empty for a custom module.
	shared holdfast.Digest
}

// Files returns the files that Holdfast made, by name. The values of variables
// are among them.
func (r *Root) Files() []File { return slices.Clone(r.files) }

// compressors have made a bundle before: a new one takes most of a megabyte, and of a pull
// request that touches many clusters each has a bundle made.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }} //nolint:gochecknoglobals // a cache

// Bundle returns the root module and the modules that it needs from the
// repository as a tar archive, compressed with gzip, and the archive's digest.
// The same content gives the same bytes. A file that cannot be bundled, such as
// one that is too large, is a holdfast.Faults.
func (r *Root) Bundle() (data []byte, digest holdfast.Digest, err error) {
	items := make([]item, 0, len(r.entries)+len(r.files))
	for _, e := range r.entries {
		items = append(items, item{path: e.Path, exec: e.Exec, source: e.Source})
	}
	for _, f := range r.files {
		items = append(items, item{path: path.Join(r.Dir, f.Name), data: f.Data, made: true})
	}
	return pack(items, r.tree.ReadFile)
}

// item is a file of a bundle.
type item struct {
	path   string
	exec   bool
	source string // where it is read from, unless it was made
	data   []byte
	made   bool
}

// pack writes a bundle.
func pack(items []item, read func(source string) ([]byte, error)) (data []byte, digest holdfast.Digest, err error) {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.path, b.path) })
	var out bytes.Buffer
	zip := compressors.Get().(*gzip.Writer)
	zip.Reset(&out)
	defer func() {
		zip.Reset(io.Discard) // it keeps nothing of this bundle
		compressors.Put(zip)
	}()
	archive := tar.NewWriter(zip)
	total := 0
	for _, it := range items {
		if !it.made {
			if it.data, err = read(it.source); err != nil {
				if why, ok := modules.Refused(err); ok {
					return nil, "", holdfast.Faults{{File: it.source, Message: why}}
				}
				return nil, "", fmt.Errorf("read %s: %w", it.source, err)
			}
		}
		if total += len(it.data); total > maxBundleBytes {
			return nil, "", holdfast.Faults{{File: it.source, Message: fmt.Sprintf("root module and its modules have more than %d bytes", maxBundleBytes)}}
		}
		mode := int64(0o644)
		if it.exec {
			mode = 0o755
		}
		head := &tar.Header{
			Typeflag: tar.TypeReg, Name: it.path, Size: int64(len(it.data)), Mode: mode,
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(head); err != nil {
			return nil, "", fmt.Errorf("bundle %s: %w", it.path, err)
		}
		if _, err := archive.Write(it.data); err != nil {
			return nil, "", fmt.Errorf("bundle %s: %w", it.path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, "", fmt.Errorf("close bundle: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, "", fmt.Errorf("close bundle: %w", err)
	}
	return out.Bytes(), holdfast.DigestOf(out.Bytes()), nil
}
