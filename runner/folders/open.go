package folders

import (
	"context"
	"errors"
	"io"
)

// kernelFolders are those in which the kernel shows devices, processes and itself: what
// is there changes all the time.
var kernelFolders = []string{"/dev", "/proc", "/sys"} //nolint:gochecknoglobals // a constant list

var errKind = errors.New("neither a file nor a folder")

// reading is a file that is read until ctx ends.
type reading struct {
	ctx  context.Context //nolint:containedctx // of one call
	file io.Reader
}

// Reading returns a reader of a file that ends with ctx's cause once ctx has ended.
func Reading(ctx context.Context, file io.Reader) io.Reader { return reading{ctx, file} }

// seeking is one that can be read from elsewhere, too.
type seeking struct {
	io.Reader
	io.Seeker
}

// Seeking is Reading of a file that can be read again.
func Seeking(ctx context.Context, file io.ReadSeeker) io.ReadSeeker {
	return seeking{Reading(ctx, file), file}
}

// Await returns what do does, and ctx's cause once ctx has ended: a file system that does
// not answer blocks do, and nothing else.
func Await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (r reading) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.file.Read(p)
}
