package templates

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// Rebundle returns a bundle whose root module, in dir, has its state where the block in code
// says, whatever else says in it where that is. The block that said so before, if Holdfast
// had written it, is next to it.
func Rebundle(bundle io.Reader, dir, code string) (data []byte, digest holdfast.Digest, err error) {
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		return nil, "", fmt.Errorf("open bundle: %w", err)
	}
	over, former := path.Join(dir, rootmodule.StateOverrideFile), path.Join(dir, rootmodule.FormerStateOverrideFile)
	items := []item{{path: over, data: append(header("holdfast state migrate"), code...), made: true}}
	total := int64(0)
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, "", fmt.Errorf("read bundle: %w", err)
		}
		var file bytes.Buffer
		n, err := io.Copy(&file, io.LimitReader(archive, maxBundleBytes+1-total))
		if total += n; err != nil {
			return nil, "", fmt.Errorf("read bundle: %w", err)
		} else if total > maxBundleBytes {
			return nil, "", fmt.Errorf("read bundle: it has more than %d bytes", maxBundleBytes)
		}
		it := item{path: head.Name, exec: head.Mode&0o100 != 0, data: file.Bytes(), made: true}
		switch head.Name {
		case former:
			continue
		case over:
			it.path = former
		}
		items = append(items, it)
	}
	return pack(items, nil)
}
