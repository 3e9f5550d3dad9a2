package uplink

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/runner/journal"
)

// TestProgress: a successor knows what an apply has begun and completed, or that it does
// not know all of it.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(file []byte) []byte
		lost   bool
	}{
		"as it was written":       {change: func(file []byte) []byte { return file }},
		"without its last bytes":  {change: func(file []byte) []byte { return file[:len(file)-4] }, lost: true},
		"without a line":          {change: func([]byte) []byte { return nil }, lost: true},
		"from before a power cut": {change: func(file []byte) []byte { return bytes.Replace(file, []byte(durable.Boot()), []byte("other"), 1) }, lost: true},
		"without the engine's end": {change: func(file []byte) []byte {
			return bytes.TrimSuffix(file, []byte(progressEnd+"\n"))
		}, lost: true},
		"of which it lost all": {change: func([]byte) []byte { return []byte("\x00\x00\x00\x00\n") }, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &progress{path: filepath.Join(t.TempDir(), progressFile), logger: slog.New(slog.DiscardHandler)}
			p.begin()
			engine := journal.NewProgress(p.note)
			for _, line := range []string{
				"a.a: Creating...", "a.b: Creating...", "a.a: Still creating... [10s elapsed]",
				"a.a: Creation complete after 11s [id=7]", `a.c["x: y"]: Destroying... [id=8]`,
			} {
				_, _ = engine.Write([]byte(line + "\n"))
				_, _ = engine.Write(bytes.Repeat([]byte("a.b (local-exec): much\n"), 100))
			}
			p.note(progressEnd)
			p.close()
			file, err := os.ReadFile(p.path)
			if err != nil || len(file) > 300 {
				t.Fatalf("%d bytes, %v; want few", len(file), err)
			}
			if err := os.WriteFile(p.path, c.change(file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := p.read()
			if c.lost {
				if err == nil {
					t.Error("what was lost was not missed")
				}
				return
			}
			if err != nil || !slices.Equal(got.Addresses(), engine.Addresses()) || !slices.Equal(got.Completed(), engine.Completed()) {
				t.Errorf("%v, begun %q, completed %q; want %q and %q", err, got.Addresses(), got.Completed(), engine.Addresses(), engine.Completed())
			}
		})
	}
}

// TestProgressThatCannotBeKept is not there, rather than not whole.
func TestProgressThatCannotBeKept(t *testing.T) {
	t.Parallel()
	p := &progress{path: filepath.Join(t.TempDir(), progressFile), logger: slog.New(slog.DiscardHandler)}
	if _, err := p.read(); err == nil {
		t.Error("one that never was is whole")
	}
	p.begin()
	p.note("a.a: Creating...")
	_ = p.file.Close() // as when the disk is full
	p.note("a.b: Creating...")
	p.begin()
	p.note("a.c: Creating...")
	if _, err := p.read(); err == nil {
		t.Error("one that was no longer kept is whole")
	}
}
