package templates_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates"
)

// unpacked are the files of a bundle, with an asterisk after those that can be executed.
func unpacked(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name := head.Name
		if head.Mode&0o100 != 0 {
			name += "*"
		}
		files[name] = string(text)
	}
}

// TestRebundle: a root module gets a block that says where its state is, next to the one that
// Holdfast wrote before, and stays what it is otherwise. The same gives the same bytes.
func TestRebundle(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for name, mode := range map[string]int64{"root/main.tf": 0o644, "root/run.sh": 0o755, "modules/a/main.tf": 0o644} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	data := packed.Bytes()
	over, former := "root/"+rootmodule.StateOverrideFile, "root/"+rootmodule.FormerStateOverrideFile
	for _, bucket := range []string{"one", "two", "three"} {
		code := templates.BackendCode("s3", map[string]any{"bucket": bucket})
		next, digest, err := templates.Rebundle(bytes.NewReader(data), "root", code)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := templates.Rebundle(bytes.NewReader(data), "root", code)
		if err != nil || !bytes.Equal(next, again) || digest != holdfast.DigestOf(next) {
			t.Errorf("it is another one each time: %v", err)
		}
		before, after := unpacked(t, data), unpacked(t, next)
		if !strings.Contains(after[over], `"`+bucket+`"`) || after[former] != before[over] {
			t.Errorf("the state is\n%s\nand was\n%s", after[over], after[former])
		}
		for _, name := range []string{"root/main.tf", "root/run.sh*", "modules/a/main.tf"} {
			if after[name] != strings.TrimSuffix(name, "*") {
				t.Errorf("%s is %q", name, after[name])
			}
		}
		data = next
	}
}
