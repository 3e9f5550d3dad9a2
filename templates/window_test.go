package templates_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

func TestWindowsOpen(t *testing.T) {
	t.Parallel()
	office := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 8 * * 1-5", Duration: 8 * time.Hour}
	berlin := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 8 * * 1-5", Duration: 8 * time.Hour, TimeZone: "Europe/Berlin"}
	freeze := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 12 * * 5", Duration: 60 * time.Hour}
	hourly := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 * * * *", Duration: 90 * time.Minute}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	tests := map[string]struct {
		windows []holdfast.ApplyWindow
		now     string
		open    bool
		change  string // empty: never
	}{
		"none":                          {nil, "2026-11-21T03:00:00Z", true, ""},
		"inside":                        {[]holdfast.ApplyWindow{office}, "2026-11-20T15:59:59Z", true, "2026-11-20T16:00:00Z"},
		"at its end":                    {[]holdfast.ApplyWindow{office}, "2026-11-20T16:00:00Z", false, "2026-11-23T08:00:00Z"},
		"at its start":                  {[]holdfast.ApplyWindow{office}, "2026-11-20T08:00:00Z", true, "2026-11-20T16:00:00Z"},
		"before it":                     {[]holdfast.ApplyWindow{office}, "2026-11-20T07:30:00Z", false, "2026-11-20T08:00:00Z"},
		"before it, but not in Berlin":  {[]holdfast.ApplyWindow{berlin}, "2026-11-20T07:30:00Z", true, "2026-11-20T15:00:00Z"},
		"deny wins":                     {[]holdfast.ApplyWindow{office, freeze}, "2026-11-20T13:00:00Z", false, "2026-11-20T16:00:00Z"},
		"only deny, outside":            {[]holdfast.ApplyWindow{freeze}, "2026-11-20T11:00:00Z", true, "2026-11-20T12:00:00Z"},
		"one that overlaps with itself": {[]holdfast.ApplyWindow{hourly}, "2026-11-20T11:10:00Z", false, "2026-11-20T12:00:00Z"},
		"one that cannot be read":       {[]holdfast.ApplyWindow{{Kind: "deny", Schedule: "never"}}, "2026-11-20T11:10:00Z", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, change := templates.WindowsOpen(test.windows, at(test.now))
			var want time.Time
			if test.change != "" {
				want = at(test.change)
			}
			if open != test.open || !change.Equal(want) {
				t.Errorf("WindowsOpen = %t until %s, want %t until %s", open, change, test.open, want)
			}
		})
	}
}
