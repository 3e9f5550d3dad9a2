package templates_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestBundlesShareACompressor: a compressor is larger than most bundles, and made once for many
// of them; what one has compressed shows in none that comes after. No other test runs beside
// this one, which counts what is allocated.
func TestBundlesShareACompressor(t *testing.T) {
	root := resolve(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", demoCluster))
	bundle := func() ([]byte, holdfast.Digest) {
		t.Helper()
		data, digest, err := root.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		return data, digest
	}
	first, digest := bundle()
	const times, most = 50, 400 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if data, again := bundle(); !bytes.Equal(data, first) || !again.Equal(digest) {
			t.Fatal("the same root module has another bundle")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > most {
		t.Errorf("%d bytes are allocated for a bundle of %d, want at most %d", each, len(first), most)
	}
}
