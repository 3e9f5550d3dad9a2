package unseen_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{
		0x00ad, 0x034f, 0x061c, 0x115f, 0x180b, 0x180e, 0x180f, 0x200b, 0x200d, 0x200e, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x3164,
		0xfe00, 0xfe0f, 0xfeff, 0xfff9, 0xe0001, 0xe0041, 0xe0100, 0xe01ef,
	} {
		if !unseen.Is(r) {
			t.Errorf("%U is not hidden", r)
		}
	}
	for _, r := range "a \n\u00e9\u0301\u4eac\U0001f600\ufe10\ufffd" {
		if unseen.Is(r) {
			t.Errorf("%U is hidden", r)
		}
	}
}
