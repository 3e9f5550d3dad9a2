package semver_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/templates/semver"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	available := []string{"1.4.9", "1.10.0", "1.4.10", "2.0.0-rc.1", "nonsense", "1.9.0"}
	for _, tc := range []struct{ upTo, want string }{
		{"", "1.10.0"},
		{"1.4.10", "1.4.10"},
		{"1.9.5", "1.9.0"},
		{"2.0.0", "1.10.0"},
		{"2.0.0-rc.2", "2.0.0-rc.1"},
		{"1.0.0", ""},
	} {
		if got := semver.Newest(available, tc.upTo); got != tc.want {
			t.Errorf("Newest(up to %q) = %q, want %q", tc.upTo, got, tc.want)
		}
	}
}

func TestMayBreak(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"1.4.2", "1.4.3", false},
		{"1.4.2", "1.5.0", false},
		{"1.4.2", "2.0.0", true},
		{"0.4.2", "0.4.3", false},
		{"0.4.2", "0.5.0", true},
		{"0.4.2", "1.0.0", true},
		{"1.4.2", "not a version", true},
	} {
		if got := semver.MayBreak(tc.from, tc.to); got != tc.want {
			t.Errorf("MayBreak(%s, %s) = %t, want %t", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	available := []string{"1.4.9", "1.10.0", "nonsense", "1.4.10"}
	for wanted, want := range map[string]string{
		"1.5.0": "1.4.10", "1.4.9": "1.4.9", "2.0.0": "1.10.0", "1.0.0": "1.4.9", "latest": "",
	} {
		if got := semver.Nearest(wanted, available); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", wanted, got, want)
		}
	}
	if got := semver.Nearest("1.0.0", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
