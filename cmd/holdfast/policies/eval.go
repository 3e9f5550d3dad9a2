package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/policy"
)

// evaluating are the flags of policy eval.
type evaluating struct {
	folders  []string
	shipped  bool
	settings string
	format   string
}

func (a *app) newEvalCommand() *cobra.Command {
	var f evaluating
	c := &cobra.Command{
		Use:   "eval PLAN...",
		Short: "Evaluate policies for plans, without a server",
		Long: `Evaluate policies for plans, without a server and without a network.

A PLAN is a file with the output of "terraform show -json" or "tofu show -json", or a plan
document of Holdfast. You can add a key "holdfast" with the values that a server would
add: run, cluster, template, engine, providers and pull_request.

A plan document does not contain sensitive values. A policy that reads one is undecided.

The exit code is 1 if a policy denies a plan, cannot be evaluated or is undecided.`,
		Example: "  holdfast policy eval plan.json --policies ./policies\n  holdfast policy eval plan.json --shipped",
		Args:    cli.AtLeast(1, "files with plans"),
		RunE:    func(c *cobra.Command, args []string) error { return a.eval(c.Context(), args, f) },
	}
	c.Flags().StringArrayVarP(&f.folders, "policies", "p", nil, "a file or folder with policies; may be repeated")
	c.Flags().BoolVar(&f.shipped, "shipped", false, "evaluate the policies that Holdfast ships")
	c.Flags().StringVar(&f.settings, "settings", "", "a JSON file with the value of data.holdfast")
	cli.AddFormatFlag(c, &f.format)
	return c
}

// PlanReport is what policies say of a plan.
type PlanReport struct {
	Plan   string                `json:"plan"` // its file
	Report holdfast.PolicyReport `json:"report"`
}

func (a *app) eval(ctx context.Context, plans []string, f evaluating) error {
	set, err := compiled(f.folders, f.shipped, f.settings)
	if err != nil {
		return err
	}
	var reports []PlanReport
	for _, name := range plans {
		in, err := readPlan(name)
		if err != nil {
			return err
		}
		reports = append(reports, PlanReport{Plan: name, Report: set.Evaluate(ctx, in, policy.Limits{}, nil)})
	}
	if err := a.Print(f.format, reports, func() string { return a.reportsText(reports) }); err != nil {
		return err
	}
	if slices.ContainsFunc(reports, func(r PlanReport) bool { return r.Report.Denies() }) {
		return &cli.ExitCodeError{Code: cli.ExitError}
	}
	return nil
}

// compiled are policies of folders, and perhaps the shipped ones.
func compiled(folders []string, shipped bool, settingsFile string) (*policy.Set, error) {
	if len(folders) == 0 && !shipped {
		return nil, cli.UsageError("%w", errors.New("name a folder with --policies, or --shipped"))
	}
	sources, err := readSources(folders, shipped)
	if err != nil {
		return nil, err
	}
	settings, err := readSettings(settingsFile)
	if err != nil {
		return nil, err
	}
	return policy.Compile(sources, settings), nil
}

func (a *app) reportsText(reports []PlanReport) string {
	var b strings.Builder
	for i, r := range reports {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: %s\n", table.Clean(r.Plan), summary(r.Report))
		b.WriteString(a.reportText(r.Report))
	}
	return b.String()
}

// summary says in a line what came of an evaluation.
func summary(r holdfast.PolicyReport) string {
	var parts []string
	add := func(n int, thing string) {
		if n > 0 {
			parts = append(parts, table.Count(n, thing))
		}
	}
	add(r.Count(holdfast.PolicyDeny), "denial")
	add(len(r.Faults), "fault")
	if n := len(r.Undecided); n > 0 {
		parts = append(parts, fmt.Sprintf("%d undecided", n))
	}
	add(r.Count(holdfast.PolicyWarn), "warning")
	if n := r.Count(holdfast.PolicyInfo); n > 0 {
		parts = append(parts, fmt.Sprintf("%d for information", n))
	}
	if len(parts) == 0 {
		parts = []string{"nothing to report"}
	}
	return strings.Join(parts, ", ") + "; " + evaluated(r)
}

func evaluated(r holdfast.PolicyReport) string {
	if len(r.Policies) == 1 {
		return "1 policy was evaluated"
	}
	return fmt.Sprintf("%d policies were evaluated", len(r.Policies))
}

// reportText lists what policies say.
func (a *app) reportText(r holdfast.PolicyReport) string {
	var rows [][]table.Cell
	for _, result := range r.Results {
		severity := string(result.Severity)
		if result.Excepted {
			severity += " (excepted)"
		}
		rows = append(rows, []table.Cell{{Text: severity, Colour: colourOf(result.Severity)}, {Text: result.Policy}, {Text: result.Address}, {Text: result.Message}})
	}
	var faults [][]table.Cell
	for _, f := range r.Faults {
		text := f.Message
		if f.Hint != "" {
			text += " (" + f.Hint + ")"
		}
		faults = append(faults, table.Cells(f.Policy, f.Position(), text))
	}
	var undecided [][]table.Cell
	for _, id := range r.Undecided {
		undecided = append(undecided, table.Cells(id, "it reads what the stored plan does not have"))
	}
	out := a.Section("Results", []table.Column{{Title: "SEVERITY"}, {Title: "POLICY"}, {Title: "RESOURCE", Yields: 1}, {Title: "MESSAGE", Min: 20}}, rows) +
		a.Section("Faults", []table.Column{{Title: "POLICY"}, {Title: "AT"}, {Title: "MESSAGE", Min: 20}}, faults) +
		a.Section("Undecided", []table.Column{{Title: "POLICY"}, {Title: "WHY", Min: 20}}, undecided)
	if r.Omitted > 0 {
		out += fmt.Sprintf("\n%d more results are left out.\n", r.Omitted)
	}
	return out
}

func colourOf(s holdfast.PolicySeverity) table.Colour {
	switch s {
	case holdfast.PolicyDeny:
		return table.Red
	case holdfast.PolicyWarn:
		return table.Yellow
	default:
		return table.Plain
	}
}

// readSettings reads what policies find as data.holdfast.
func readSettings(name string) (settings map[string]any, err error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	err = decodeSettings(name, data, &settings)
	return settings, err
}
