package terragrunt

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// Pack is a bundle that is made of what Terragrunt left.
type Pack struct {
	Dir  string // of all that it copied
	Root string // of the root module in Dir
	// Open opens a regular file of the sandbox's user by its path below Dir.
	Open  func(name string) (io.ReadCloser, error)
	Limit int64             // bytes of all files
	Files map[string][]byte // that are added to the root module, by name
}

// errTooLarge is of more bytes than a bundle may have.
var errTooLarge = errors.New("the root module and what is copied with it are too large")

// item is an entry of a bundle.
type item struct {
	name, link string
	exec       bool
	size       int64
	data       []byte // of a file that is added
}

// Write writes the bundle: the same content gives the same bytes. It returns their digest.
func (p Pack) Write(ctx context.Context, to io.Writer) (holdfast.Digest, error) {
	items, err := p.items(ctx)
	if err != nil {
		return "", err
	}
	digest := holdfast.NewDigester("terragrunt")
	zip := gzip.NewWriter(to)
	archive := tar.NewWriter(zip)
	for _, it := range items {
		sum, err := p.add(archive, it)
		if err != nil {
			return "", fmt.Errorf("bundle %s: %w", it.name, err)
		}
		digest.Add(it.name, it.link, fmt.Sprint(it.exec), string(sum))
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return "", fmt.Errorf("close bundle: %w", err)
	}
	return digest.Digest(), nil
}

// items lists what is bundled, by name.
func (p Pack) items(ctx context.Context) ([]item, error) {
	var items []item
	left := p.Limit
	bounds := folders.Workspace()
	bounds.Skip = func(e folders.Entry) bool {
		return e.Name == ".git" || e.Name == ".terraform" || e.Name == ".terragrunt-cache"
	}
	err := folders.Walk(ctx, p.Dir, bounds, func(e folders.Entry) error {
		it := item{name: e.Path, exec: e.Stat.Mode&0o100 != 0, size: e.Stat.Size}
		switch e.Kind() {
		case unix.S_IFDIR:
			return nil
		case unix.S_IFLNK:
			var err error
			if it.link, err = os.Readlink(filepath.Join(p.Dir, filepath.FromSlash(e.Path))); err != nil {
				return err
			}
			it.size = 0
		case unix.S_IFREG:
			if ofTerragrunt(e.Name) {
				return nil
			}
		default:
			return fmt.Errorf("%s is not a regular file", e.Path)
		}
		if left -= it.size; left < 0 {
			return errTooLarge
		}
		items = append(items, it)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, data := range p.Files {
		items = append(items, item{name: path.Join(p.Root, name), size: int64(len(data)), data: data})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return items, nil
}

// ofTerragrunt reports whether a file is what Terragrunt keeps its own accounts in.
func ofTerragrunt(name string) bool { return strings.HasPrefix(name, ".terragrunt-") }

// add writes an entry, and returns the digest of its content.
func (p Pack) add(archive *tar.Writer, it item) (holdfast.Digest, error) {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: it.name, Size: it.size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if it.exec {
		head.Mode = 0o755
	}
	if it.link != "" {
		head.Typeflag, head.Linkname = tar.TypeSymlink, it.link
		return "", archive.WriteHeader(head)
	}
	if err := archive.WriteHeader(head); err != nil {
		return "", err
	}
	if it.data != nil {
		_, err := archive.Write(it.data)
		return holdfast.DigestOf(it.data), err
	}
	file, err := p.Open(it.name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return digested(file, archive, it.size)
}

// digested copies a file of a size, and returns the digest of its content.
func digested(from io.Reader, to io.Writer, size int64) (holdfast.Digest, error) {
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(to, sum), from, size); err != nil {
		return "", err
	}
	return holdfast.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), nil
}
