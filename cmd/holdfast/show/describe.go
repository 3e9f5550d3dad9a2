package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/report"
)

// NewDescribeCommand returns the command describe.
func NewDescribeCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	return cli.NewGroup("describe", "Show the details of a cluster, a run, a pull request, drift or a runner",
		newDescribeClusterCommand(a), newDescribeRunCommand(a), newDescribePullRequestCommand(a), newDescribeDriftCommand(a),
		newDescribeRunnerCommand(a))
}

func (a *app) auditSection(entries []v1.AuditEntry) string {
	rows := make([][]table.Cell, len(entries))
	for i, e := range entries {
		rows[i] = table.Cells(a.Age(e.At), e.Actor, e.Action, table.Shorten(e.Detail, 80))
	}
	return a.Section("Audit", []table.Column{{Title: "AGE"}, {Title: "WHO"}, {Title: "WHAT"}, {Title: "DETAIL", Min: 24}}, rows)
}

// runDescription is what describe run shows.
type runDescription struct {
	Run      v1.Run       `json:"run"`
	Attempts []v1.Attempt `json:"attempts,omitempty"`
	Plan     *v1.Plan     `json:"plan,omitempty"`
}

func newDescribeRunCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		only   bool
	)
	c := &cobra.Command{
		Use:   "run ID",
		Short: "Show a run: status, reason, attempts, plan, failure",
		Long: `Show a run: status, reason, attempts, plan, failure.

With --plan, only the complete plan is shown, including parts that a comment leaves out.`,
		Args: cli.Exactly(1, "a run's ID"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			ctx, d := c.Context(), runDescription{}
			if d.Run, err = cl.Run(ctx, args[0]); err != nil {
				return err
			}
			if d.Attempts, err = cl.Attempts(ctx, args[0]); err != nil {
				return err
			}
			if d.Plan, err = cl.Plan(ctx, args[0]); err != nil {
				return err
			}
			if only && d.Plan == nil {
				return hint.New(fmt.Errorf("run %q has no plan", args[0]), "holdfast describe run "+args[0]+" shows how far it got")
			}
			if only {
				return a.Print(format, d.Plan, func() string { return a.planText(*d.Plan) })
			}
			return a.Print(format, d, func() string { return a.runText(d) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.RunIDs)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVar(&only, "plan", false, "show only the plan, in full")
	return c
}

func (a *app) runText(d runDescription) string {
	r := d.Run
	out := a.Fields(
		[2]string{"Run", r.ID},
		[2]string{"Cluster", r.Cluster},
		[2]string{"Kind", kindText(r)},
		[2]string{"Status", table.Joined(string(r.Status), string(reasonOf(r)))},
		[2]string{"Meaning", a.Filled(meaningText(reasonOf(r)))},
		[2]string{"Why", r.Detail},
		[2]string{"Step", r.Step},
		[2]string{"Pull request", r.PullRequest.String()},
		[2]string{"Revision", r.Repo + " " + r.Revision.Short()},
		[2]string{"Template", r.Template},
		[2]string{"Engine", strings.TrimSpace(r.EngineName + " " + r.EngineVersion)},
		[2]string{"Changes", CountsText(r.Counts)},
		[2]string{"Provisional", provisionalText(r.Provisional)},
		[2]string{"Reviewed as", r.Matched},
		[2]string{"Applies plan of", r.Shown},
		[2]string{"Releases lock", releasedLock(r)},
		[2]string{"Asked for by", r.Actor},
		[2]string{"Created", a.When(r.CreatedAt)},
		[2]string{"Started", a.When(r.StartedAt)},
		[2]string{"Finished", a.When(r.FinishedAt)},
		[2]string{"Took", a.duration(r)},
	)
	rows := make([][]table.Cell, len(d.Attempts))
	for i, t := range d.Attempts {
		rows[i] = []table.Cell{
			{Text: fmt.Sprint(t.Attempt)}, statusCell(t.Status), {Text: string(t.Reason)}, {Text: t.Agent}, {Text: a.Age(t.ClaimedAt)},
		}
	}
	out += a.Section("Attempts", []table.Column{
		{Title: "ATTEMPT"}, {Title: "STATUS"}, {Title: "REASON"}, {Title: "AGENT", Yields: 1}, {Title: "AGE"},
	}, rows)
	out += table.Section("Failure", table.Clean(report.FailureText(r.Run())))
	out += a.policiesText(r.Policies)
	out += a.costText(d)
	if d.Plan != nil {
		out += table.Section("Plan", a.planText(*d.Plan))
	}
	return out
}

// releasedLock is the ID of the lock that a run is to release.
func releasedLock(r v1.Run) string {
	if r.State == nil {
		return ""
	}
	return r.State.LockID
}

func provisionalText(parents []string) string {
	if len(parents) == 0 {
		return ""
	}
	return "planned before " + strings.Join(parents, ", ") + " was applied"
}

// planText is all of a plan, made from what was compared and counted.
func (a *app) planText(p v1.Plan) string {
	if a.Colour {
		return report.ColourPlanText(p.Plan())
	}
	return report.PlanText(p.Plan())
}

func newDescribePullRequestCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:     "pullrequest REPOSITORY#NUMBER",
		Aliases: []string{"pr"},
		Short:   "Show a pull request: clusters, statuses, comments",
		Args:    cli.Exactly(1, "a pull request, repository#number"),
		RunE: func(c *cobra.Command, args []string) error {
			ref, err := cli.ParsePullRequest(args[0])
			if err != nil {
				return err
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			answer, err := cl.PullRequest(c.Context(), ref)
			if err != nil {
				return err
			}
			return a.Print(format, answer, func() string { return a.pullRequestText(answer) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.PullRequestNames)
	cli.AddFormatFlag(c, &format)
	return c
}

func (a *app) pullRequestText(d v1.PullRequestDetail) string {
	r := d.PullRequest
	out := a.Fields(
		[2]string{"Pull request", r.String()},
		[2]string{"Title", table.OneLine(r.Title)},
		[2]string{"Author", r.Author},
		[2]string{"URL", r.URL},
		[2]string{"State", string(r.State)},
		[2]string{"Branch", r.Branch + " into " + r.BaseBranch},
		[2]string{"Head", r.Head.Short()},
		[2]string{"Merged as", r.MergeCommit.Short()},
		[2]string{"Status", table.Joined(string(r.Reason), r.Detail)},
		[2]string{"Meaning", a.Filled(meaningText(r.Reason))},
		[2]string{"Clusters", a.Wrapped(clusterNames(r))},
		[2]string{"Faults", faultsText(r.Faults)},
	)
	statuses := make([][]table.Cell, len(d.Statuses))
	for i, s := range d.Statuses {
		statuses[i] = []table.Cell{{Text: s.Revision.Short()}, {Text: s.Context}, stateCell(s.State), {Text: s.Description}}
		if s.NotSet != "" { // the code host shows another one, or none
			statuses[i][2] = table.Cell{Text: "not set", Colour: table.Yellow}
			statuses[i][3].Text = table.OneLine(fmt.Sprintf("%s (would be %s: %s)", s.NotSet, s.State, s.Description))
		}
	}
	out += a.Section("Statuses", []table.Column{
		{Title: "COMMIT"}, {Title: "CONTEXT"}, {Title: "STATE"}, {Title: "DESCRIPTION", Min: 24},
	}, statuses)
	refused := make([][]table.Cell, len(d.Refused))
	for i, r := range d.Refused {
		refused[i] = table.Cells(string(r.Kind), r.What, table.OneLine(r.Reason))
	}
	out += a.Section("Refused by the code host (holdfast reconcile --repo "+r.Repo+" retries)", []table.Column{
		{Title: "KIND"}, {Title: "WHAT"}, {Title: "REASON", Min: 24},
	}, refused)
	delayed := make([][]table.Cell, len(d.Delayed))
	for i, p := range d.Delayed {
		again := ""
		if !p.RetryAt.IsZero() {
			again = p.RetryAt.UTC().Format(time.RFC3339)
		}
		delayed[i] = table.Cells(string(p.Kind), p.What, again, table.OneLine(p.Reason))
	}
	out += a.Section("Not posted yet, retried automatically", []table.Column{
		{Title: "KIND"}, {Title: "WHAT"}, {Title: "AGAIN"}, {Title: "REASON", Min: 24},
	}, delayed)
	comments := slices.Clone(d.Comments)
	slices.SortStableFunc(comments, func(x, y v1.Comment) int { return x.CreatedAt.Compare(y.CreatedAt) })
	for _, c := range comments {
		written := c.CreatedAt
		if c.UpdatedAt.After(written) {
			written = c.UpdatedAt
		}
		heading := fmt.Sprintf("Comment by %s, %s", table.OneLine(c.Author), a.When(written))
		if c.NotPosted != "" {
			heading = fmt.Sprintf("Comment by %s as it will be: %s", table.OneLine(c.Author), table.OneLine(c.NotPosted))
		}
		out += table.Section(heading, commentText(&a.Printer, c.Body))
	}
	return out
}

func stateCell(s holdfast.StatusState) table.Cell {
	c := table.Cell{Text: string(s)}
	switch s {
	case holdfast.StatusSuccess:
		c.Colour = table.Green
	case holdfast.StatusFailure, holdfast.StatusError:
		c.Colour = table.Red
	case holdfast.StatusPending:
		c.Colour = table.Yellow
	}
	return c
}
