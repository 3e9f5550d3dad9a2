//go:build linux

package stage

import (
	"reflect"
	"testing"
)

func TestSpec(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Spec{
		"zero": {},
		"full": {
			Root: true, UserMap: true, Landlock: true, UID: 7, GID: 8, SetUser: true, CountUser: true,
			Path: "/bin/x", Dir: "/work", Args: []string{"x", ""}, Env: []string{"A=ü\n"},
			Mount:   []Mount{{Source: "/a", Target: "/b", Kind: Device}, {Source: "/c", Optional: true}},
			Link:    []Link{{Path: "/l", Target: "to"}},
			File:    []File{{Path: "/f", Content: "root"}},
			TmpSize: 1 << 40, Data: 1, Processes: 2,
		},
	} {
		b := want.Encode()
		var got Spec
		if !got.decode(b[8:]) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v", name, got)
		}
		for i := 8; i < len(b); i++ { // what ends early is not a Spec
			if (&Spec{}).decode(b[8:i]) {
				t.Errorf("%s: %d bytes of %d were enough", name, i-8, len(b)-8)
			}
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	b := append(encodeRecord(RecordExit, 3<<8, 1000), encodeRecord(RecordDead, 0, 0)...)
	b = append(append(b, encodeRecord(RecordFailed, 2, 5)...), "mount"...)
	got := Records(b)
	if len(got) != 3 || got[0].Status().ExitStatus() != 3 || got[0].B != 1000 || got[2].Step != "mount" {
		t.Errorf("got %+v", got)
	}
	if got := Records(b[:RecordSize+3]); len(got) != 1 {
		t.Errorf("half a record counts: %+v", got)
	}
}
