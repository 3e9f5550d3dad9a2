package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/policy"
)

// testing are the flags of policy test.
type testing struct {
	run      string
	shipped  bool
	settings string
	least    float64
	format   string
}

func (a *app) newTestCommand() *cobra.Command {
	var f testing
	c := &cobra.Command{
		Use:   "test FOLDER...",
		Short: "Run the tests of policies, and show their coverage",
		Long: `Run the tests of policies, and show their coverage.

Tests are rules that begin with test_, in files that end in _test.rego, as for opa test.
The plan NAME.json in the subfolder "fixtures" is available to tests as
data.fixtures.NAME: "deny with input as data.fixtures.NAME".`,
		Example: "  holdfast policy test ./policies --min-coverage 90",
		RunE:    func(c *cobra.Command, args []string) error { return a.test(c.Context(), args, f) },
	}
	c.Flags().StringVar(&f.run, "run", "", "run only tests whose names contain this")
	c.Flags().BoolVar(&f.shipped, "shipped", false, "include the policies that Holdfast ships, and their tests")
	c.Flags().StringVar(&f.settings, "settings", "", "a JSON file with the value of data.holdfast")
	c.Flags().Float64Var(&f.least, "min-coverage", 0, "fail if tests cover less than this percentage of the policies")
	cli.AddFormatFlag(c, &f.format)
	return c
}

func (a *app) test(ctx context.Context, folders []string, f testing) error {
	set, err := compiled(folders, f.shipped, f.settings)
	if err != nil {
		return err
	}
	fixtures, err := readFixtures(folders)
	if err != nil {
		return err
	}
	if err := set.AddFixtures(ctx, fixtures); err != nil {
		return err
	}
	report := set.Test(ctx, f.run, policy.Limits{})
	if err := a.Print(f.format, report, func() string { return a.testText(report) }); err != nil {
		return err
	}
	switch {
	case len(report.Tests) == 0:
		return hint.New(fmt.Errorf("there is no test"), "tests are rules that begin with test_, in files that end in _test.rego")
	case report.Failed():
		return &cli.ExitCodeError{Code: cli.ExitError}
	case report.Percent < f.least:
		return fmt.Errorf("tests cover %.1f %% of the policies: less than %.1f %%", report.Percent, f.least)
	}
	return nil
}

// testText lists what failed, and what tests do not cover.
func (a *app) testText(r policy.TestReport) string {
	var b strings.Builder
	failed, skipped := 0, 0
	var rows [][]table.Cell
	for _, t := range r.Tests {
		switch {
		case t.Skipped:
			skipped++
		case !t.Passed:
			failed++
			text := t.Error
			if text == "" {
				text = "it is not true"
			}
			rows = append(rows, table.Cells(t.Package+"."+t.Name, table.Place(t.File, t.Line), text))
		}
	}
	fmt.Fprintf(&b, "%s: %d passed, %d failed, %d skipped; %.1f %% of the policies are covered\n",
		table.Count(len(r.Tests), "test"), len(r.Tests)-failed-skipped, failed, skipped, r.Percent)
	b.WriteString(a.Section("Failed", []table.Column{{Title: "TEST"}, {Title: "AT"}, {Title: "WHY", Min: 20}}, rows))
	var faults [][]table.Cell
	for _, f := range r.Faults {
		faults = append(faults, table.Cells(f.Position(), f.Message))
	}
	b.WriteString(a.Section("Faults", []table.Column{{Title: "AT"}, {Title: "MESSAGE", Min: 20}}, faults))
	b.WriteString(a.Section("Not covered", []table.Column{{Title: "FILE"}, {Title: "COVERED"}, {Title: "LINES", Min: 20}}, missedRows(r.Coverage)))
	return b.String()
}

// missedRows are the files of which tests have not evaluated all.
func missedRows(files []policy.FileCoverage) (rows [][]table.Cell) {
	for _, f := range files {
		if len(f.Missed) == 0 {
			continue
		}
		lines := make([]string, len(f.Missed))
		for i, m := range f.Missed {
			lines[i] = fmt.Sprintf("%d–%d", m.First, m.Last)
			if m.First == m.Last {
				lines[i] = fmt.Sprint(m.First)
			}
		}
		rows = append(rows, table.Cells(f.File, fmt.Sprintf("%.1f %%", f.Percent), strings.Join(lines, ", ")))
	}
	return rows
}

// decodeSettings reads a JSON object, with numbers as they are written.
func decodeSettings(name string, data []byte, into *map[string]any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("read settings: %s is not a JSON object: %w", name, err)
	}
	return nil
}
