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
		want      []bool
	}{
		"work, and then none":        {[]uint64{40, 0, 0}, []bool{false, true, false}},
		"work that does not end":     {[]uint64{40, 40, 40}, []bool{false, false, false}},
		"a little now and then":      {[]uint64{40, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []bool{false, true, false, false, false, false, false, false, false, false}},
		"a little for a long time":   {slices.Repeat([]uint64{1}, 18), append(make([]bool, 16), true, false)},
		"work again":                 {[]uint64{40, 0, 40, 0}, []bool{false, true, false, true}},
		"work that was not worth it": {[]uint64{10, 0, 0}, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w watch
			var total uint64
			var got []bool
			for _, more := range test.allocated {
				total += more * half
				got = append(got, w.look(total))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestAllocated(t *testing.T) {
	t.Parallel()
	before := allocated()
	kept := make([]byte, 1<<20)
	if after := allocated(); after < before+uint64(len(kept)) {
		t.Errorf("%d bytes, then %d", before, after)
	}
}
