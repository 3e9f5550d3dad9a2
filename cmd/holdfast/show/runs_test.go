package show

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// TestDuration: a server's clock that was put back while a run was executed makes no
// negative time.
func TestDuration(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for ended, want := range map[time.Time]string{began.Add(90 * time.Second): "90s", began.Add(-10 * time.Minute): "0s"} {
		if got := (&app{}).duration(v1.Run{StartedAt: began, FinishedAt: ended}); got != want {
			t.Errorf("from %s to %s: %s, want %s", began, ended, got, want)
		}
	}
}

// TestReasonOf: a run that is to stop says so while it is running, and then why it has ended.
func TestReasonOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status               holdfast.RunStatus
		reason, cancel, want holdfast.Reason
	}{
		{holdfast.RunRunning, "", "", ""},
		{holdfast.RunRunning, "", holdfast.ReasonCanceled, holdfast.ReasonCanceled},
		{holdfast.RunRunning, holdfast.ReasonAgentSilent, holdfast.ReasonCanceled, holdfast.ReasonAgentSilent},
		{holdfast.RunApplied, "", holdfast.ReasonCanceled, ""},
	} {
		run := v1.Run{Status: test.status, Reason: test.reason, RunProgress: v1.RunProgress{Cancel: test.cancel}}
		if got := reasonOf(run); got != test.want {
			t.Errorf("a %s run with %q, canceled for %q, says %q", test.status, test.reason, test.cancel, got)
		}
		if text := (&app{&cli.App{Printer: table.Printer{Now: time.Now}}}).runText(runDescription{Run: run}); test.want != "" && !strings.Contains(text, string(test.status)+": "+string(test.want)) {
			t.Errorf("it is described as\n%s", text)
		}
	}
}
