package runner_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// archive returns a gzipped tar of entries.
func archive(entries ...tar.Header) []byte {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, h := range entries {
		content := h.Uname // where the tests put it
		h.Uname, h.Mode = "", 0o644
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		_ = tw.WriteHeader(&h)
		_, _ = io.WriteString(tw, content)
	}
	_ = tw.Close()
	_ = zw.Close()
	return buf.Bytes()
}

func regular(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Uname: content}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

// TestBundleStaysInside: no bundle writes or reads outside of its workspace.
func TestBundleStaysInside(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	for name, c := range map[string]struct {
		data  []byte
		err   error
		dir   string
		fault string // empty: it is used
		words string
	}{
		"good":                   {data: archive(regular("main.tf", ""), symlink("same.tf", "main.tf"))},
		"link between folders":   {data: archive(regular("a/main.tf", ""), symlink("b/main.tf", "../a/main.tf"))},
		"dangling link":          {data: archive(regular("main.tf", ""), symlink("x", "nowhere"))},
		"parent":                 {data: archive(regular("../x", "")), words: "leads out"},
		"parent inside":          {data: archive(regular("a/../../x", "")), words: "leads out"},
		"absolute":               {data: archive(regular(outside, "")), words: "leads out"},
		"absolute link":          {data: archive(symlink("x", "/etc")), words: "leads out"},
		"link to parent":         {data: archive(symlink("a/x", "../../y")), words: "leads out"},
		"links that add up":      {data: archive(symlink("a/b", "../c/d"), symlink("c/d", "..")), fault: ""},
		"writing through a link": {data: archive(symlink("x", "."), regular("x/main.tf", "")), words: "file exists"},
		"chain that leads out":   {data: archive(regular("d/e/f", ""), symlink("a", "d/e"), symlink("b", "a/../../../x")), words: "leads out"},
		"a later link leads out": {data: archive(regular("p/q/f", ""), symlink("b", "p/q/r/../../../x"), symlink("p/q/r", "../..")), words: "escapes"},
		"deep":                   {data: archive(regular(strings.Repeat("d/", 100)+"main.tf", ""))},
		"too deep":               {data: archive(regular(strings.Repeat("d/", 101)+"main.tf", "")), words: "more than 100 folders"},
		"twice the same":         {data: archive(regular("x", "1"), regular("x", "2")), words: "file exists"},
		"hard link":              {data: archive(tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "/etc/passwd"}), words: "not allowed"},
		"device":                 {data: archive(tar.Header{Typeflag: tar.TypeChar, Name: "x"}), words: "not allowed"},
		"too large":              {data: archive(regular("x", strings.Repeat("x", 2<<20))), words: "too large"},
		"not gzip":               {data: []byte("nonsense"), words: "read gzip"},
		"cut off":                {data: archive(regular("x", strings.Repeat("x", 10000)))[:60], words: "unexpected EOF"},
		"no such folder":         {data: archive(regular("main.tf", "")), dir: "other", words: `no folder "other"`},
		"folder outside":         {data: archive(regular("main.tf", "")), dir: "../..", words: "leads out"},
		"folder is a file":       {data: archive(regular("main.tf", "")), dir: "main.tf", words: "no folder"},
		"gone":                   {err: holdfast.ErrNotFound, words: "not found"},
		"server out of reach":    {err: errors.New("connection refused"), words: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Limits.Bundle = 1 << 20 })
			s := newMemorySession(nil)
			s.state = "http://127.0.0.1:1/x"
			s.bundle = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.data)), c.err }
			a := engineAssignment("run-1", holdfast.RunPlan)
			a.Dir = c.dir
			got := e.Execute(t.Context(), a, s)
			if _, err := os.Lstat(outside); err == nil {
				t.Fatal("it wrote outside")
			}
			if c.words == "" {
				wantStatus(t, got, holdfast.RunPlanned, "", s)
				return
			}
			wantStatus(t, got, holdfast.RunErrored, "BundleUnusable", s)
			if !strings.Contains(got.Failure.Summary, c.words) {
				t.Errorf("summary %q, want %q in it", got.Failure.Summary, c.words)
			}
			if want := name == "server out of reach"; got.Failure.Transient != want {
				t.Errorf("transient %v, want %v", got.Failure.Transient, want)
			}
		})
	}
}

// TestExecutePanics: a session that panics loses no outcome.
func TestExecutePanics(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{"main.tf": ""})
	s.onStep = func(step string) {
		if step == "plan" {
			panic(fmt.Sprintf("in %s", step))
		}
	}
	got := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, got, holdfast.RunErrored, "Internal", s)
	if got.Fence != 7 {
		t.Errorf("fence %d", got.Fence)
	}
}
