package workspace

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/protocol"
)

// Limits of a bundle besides ExecutorOptions.MaxBundle.
const (
	maxBundleEntries = 200_000
	maxBundlePath    = 4096
	maxBundleDepth   = 100 // folders; of those below folders.MaxDepth some are an engine's
)

// Unpack extracts a gzipped tar below dir, which must exist. Nothing is ever
// written outside of dir: names that lead out are refused, and so are links that
// do. Folders .terraform and files errored.tfstate are left out: they are the
// engine's.
func Unpack(ctx context.Context, r io.Reader, dir string, limit int64) error {
	return unpack(ctx, r, dir, limit, engines)
}

// UnpackAll is Unpack, and leaves nothing out.
func UnpackAll(ctx context.Context, r io.Reader, dir string, limit int64) error {
	return unpack(ctx, r, dir, limit, func(string) bool { return false })
}

// unpack is Unpack, and leaves out what skip says.
func unpack(ctx context.Context, r io.Reader, dir string, limit int64, skip func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	zr, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("read gzip: %w", err)
	}
	defer zr.Close()
	tr := tar.NewReader(zr)
	var links []*tar.Header
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read tar: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if n >= maxBundleEntries {
			return fmt.Errorf("more than %d entries", maxBundleEntries)
		}
		name, err := entryName(h.Name)
		if err != nil {
			return err
		} else if name == "." || skip(name) {
			continue
		}
		h.Name = name
		if h.Typeflag == tar.TypeSymlink {
			links = append(links, h)
			continue
		}
		if limit -= h.Size; limit < 0 {
			return errors.New("unpacked it is too large")
		}
		if err := unpackEntry(root, h, tr); err != nil {
			return fmt.Errorf("unpack %q: %w", name, err)
		}
	}
	// Links come last, so that no file is written through one.
	for _, h := range links {
		if err := unpackLink(root, h); err != nil {
			return fmt.Errorf("unpack %q: %w", h.Name, err)
		}
	}
	// A chain of links can lead out where each alone does not, also by one that comes
	// after it: os.Root tells, once all are there.
	for _, h := range links {
		if _, err := root.Stat(h.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unpack %q: link to %q: %w", h.Name, h.Linkname, err)
		}
	}
	return nil
}

// entryName returns the clean name of an entry.
func entryName(name string) (string, error) {
	if len(name) > maxBundlePath {
		return "", fmt.Errorf("a name of %d bytes", len(name))
	}
	clean := path.Clean(strings.TrimSuffix(name, "/"))
	if clean != "." && (!filepath.IsLocal(clean) || strings.ContainsAny(clean, "\x00\\")) {
		return "", fmt.Errorf("name %q leads out of the bundle", name)
	}
	if strings.Count(clean, "/") > maxBundleDepth {
		return "", fmt.Errorf("a name with more than %d folders", maxBundleDepth)
	}
	return clean, nil
}

// engines reports whether an entry of a bundle is the engine's. A state that could
// not be saved is one of this attempt's engine.
func engines(name string) bool {
	return slices.Contains(strings.Split(name, "/"), ".terraform") || path.Base(name) == protocol.ArtefactErrored
}

func unpackEntry(root *os.Root, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(h.Name, 0o700)
	case tar.TypeReg:
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("entries of type %q are not allowed", h.Typeflag)
	}
	if dir := path.Dir(h.Name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o600)
	if h.Mode&0o100 != 0 {
		mode = 0o700
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func unpackLink(root *os.Root, h *tar.Header) error {
	target := path.Join(path.Dir(h.Name), h.Linkname)
	if path.IsAbs(h.Linkname) || !filepath.IsLocal(target) {
		return fmt.Errorf("link to %q leads out of the bundle", h.Linkname)
	}
	if dir := path.Dir(h.Name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return root.Symlink(h.Linkname, h.Name)
}

// Inside returns dir joined with the slash-separated name, an error if that
// leads out of dir.
func Inside(dir, name string) (string, error) {
	if name == "" {
		return dir, nil
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%q leads out of the bundle", name)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}
