package lineage

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Which repository keeps a cluster is what is stored of it, and nothing that a file's name or
// an earlier reason says. Records of an earlier version have it in the reason.
func TestSaidIn(t *testing.T) {
	t.Parallel()
	const (
		others = `it may be the one that continues as "shop", in clusters/shop.yaml:1 of repository "other": transfer it there`
		file   = `it may be the one that continues as "shop", in of repository "mine": .yaml:1 of repository "other": transfer it there`
	)
	for name, tc := range map[string]struct {
		desired holdfast.Desired
		other   bool
		mine    bool
	}{
		"there":                    {},
		"other":                    {desired: holdfast.Desired{Missing: others, HeirIn: "other"}, other: true},
		"a file of another name":   {desired: holdfast.Desired{Missing: file, HeirIn: "other"}, other: true},
		"other, earlier version":   {desired: holdfast.Desired{Missing: others}, other: true},
		"for another reason":       {desired: holdfast.Desired{Missing: "its file cannot be read"}},
		"taken back":               {desired: Held(holdfast.Desired{Missing: others, HeirIn: "other"}, Doubt{})},
		"now for another reason":   {desired: Held(holdfast.Desired{Missing: others, HeirIn: "other"}, Doubt{Why: "its file cannot be read"})},
		"transferred, and so here": {desired: holdfast.Desired{HeirIn: "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if other, mine := SaidIn(tc.desired, "other"), SaidIn(tc.desired, "mine"); other != tc.other || mine != tc.mine {
				t.Errorf("by %+v it is said in other: %t, in mine: %t", tc.desired, other, mine)
			}
		})
	}
}
