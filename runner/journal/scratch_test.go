package journal_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/journal"
)

// What is written comes back whole, whatever is in memory and what in a file, and leaves
// nothing behind; a little takes no file.
func TestScratch(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][]int{
		"nothing":          {},
		"a little":         {10, 0, 20},
		"all that is held": {64 << 10},
		"a byte more":      {64 << 10, 1},
		"small pieces":     {40 << 10, 40 << 10, 40 << 10},
		"at once":          {200 << 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := journal.NewScratch(dir)
			var want []byte
			for i, size := range sizes {
				p := bytes.Repeat([]byte{byte('a' + i)}, size)
				if n, err := s.Write(p); n != size || err != nil {
					t.Fatalf("%d of %d bytes, %v", n, size, err)
				}
				want = append(want, p...)
			}
			r, err := s.Rewind()
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back of %d, %v", len(got), len(want), err)
			}
			s.Close()
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it has left %v, %v", left, err)
			}
		})
	}
}

// A disk that takes nothing takes nothing from what is in memory.
func TestScratchWithoutADisk(t *testing.T) {
	t.Parallel()
	s := journal.NewScratch(filepath.Join(t.TempDir(), "gone"))
	defer s.Close()
	if _, err := s.Write([]byte("kept")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 64<<10)); err == nil {
		t.Error("more than is held was kept nowhere")
	}
	r, err := s.Rewind()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}
