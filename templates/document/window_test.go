package document_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// FuzzWindowsOpen says that what is open stays so until it may change, and
// what is closed too.
func FuzzWindowsOpen(f *testing.F) {
	f.Add("0 8 * * 1-5", "0 16 * * 5", uint16(600), uint16(90), int64(1_800_000_000))
	f.Add("30 2 * * *", "@every 90m", uint16(61), uint16(3), int64(1_792_890_000))
	f.Fuzz(func(t *testing.T, allow, deny string, allowed, denied uint16, seconds int64) {
		windows := []holdfast.ApplyWindow{
			{Kind: "allow", Schedule: allow, Duration: time.Duration(allowed%2000+1) * time.Minute, TimeZone: "Europe/Berlin"},
			{Kind: "deny", Schedule: deny, Duration: time.Duration(denied%2000+1) * time.Minute},
		}
		now := time.Unix(seconds%4_000_000_000, 0)
		open, change := document.WindowsOpen(windows, now)
		if change.IsZero() {
			return
		}
		if !change.After(now) {
			t.Fatalf("at %s it changes at %s", now, change)
		}
		for i := range time.Duration(50) {
			at := now.Add(change.Sub(now) * i / 50)
			if still, _ := document.WindowsOpen(windows, at); still != open {
				t.Fatalf("open %t at %s, but %t at %s, though it changes at %s", open, now, still, at, change)
			}
		}
	})
}

func TestWindowsOpen(t *testing.T) {
	t.Parallel()
	office := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 8 * * 1-5", Duration: 8 * time.Hour}
	berlin := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 8 * * 1-5", Duration: 8 * time.Hour, TimeZone: "Europe/Berlin"}
	freeze := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 12 * * 5", Duration: 60 * time.Hour}
	hourly := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 * * * *", Duration: 90 * time.Minute}
	every := holdfast.ApplyWindow{Kind: "allow", Schedule: "@every 6h", Duration: time.Hour}
	night := holdfast.ApplyWindow{Kind: "allow", Schedule: "30 2 * * *", Duration: time.Hour, TimeZone: "Europe/Berlin"}
	own := holdfast.ApplyWindow{Kind: "allow", Schedule: "TZ=Europe/Berlin 0 8 * * *", Duration: time.Hour}
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
		"deny wins where both begin":    {[]holdfast.ApplyWindow{freeze, {Kind: "allow", Schedule: "0 12 * * 5", Duration: time.Hour}}, "2026-11-20T12:00:00Z", false, "2026-11-20T13:00:00Z"},
		"allowed by one of two":         {[]holdfast.ApplyWindow{office, every}, "2026-11-21T18:30:00Z", true, "2026-11-21T19:00:00Z"},
		"outside of both":               {[]holdfast.ApplyWindow{office, every}, "2026-11-21T19:00:00Z", false, "2026-11-22T00:00:00Z"},
		"every six hours":               {[]holdfast.ApplyWindow{every}, "2026-11-21T06:59:59Z", true, "2026-11-21T07:00:00Z"},
		"its own time zone":             {[]holdfast.ApplyWindow{own}, "2026-11-20T07:30:00Z", true, "2026-11-20T08:00:00Z"},
		"summer time":                   {[]holdfast.ApplyWindow{own}, "2026-07-20T06:30:00Z", true, "2026-07-20T07:00:00Z"},
		"an hour that is lost":          {[]holdfast.ApplyWindow{night}, "2027-03-28T01:00:00Z", false, "2027-03-29T00:30:00Z"},
		"an hour that comes twice":      {[]holdfast.ApplyWindow{night}, "2026-10-25T00:45:00Z", true, "2026-10-25T01:30:00Z"},
		"of a kind that is not known":   {[]holdfast.ApplyWindow{{Schedule: "* * * * *", Duration: time.Hour}}, "2026-11-20T11:10:00Z", false, ""},
		"one that cannot be read":       {[]holdfast.ApplyWindow{{Kind: "deny", Schedule: "never"}}, "2026-11-20T11:10:00Z", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, change := document.WindowsOpen(test.windows, at(test.now))
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
