package forms

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// Visitor is a person who looks at a page. Buttons are for whoever has a session and may do what
// they do; the API decides again. A request with a token as its password gets none: browsers
// send passwords whatever site asked for it.
type Visitor struct {
	API  *call.API
	Who  v1.Caller
	Page string // the address of the page, to which a button leads back
}

// May reports whether the viewer of the page may do something in a project by a button.
func (v *Visitor) May(verb access.Verb, project string) bool {
	if v.Who.FormToken == "" {
		return false
	}
	grants := access.Grants{}
	for _, grant := range v.Who.Roles {
		grants[grant.Project] = access.Role(grant.Role)
	}
	return grants.May(verb, project)
}

// MayAnywhere reports the same of any project.
func (v *Visitor) MayAnywhere(verb access.Verb) bool {
	return v.Who.FormToken != "" && access.Role(v.Who.Role).Includes(verb.Role())
}

// Button is a form that asks for something, with names and values of what it is for.
func (v *Visitor) Button(label, what string, of ...string) console.Act {
	act := console.Act{Label: label, Sent: []console.Hidden{
		{Name: "csrf", Value: v.Who.FormToken}, {Name: "back", Value: v.Page}, {Name: "do", Value: what},
	}}
	for i := 0; i+1 < len(of); i += 2 {
		act.Sent = append(act.Sent, console.Hidden{Name: of[i], Value: of[i+1]})
	}
	return act
}

// rightOf is what a command takes.
func rightOf(verb holdfast.Verb) access.Verb {
	switch verb {
	case holdfast.VerbApply:
		return access.Apply
	case holdfast.VerbApprove:
		return access.Approve
	case holdfast.VerbCancel:
		return access.Cancel
	case holdfast.VerbUnlock:
		return access.Unlock
	default:
		return access.Plan
	}
}

// labelOf is a command on a button, for a cluster that waits for a reason.
func labelOf(verb holdfast.Verb, reason holdfast.Reason) string {
	switch {
	case verb == holdfast.VerbPlan:
		return "Plan again"
	case verb == holdfast.VerbApprove:
		return "Approve"
	case verb == holdfast.VerbUnlock:
		return "Release the lock"
	case reason == holdfast.ReasonMassDeletion:
		return "Confirm and destroy"
	case reason == holdfast.ReasonDriftHeld || reason == holdfast.ReasonRevertFailed:
		return "Revert drift"
	case reason.Info().Failed:
		return "Retry the apply"
	default:
		return "Apply"
	}
}

// asksFirst makes a button show what an apply, or an approval of one, will do before it does it,
// unless nothing is lost by it; the destruction of a cluster is confirmed by typing its name.
func asksFirst(act console.Act, run v1.Run) console.Act {
	lost := run.Counts.Delete + run.Counts.Replace + run.Counts.Forget
	if lost == 0 && !run.Destroy {
		return act
	}
	act.Danger = true
	act.Confirm = &console.Confirm{Title: fmt.Sprintf("%s: %s", act.Label, run.Cluster), Lost: words.CountPills(run.Counts), Why: "What is deleted or replaced is gone, with the data in it.", Button: act.Label}
	if run.Destroy {
		act.Confirm.Why = "This destroys the cluster and everything in it."
		act.Confirm.Expect = run.Cluster
		act.Sent = append(act.Sent, console.Hidden{Name: "expect", Value: run.Cluster})
	}
	return act
}

// Helps are the commands that help a cluster that waits, as buttons, the best first.
func (v *Visitor) Helps(c v1.Cluster, project string, planned v1.Run) []console.Act {
	var acts []console.Act
	for _, verb := range c.Waiting.Info().Next {
		if !v.May(rightOf(verb), project) {
			continue
		}
		act := v.commandFor(verb, labelOf(verb, c.Waiting), c.Name, planned)
		act.Primary = len(acts) == 0
		acts = append(acts, act)
	}
	return acts
}

// commandFor is a command for a cluster: of the plan that the page is about, if there is one.
func (v *Visitor) commandFor(verb holdfast.Verb, label, cluster string, planned v1.Run) console.Act {
	switch shown := verb == holdfast.VerbApply || verb == holdfast.VerbApprove; {
	case shown && planned.ID != "":
		return asksFirst(v.Button(label, string(verb), "run", planned.ID), planned)
	case shown:
		return v.Button(label, string(verb), "cluster", cluster, "looked", "true")
	default:
		return v.Button(label, string(verb), "cluster", cluster)
	}
}

// PlannedRun is the run whose plan waits for a person; the zero Run if there is none.
func (v *Visitor) PlannedRun(c v1.Cluster) (v1.Run, error) {
	var run v1.Run
	if c.PlannedRun == "" || v.Who.FormToken == "" {
		return run, nil
	}
	err := v.API.Get("/runs/"+url.PathEscape(c.PlannedRun), nil, &run)
	if call.Is(err, http.StatusNotFound) || call.Is(err, http.StatusForbidden) {
		return v1.Run{}, nil
	}
	return run, err
}

