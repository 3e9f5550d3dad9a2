package planfile_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// packed is an archive with these members, of which each has a byte.
func packed(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		member, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is an archive with a directory of so many entries, of which its end says
// whatever it says.
func bomb(t *testing.T, entries int, records uint16, length uint32) []byte {
	t.Helper()
	small := packed(t, "tfplan")
	end := bytes.Clone(small[len(small)-22:])
	at := binary.LittleEndian.Uint32(end[16:])
	entry := small[at : len(small)-22]
	large := append(bytes.Clone(small[:at]), bytes.Repeat(entry, entries)...)
	if length == 0 {
		length = uint32(len(entry) * entries)
	}
	binary.LittleEndian.PutUint16(end[8:], records)
	binary.LittleEndian.PutUint16(end[10:], records)
	binary.LittleEndian.PutUint32(end[12:], length)
	return append(large, end...)
}

// What an archive says about itself does not decide how much memory it takes.
func TestOpenIsBounded(t *testing.T) {
	whole := packed(t, "tfplan", "tfstate", "tfstate-prev")
	bombs := map[string]struct {
		data []byte
		says string
	}{
		"many entries":                {bomb(t, 1_000_000, 0xffff, 0), "a directory of"},
		"many entries, denied":        {bomb(t, 1_000_000, 16960, 60), "not only an archive"}, // 1,000,000 in 16 bits
		"many entries, in the bounds": {bomb(t, 70_000, 4464, 0), "50000 members"},            // 70,000 in 16 bits
		"the larger form":             {bomb(t, 1, 0xffff, 0xffffffff), "a directory of"},
		"something behind it":         {append(bytes.Clone(whole), "more"...), "not an archive"},
		"something before it":         {append([]byte("more"), whole...), "not only an archive"},
		"no archive":                  {[]byte("a plan"), "not an archive"},
		"a member twice":              {packed(t, "tfplan", "tfstate", "tfstate-prev", "tfplan"), "tfplan twice"},
		"another member":              {packed(t, "tfplan", "tfstate", "tfstate-prev", "tfstate2"), "does not know"},
		"no state":                    {packed(t, "tfplan", "tfstate-prev"), "no tfstate"},
		"a large member":              {declared(t, whole, 1<<20+1), "more than 1048576 bytes"},
	}
	name := filepath.Join(t.TempDir(), "plan")
	for what, b := range bombs {
		if err := os.WriteFile(name, b.data, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		archive, err := planfile.Open(name, 1<<20)
		runtime.ReadMemStats(&after)
		if err == nil {
			archive.Close()
		}
		if err == nil || !strings.Contains(err.Error(), b.says) {
			t.Errorf("%s: Open() = %v, want %q", what, err, b.says)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
			t.Errorf("%s: it took %d MiB", what, took>>20)
		}
	}
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := planfile.Open(name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if _, err := archive.Plan(false); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("Plan() of one byte = %v", err)
	}
}

// declared is an archive in which the directory says of the first member that it
// has so many bytes unpacked.
func declared(t *testing.T, archive []byte, size uint32) []byte {
	t.Helper()
	archive = bytes.Clone(archive)
	at := bytes.Index(archive, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(archive[at+24:], size)
	return archive
}
