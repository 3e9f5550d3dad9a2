package idle

import (
	"slices"
	"testing"
)

func TestLook(t *testing.T) {
	t.Parallel()
	const half = 512 << 10
	for name, test := range map[string]struct {
		allocated []uint64 // between two looks, in halves of a MiB
		live      uint64   // in bytes
		want      []bool
	}{
		"work, and then none":        {[]uint64{40, 0, 0}, 0, []bool{false, true, false}},
		"work that does not end":     {[]uint64{40, 40, 40}, 0, []bool{false, false, false}},
		"a little now and then":      {[]uint64{40, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, []bool{false, true, false, false, false, false, false, false, false, false}},
		"a little for a long time":   {slices.Repeat([]uint64{1}, 19), 0, append(append([]bool{true}, make([]bool, 16)...), true, false)},
		"work again":                 {[]uint64{40, 0, 40, 0}, 0, []bool{false, true, false, true}},
		"little next to what lives":  {[]uint64{40, 0, 40, 0, 40, 0}, 60 << 20, []bool{false, true, false, false, false, true}},
		"a small start":              {[]uint64{10, 0, 0}, 0, []bool{false, true, false}},
		"work that was not worth it": {[]uint64{10, 0, 10, 0}, 0, []bool{false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w watch
			var total uint64
			var got []bool
			for _, more := range test.allocated {
				total += more * half
				got = append(got, w.look(total, test.live))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestHeap(t *testing.T) {
	t.Parallel()
	before, _ := heap()
	kept := make([]byte, 1<<20)
	if after, _ := heap(); after < before+uint64(len(kept)) {
		t.Errorf("%d bytes, then %d", before, after)
	}
}
