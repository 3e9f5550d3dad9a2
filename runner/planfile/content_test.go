package planfile_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// askedReader notes the most that it was asked for at once.
type askedReader struct {
	io.Reader
	most int
}

func (r *askedReader) Read(p []byte) (int, error) {
	r.most = max(r.most, len(p))
	return r.Reader.Read(p)
}

// Content is compared to its end, whatever its size; for small files, of which a bundle has
// many, no large buffers are made.
func TestSameContent(t *testing.T) {
	t.Parallel()
	const small = 4 << 10
	page := strings.Repeat("0123456789abcdef", small/16)
	large := strings.Repeat(page, 40)
	for name, test := range map[string]struct {
		a, b string
		same bool
	}{
		"nothing":            {"", "", true},
		"a file":             {"locals {}", "locals {}", true},
		"another":            {"locals {}", "locals []", false},
		"more":               {"locals {}", "locals {}\n", false},
		"less":               {"locals {}\n", "locals {}", false},
		"a page":             {page, page, true},
		"a page and more":    {page, page + "x", false},
		"large":              {large, large, true},
		"large, another end": {large + "x", large + "y", false},
		"large, cut off":     {large, large[:len(large)-1], false},
	} {
		a := &askedReader{Reader: iotest.OneByteReader(strings.NewReader(test.a))}
		same, err := planfile.SameContent(a, strings.NewReader(test.b))
		if err != nil || same != test.same {
			t.Errorf("%s: %t, %v", name, same, err)
		}
		if len(test.a) < small && a.most > small {
			t.Errorf("%s: %d bytes are read at once of a file of %d", name, a.most, len(test.a))
		}
	}
	failed := errors.New("no disk")
	if _, err := planfile.SameContent(iotest.ErrReader(failed), strings.NewReader("")); !errors.Is(err, failed) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