// ClusterActs are the actions on a cluster whatever it waits for. Those that its alert
// offers already are left out.
func (v *Visitor) ClusterActs(c v1.Cluster, project string, planned v1.Run) []console.Act {
	var acts []console.Act
	offered := c.Waiting.Info().Next
	offers := func(verb holdfast.Verb) bool { return slices.Contains(offered, verb) }
	drifted := c.Drift.Status == holdfast.DriftFound && planned.Kind == holdfast.RunDrift
	if drifted && !offers(holdfast.VerbApply) && v.May(access.Apply, project) {
		act := v.commandFor(holdfast.VerbApply, "Revert drift", c.Name, planned)
		act.Primary = len(offered) == 0
		acts = append(acts, act)
	}
	if c.Deletion != nil || c.Unwatched {
		return acts
	}
	if !offers(holdfast.VerbPlan) && v.May(access.Plan, project) {
		acts = append(acts, v.commandFor(holdfast.VerbPlan, "Plan again", c.Name, planned))
	}
	if c.Applied.Run != "" && v.May(access.Check, project) {
		acts = append(acts, v.Button("Check drift", "check", "cluster", c.Name))
	}
	if !c.Suspended && v.May(access.Suspend, project) {
		act := v.Button("Suspend", "suspend", "cluster", c.Name)
		act.Confirm = &console.Confirm{
			Title: "Suspend " + c.Name, Why: "No run begins until somebody resumes it. A run that runs now continues.", Reason: "Why (shown to others)", Button: "Suspend",
		}
		acts = append(acts, act)
	}
	if v.May(access.Propose, project) && c.Desired.Document.Template != nil {
		acts = append(acts, v.removal(c))
	}
	return acts
}

// removal proposes that a cluster is removed: its pull request says what that destroys.
func (v *Visitor) removal(c v1.Cluster) console.Act {
	act := v.Button("Remove", "remove", "cluster", c.Name, "expect", c.Name)
	act.Danger = true
	act.Confirm = &console.Confirm{
		Title: "Propose to remove " + c.Name, Why: "A pull request takes its document away. After the merge the cluster is destroyed, with everything in it.",
		Expect: c.Name, Button: "Open a pull request",
	}
	return act
}

// RunActs are the actions on a run, or with its plan.
func (v *Visitor) RunActs(run v1.Run) ([]console.Act, error) {
	switch run.Status {
	case holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying:
		if run.Cancel != "" || !v.May(access.Cancel, run.Project) {
			return nil, nil
		}
		act := v.Button("Cancel", string(holdfast.VerbCancel), "run", run.ID)
		if run.Kind.Writes() && run.Status == holdfast.RunRunning {
			act.Danger = true
			act.Confirm = &console.Confirm{Title: "Cancel this run", Why: "The engine is asked to stop and given time to store what it did. What it has changed so far stays changed.", Button: "Cancel the run"}
		}
		return []console.Act{act}, nil
	case holdfast.RunPlanned, holdfast.RunApplied, holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunInterrupted:
	}
	if run.Kind != holdfast.RunPlan && run.Kind != holdfast.RunDrift || run.Sample || v.Who.FormToken == "" {
		return nil, nil
	}
	if !run.PullRequest.IsZero() && run.Status != holdfast.RunPlanned {
		return v.replans(run), nil
	}
	var c v1.Cluster
	if err := v.API.Get("/clusters/"+url.PathEscape(run.Cluster), nil, &c); err != nil && !call.Is(err, http.StatusNotFound) {
		return nil, err
	}
	if c.PlannedRun == run.ID {
		return v.Helps(c, run.Project, run), nil
	}
	if run.PullRequest.IsZero() {
		return nil, nil // another plan has taken its place
	}
	var acts []console.Act
	if v.May(access.Approve, run.Project) && slices.Contains(run.Document.Apply.Requires, "approved") {
		acts = append(acts, asksFirst(v.Button("Approve", string(holdfast.VerbApprove), "run", run.ID), run))
	}
	return append(acts, v.replans(run)...), nil
}

// replans makes the plan of a pull request's cluster again.
func (v *Visitor) replans(run v1.Run) []console.Act {
	if !v.May(access.Plan, run.Project) {
		return nil
	}
	return []console.Act{v.Button("Plan again", string(holdfast.VerbPlan), "repo", run.PullRequest.Repo, "number", strconv.Itoa(run.PullRequest.Number), "cluster", run.Cluster)}
}

// PullRequestActs are the actions on all clusters of an open pull request; what waits after the
// merge is done cluster by cluster. The API refuses a person who may do it for some of them
// only. shown are the runs whose plans the page has, of all clusters.
func (v *Visitor) PullRequestActs(pr v1.PullRequest, shown []v1.Run, whole bool) []console.Act {
	if pr.State != holdfast.PullRequestOpen || len(pr.Clusters) == 0 {
		return nil
	}
	of := []string{"repo", pr.Repo, "number", strconv.Itoa(pr.Number)}
	everywhere := func(verb access.Verb) bool {
		return !slices.ContainsFunc(pr.Clusters, func(c v1.PullRequestCluster) bool { return !v.May(verb, c.Document.Project) })
	}
	var acts []console.Act
	required := slices.ContainsFunc(pr.Clusters, func(c v1.PullRequestCluster) bool { return slices.Contains(c.Document.Apply.Requires, "approved") })
	if whole && required && len(shown) > 0 && everywhere(access.Approve) {
		act := v.Button("Approve", string(holdfast.VerbApprove), append(of, "looked", "true")...)
		var total v1.Counts
		for _, run := range shown {
			act.Sent = append(act.Sent, console.Hidden{Name: "shown", Value: run.ID})
			total = words.Sum(total, run.Counts)
		}
		act.Primary = true
		act.Confirm = &console.Confirm{
			Title: "Approve " + pr.Ref().String(), Lost: words.CountPills(total), Button: "Approve these plans",
			Why: fmt.Sprintf("The %s on this page. It is Holdfast's approval of this head, not a review at the code host.", console.Plural(len(shown), "plan")),
		}
		acts = append(acts, act)
	}
	if everywhere(access.Plan) {
		acts = append(acts, v.Button("Plan again", string(holdfast.VerbPlan), of...))
	}
	if everywhere(access.Cancel) && slices.ContainsFunc(shown, func(run v1.Run) bool { return !run.Status.Done() }) {
		acts = append(acts, v.Button("Cancel", string(holdfast.VerbCancel), of...))
	}
	return acts
}
