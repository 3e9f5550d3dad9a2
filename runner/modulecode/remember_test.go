package modulecode

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// All that reads code in one context parses a file once, and again when it has changed.
func TestRemembering(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "main.tf")
	write := func(code string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(ctx context.Context) *hcl.File {
		t.Helper()
		file, err := parse(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	for what, reads := range map[string]func(ctx context.Context) error{
		"the root module": func(ctx context.Context) error { return Read(ctx, dir, dir, Terraform).Unread },
		"references":      func(ctx context.Context) error { _, err := ReadReferences(ctx, dir, Terraform); return err },
		"files":           func(ctx context.Context) error { _, err := Reader{Engine: Terraform}.FilesRead(ctx, dir); return err },
	} {
		write("locals { a = 1 }\n")
		ctx := Remembering(t.Context())
		first := read(ctx)
		if err := reads(ctx); err != nil || read(ctx) != first {
			t.Errorf("%s: the file is parsed again, %v", what, err)
		}
		fresh := Remembering(t.Context())
		if err := reads(fresh); err != nil || len(fresh.Value(memoryKey{}).(*memory).files) != 1 {
			t.Errorf("%s: the file is not remembered, %v", what, err)
		}
		if read(fresh) == first || read(t.Context()) == first {
			t.Errorf("%s: another context has what is of this one", what)
		}
		write("locals { a = 2 }\n")
		if read(ctx) == first {
			t.Errorf("%s: what has changed is read as it was", what)
		}
	}
}

// Large code is parsed each time: parsed it takes many times as much memory.
func TestRememberingIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := Remembering(t.Context())
	known := ctx.Value(memoryKey{}).(*memory)
	code := "locals {\n" + strings.Repeat("  # a comment\n", parsedBytes/30) + "}\n" // nearly half of the bound
	for _, file := range []string{"a.tf", "b.tf", "c.tf", "a.tf"} {
		name := filepath.Join(dir, file)
		code += "\n"
		if err := os.WriteFile(name, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parse(ctx, name); err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, kept := range known.files {
			held += kept.size
		}
		if held != known.bytes || held > parsedBytes {
			t.Errorf("after %s %d bytes are kept, and %d counted, of at most %d", file, held, known.bytes, parsedBytes)
		}
	}
	if len(known.files) != 2 {
		t.Errorf("%d files are kept, want the two for which there is room", len(known.files))
	}
}
