package gitsource

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packed is an object of a pack, by what its header says and by what is in it.
type packed struct {
	kind    plumbing.ObjectType
	size    int64
	back    byte // how far before it its base is, for a difference
	content []byte
}

// packOf makes a pack without its checksum.
func packOf(t *testing.T, objects ...packed) []byte {
	t.Helper()
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects)))
	for _, o := range objects {
		first, size := byte(o.kind)<<4|byte(o.size&0xf), o.size>>4
		for ; size > 0; size >>= 7 {
			pack = append(pack, first|0x80)
			first = byte(size & 0x7f)
		}
		pack = append(pack, first)
		if o.kind == plumbing.OFSDeltaObject {
			pack = append(pack, o.back)
		}
		var content bytes.Buffer
		w := zlib.NewWriter(&content)
		if _, err := w.Write(o.content); err != nil || w.Close() != nil {
			t.Fatal("compress", err)
		}
		pack = append(pack, content.Bytes()...)
	}
	return pack
}

// delta makes the beginning of a difference, padded to what its header will say.
func delta(base, target uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, base), target)
}

func TestSurveyPack(t *testing.T) {
	t.Parallel()
	text := []byte("text")
	base := packed{kind: plumbing.BlobObject, size: 4, content: text}
	large := packed{kind: plumbing.BlobObject, size: 40 << 30, content: text}
	back, backToLarge := byte(len(packOf(t, base))-12), byte(len(packOf(t, large))-12)
	for name, tc := range map[string]struct {
		objects   []packed
		largest   int64
		oversized bool
	}{
		"files":                      {[]packed{base, base}, 4, false},
		"a difference":               {[]packed{base, {plumbing.OFSDeltaObject, 3, back, delta(4, 300)}}, 300, false},
		"a large file":               {[]packed{large}, 40 << 30, false},
		"a difference of a terabyte": {[]packed{base, {plumbing.OFSDeltaObject, 7, back, delta(4, 1<<40)}}, 0, true},
		"of what cannot be":          {[]packed{base, {plumbing.OFSDeltaObject, 2, back, []byte{0xff, 0xff}}}, 0, true},
		"to a large file":            {[]packed{large, {plumbing.OFSDeltaObject, 2, backToLarge, delta(4, 4)}}, 0, true},
		"a tree of a gigabyte":       {[]packed{{plumbing.TreeObject, 1 << 30, 0, text}}, 0, true},
		"a commit of a gigabyte":     {[]packed{{plumbing.CommitObject, 1 << 30, 0, text}}, 0, true},
		"more than time allows":      {[]packed{{plumbing.BlobObject, 1 << 40, 0, text}}, 0, true},
	} {
		found, err := surveyPack(t.Context(), bytes.NewReader(packOf(t, tc.objects...)))
		if errors.Is(err, errOversized) != tc.oversized || err != nil && !tc.oversized {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && found.largest != tc.largest {
			t.Errorf("%s: the largest has %d bytes, want %d", name, found.largest, tc.largest)
		}
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := surveyPack(canceled, bytes.NewReader(packOf(t, base))); !errors.Is(err, context.Canceled) {
		t.Errorf("a survey that nobody waits for ended with %v", err)
	}
}
