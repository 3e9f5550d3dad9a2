package unseen

import "unicode"

// Is reports whether r is not seen, or changes how others are read.
func Is(r rune) bool {
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, 0x16fe4, 0x1d159:
		return true
	default:
		return unicode.Is(unicode.Cf, r) || r >= 0x180b && r <= 0x180f || // selectors of Mongolian
			r >= 0xfe00 && r <= 0xfe0f || // selectors of variants; more are among the following
			r >= 0xe0000 && r <= 0xe0fff
	}
}
