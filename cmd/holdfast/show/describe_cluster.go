package show

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// clusterDescription is what describe cluster shows.
type clusterDescription struct {
	Cluster v1.Cluster      `json:"cluster"`
	Family  v1.Family       `json:"family,omitzero"`
	Outputs []v1.Output     `json:"outputs,omitempty"`
	Runs    []v1.Run        `json:"runs,omitempty"`
	History []v1.Transition `json:"history,omitempty"`
	// Suspension stops its runs, and those of others; nil if there is none.
	Suspension *v1.Suspension  `json:"suspension,omitempty"`
	Audit      []v1.AuditEntry `json:"audit,omitempty"`
}

const (
	allHistory = 100 // as many transitions as a server keeps
	newHistory = 10  // as many as are shown unasked
)

func newDescribeClusterCommand(a *app) *cobra.Command {
	var (
		conn    cli.Connection
		format  string
		history bool
	)
	c := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Show a cluster: desired, applied, what it waits for, its runs and history",
		Args:  cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			d, err := describeCluster(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			return a.Print(format, d, func() string { return a.clusterText(d, history) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVar(&history, "history", false, "show the whole stored history")
	return c
}

func describeCluster(ctx context.Context, cl *client.Client, name string) (d clusterDescription, err error) {
	if d.Cluster, err = cl.Cluster(ctx, name); err != nil {
		return d, err
	}
	if d.Outputs, err = cl.Outputs(ctx, name); err != nil {
		return d, err
	}
	if d.Runs, err = cl.Runs(ctx, url.Values{"cluster": {name}, "limit": {"10"}}); err != nil {
		return d, err
	}
	if d.History, err = cl.History(ctx, name, allHistory); err != nil {
		return d, err
	}
	if d.Family, err = cl.Family(ctx, name); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return d, err
	}
	suspensions, err := cl.Suspensions(ctx, true)
	if err != nil {
		return d, err
	}
	d.Suspension = SuspendedBy(d.Cluster, suspensions)
	d.Audit, err = cl.Audit(ctx, name, 10)
	return d, err
}

func (a *app) clusterText(d clusterDescription, history bool) string {
	r := d.Cluster
	doc := documentOf(r)
	status := clusterStatus(r)
	waiting := holdfast.Reason("") // unless the status says something else
	if status.Text == string(r.Waiting) {
		waiting = r.Waiting
	}
	out := a.Fields(
		[2]string{"Name", r.Name},
		[2]string{"Renamed from", renamedText(doc.RenamedFrom)},
		[2]string{"Repository", repositoryText(r)},
		[2]string{"Document", table.Place(doc.Path, doc.Line)},
		[2]string{"Project", doc.Project},
		[2]string{"Environment", doc.Environment},
		[2]string{"Labels", labelsText(doc.Labels)},
		[2]string{"Template", templateText(doc)},
		[2]string{"Provider", strings.TrimSpace(doc.Provider + " " + doc.Region)},
		[2]string{"Phase", a.phaseText(r.Phase, d.History)},
		[2]string{"Status", table.Joined(status.Text, r.WaitingDetail)},
		[2]string{"Meaning", a.Filled(meaningText(waiting))},
		[2]string{"What to do", a.Filled(helpText(waiting, r.Name))},
		[2]string{"Suspended", a.suspendedText(d)},
		[2]string{"Desired", desiredText(r)},
		[2]string{"Applied", a.appliedText(r)},
		[2]string{"Endpoint", table.OneLine(r.Applied.Endpoint)},
		[2]string{"Nodes", nodesText(r.Applied.NodeCount)},
		[2]string{"Kubeconfig", kubeconfigText(r.Applied.Kubeconfig)},
		[2]string{"Engine", strings.TrimSpace(r.Applied.EngineName + " " + r.Applied.EngineVersion)},
		[2]string{"Drift", a.driftLine(r)},
		[2]string{"Protected", protectedText(r)},
		[2]string{"Ended", a.endingText(r.Deletion)},
		[2]string{"May exist", mayExistText(r.MayExist)},
		[2]string{"Faults", faultsText(r.Desired.Faults)},
	)
	out += a.conditionsSection(r.Conditions)
	out += table.Section("Dependencies", a.familyText(r, d.Family))
	var outputs strings.Builder
	for _, o := range d.Outputs {
		value := string(o.Value)
		switch {
		case o.Omitted > 0:
			value = fmt.Sprintf("(too large to be shown: %d bytes)", o.Omitted)
		case o.Sensitive || value == "":
			value = "(sensitive value)"
		}
		fmt.Fprintf(&outputs, "%s = %s\n", table.OneLine(o.Name), table.Clean(value))
	}
	title := "Outputs"
	if run := r.Applied.OutputsRun; run != "" {
		title += " (of " + run + ")"
	}
	out += table.Section(title, outputs.String())
	columns := slices.DeleteFunc(a.runColumns(), func(c column[v1.Run]) bool { return c.Title == "CLUSTER" })
	out += a.Section("Runs", columnsOf(columns), rowsOf(columns, d.Runs))
	out += a.historySection(d.History, history)
	return out + a.auditSection(d.Audit)
}

func repositoryText(r v1.Cluster) string {
	if r.Unwatched {
		return r.Owner + " (no longer configured: nothing is done for the cluster; configure it again, or transfer the cluster)"
	}
	return r.Owner
}

func labelsText(labels map[string]string) string {
	var pairs []string
	for key, value := range labels {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ", ")
}

// phaseText is the phase, and since when, if the history still knows.
func (a *app) phaseText(phase holdfast.Phase, history []v1.Transition) string {
	i := slices.IndexFunc(history, func(t v1.Transition) bool { return t.What == "phase" })
	if i < 0 || history[i].To != string(phase) {
		return string(phase)
	}
	return fmt.Sprintf("%s since %s", phase, a.When(history[i].At))
}

func renamedText(from string) string {
	if from == "" {
		return ""
	}
	return from + " (see holdfast get runs --cluster " + from + " for its runs until then)"
}

func desiredText(r v1.Cluster) string {
	switch {
	case r.Deletion != nil:
		return ""
	case r.Desired.Removed:
		return fmt.Sprintf("nothing: the document was removed at %s", r.Desired.Revision.Short())
	default:
		return r.Desired.Revision.Short()
	}
}

// suspendedText says who has suspended a cluster, since when and why, and what else
// stops it: each suspension ends separately.
func (a *app) suspendedText(d clusterDescription) string {
	var lines []string
	if r := d.Cluster; r.Suspended {
		own := v1.Suspension{Cluster: r.Name, By: r.SuspendedBy, At: r.SuspendedAt, Reason: r.SuspendReason}
		lines = append(lines, SuspensionText(&a.Printer, own))
	}
	if s := d.Suspension; s != nil && d.Cluster.Deletion == nil {
		lines = append(lines, SuspensionText(&a.Printer, *s))
	}
	return strings.Join(lines, "\n")
}

// driftLine says what the last check found, and when the next one is.
func (a *app) driftLine(r v1.Cluster) string {
	s := r.Drift
	if s.Status == holdfast.DriftUnchecked && s.Due.IsZero() {
		return ""
	}
	parts := []string{driftStateCell(s).Text}
	if s.Status == holdfast.DriftFound && !s.Since.IsZero() {
		parts[0] += " since " + a.When(s.Since)
	}
	if !s.CheckedAt.IsZero() {
		parts = append(parts, "checked "+a.Age(s.CheckedAt)+" ago")
	}
	if !s.Due.IsZero() {
		parts = append(parts, "next "+a.Until(s.Due))
	}
	out := strings.Join(parts, "; ")
	if s.Detail != "" {
		out += "\n" + s.Detail
	}
	if s.Hold != "" {
		out += "\nnot reverted: " + s.Hold
	}
	if s.Status == holdfast.DriftFound {
		out += "\nsee holdfast describe drift " + r.Name
	}
	return out
}

// protectedText says whether a cluster may be destroyed: what was applied last
// decides.
func protectedText(r v1.Cluster) string {
	applied, desired := r.Applied.Document.Deletion.Protected, r.Desired.Document.Deletion.Protected
	switch {
	case r.Deletion != nil:
		return ""
	case applied && !desired && !r.Desired.Removed:
		return "yes, until the desired state is applied"
	case applied:
		return "yes"
	case desired && r.Applied.Run != "":
		return "no, not before the desired state is applied"
	case desired:
		return "once it is applied"
	default:
		return ""
	}
}

// mayExistText names what may exist without being in the state.
func mayExistText(m *v1.MayExist) string {
	if m == nil {
		return ""
	}
	lines := slices.Clone(m.Addresses)
	for i, address := range lines {
		lines[i] = table.OneLine(address)
	}
	if m.Any {
		lines = append(lines, "anything that the cluster's code creates: it is not known what an apply that died had created")
	}
	return strings.Join(lines, "\n")
}

func (a *app) endingText(e *v1.Deletion) string {
	if e == nil {
		return ""
	}
	out := fmt.Sprintf("%s %s", e.Reason, a.When(e.At))
	if e.To != "" {
		out += ": it is " + e.To + " now"
	}
	if e.Run != "" {
		out += ", by " + e.Run
	}
	if e.Revision != "" {
		out += "; the document was removed at " + e.Revision.Short()
	}
	return out
}

func (a *app) conditionsSection(conditions []v1.Condition) string {
	rows := make([][]table.Cell, len(conditions))
	for i, c := range conditions {
		rows[i] = []table.Cell{
			{Text: string(c.Type)}, conditionCell(c), {Text: string(c.Reason)}, {Text: a.Age(c.Since)}, {Text: table.Shorten(c.Message, 100)},
		}
	}
	return a.Section("Conditions", []table.Column{
		{Title: "CONDITION"}, {Title: "STATUS"}, {Title: "REASON"}, {Title: "SINCE"}, {Title: "MESSAGE", Min: 24},
	}, rows)
}

func conditionCell(c v1.Condition) table.Cell {
	hoped := holdfast.ConditionTrue
	if c.Type == holdfast.ConditionDrifted || c.Type == holdfast.ConditionBlocked {
		hoped = holdfast.ConditionFalse
	}
	switch c.Status {
	case hoped:
		return table.Cell{Text: string(c.Status), Colour: table.Green}
	case holdfast.ConditionUnknown, "":
		return table.Cell{Text: string(c.Status)}
	default:
		return table.Cell{Text: string(c.Status), Colour: table.Yellow}
	}
}

func (a *app) historySection(history []v1.Transition, all bool) string {
	shown := history
	if !all && len(history) > newHistory {
		shown = history[:newHistory]
	}
	rows := make([][]table.Cell, len(shown))
	for i, t := range shown {
		change := t.To
		if t.From != "" {
			change = t.From + " → " + t.To
		}
		rows[i] = table.Cells(a.Age(t.At), t.What, change, string(t.Reason), t.Run)
	}
	out := a.Section("History", []table.Column{
		{Title: "AGE"}, {Title: "WHAT"}, {Title: "CHANGE"}, {Title: "REASON"}, {Title: "RUN", Yields: 1},
	}, rows)
	if rest := len(history) - len(shown); rest > 0 {
		out += fmt.Sprintf("  … %d older: --history\n", rest)
	}
	return out
}

func templateText(doc v1.Document) string {
	switch t := doc.Template; {
	case t != nil && t.Path != "":
		return t.Path
	case t != nil:
		return t.Name + " " + t.Version
	case doc.Module != nil:
		return "module " + doc.Module.Path
	default:
		return ""
	}
}

func (a *app) appliedText(r v1.Cluster) string {
	switch applied := r.Applied; {
	case applied.Run != "":
		return fmt.Sprintf("%s by %s, %s", applied.Revision.Short(), applied.Run, a.When(applied.At))
	case r.Deletion != nil: // what there was is gone
		return ""
	default:
		return "never"
	}
}

func nodesText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func kubeconfigText(output string) string {
	if output == "" {
		return ""
	}
	return "output " + table.OneLine(output) + " (sensitive)"
}

func faultsText(faults []v1.Fault) string {
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}
