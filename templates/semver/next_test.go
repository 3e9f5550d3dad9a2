package semver_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/templates/semver"
)

func TestNext(t *testing.T) {
	t.Parallel()
	all := []string{
		"1.3.9", "1.4.0", "1.4.2", "1.4.3", "1.5.0", "1.10.0", "1.11.0-rc.1", "2.0.0-rc.1", "2.0.0", "2.1.0", "1.4", "v1.9.0", "1.99", "latest",
	}
	for name, tc := range map[string]struct {
		current, constraint string
		available           []string
		want                string
	}{
		"within the constraint":                 {"1.4.2", "~> 1.4.0", all, "1.4.3"},
		"numbers, not text":                     {"1.4.2", "~> 1.4", all, "1.10.0"},
		"another major version, if that is so":  {"1.4.2", ">= 1.4", all, "2.1.0"},
		"several constraints":                   {"1.4.2", ">= 1.4, < 1.5, != 1.4.3", all, ""},
		"none: the same major version":          {"1.4.2", "", all, "1.10.0"},
		"never back":                            {"1.10.0", "~> 1.4", all, ""},
		"never back from outside":               {"2.0.0", "~> 1.4", all, ""},
		"the same is not newer":                 {"2.1.0", "", all, ""},
		"other build data is not newer":         {"1.4.2+a", "", []string{"1.4.2+b"}, ""},
		"with build data":                       {"1.4.2", "", []string{"1.4.3+b"}, "1.4.3+b"},
		"nothing there":                         {"1.4.2", "~> 1.4", nil, ""},
		"unreadable now":                        {"latest", "~> 1.4", all, ""},
		"unreadable constraint":                 {"1.4.2", "newest", all, ""},
		"no pre-release by itself":              {"1.10.0", "", []string{"1.11.0-rc.1"}, ""},
		"no pre-release by all but one":         {"1.10.0", "!= 1.4.3", []string{"1.11.0-rc.1"}, ""},
		"from one pre-release to the next":      {"1.11.0-rc.1", "", []string{"1.11.0-rc.2", "1.12.0-rc.1"}, "1.11.0-rc.2"},
		"also if the constraint names none":     {"1.11.0-rc.1", "~> 1.4", []string{"1.11.0-rc.2", "1.12.0-rc.1"}, "1.11.0-rc.2"},
		"from a pre-release to its release":     {"1.11.0-rc.1", "~> 1.4", []string{"1.11.0-rc.2", "1.11.0"}, "1.11.0"},
		"numbers of pre-releases":               {"1.11.0-rc.2", "", []string{"1.11.0-rc.10", "1.11.0-rc.9"}, "1.11.0-rc.10"},
		"one that the constraint names":         {"1.10.0", ">= 1.11.0-rc.1", []string{"1.11.0-rc.1", "1.12.0-rc.1"}, "1.11.0-rc.1"},
		"pre-releases of the next major, named": {"1.10.0", "2.0.0-rc.1", all, "2.0.0-rc.1"},
		"zero":                                  {"0.1.0", "", []string{"0.2.0", "1.0.0"}, "0.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := semver.Next(tc.current, tc.constraint, tc.available); got != tc.want {
				t.Errorf("Next(%q, %q) = %q, want %q", tc.current, tc.constraint, got, tc.want)
			}
		})
	}
}
