package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

func (v *visit) run() (console.View, error) {
	id := v.r.PathValue("run")
	var run v1.Run
	if err := v.Get("/runs/"+url.PathEscape(id), nil, &run); err != nil {
		return nil, err
	}
	v.frame.Here = "q"
	view := console.RunView{
		Title: kindWord(run.Kind, run.Destroy) + " of " + run.Cluster, State: runState(run.Status, run.Kind), Facts: runFacts(run),
		Alerts: runAlerts(run), Steps: runSteps(run, v.now), Took: lasted(run.StartedAt, run.FinishedAt, v.now),
		Running: run.Status == holdfast.RunRunning || run.Status == holdfast.RunQueued || run.Status == holdfast.RunRetrying,
	}
	v.frame.Title = view.Title
	v.frame.Crumbs = []console.Link{{Text: "Fleet", Href: "/"}, {Text: run.Cluster, Href: words.ClusterHref(run.Cluster)}, {Text: "Run " + run.ID}}
	var err error
	if view.Acts, err = v.visitor().RunActs(run); err != nil {
		return nil, err
	}
	if view.Plan, err = v.planOf(run, "", changesOnPage); err != nil {
		return nil, err
	}
	if run.Matched != "" {
		view.Plan.Verdict = console.State{Word: "matches the reviewed plan", Icon: "ok", Tone: "ok"}
	}
	view.Log, err = v.logView(run)
	return view, err
}

// planOf is the plan of a run, or why there is none.
func (v *visit) planOf(run v1.Run, prefix string, most int) (console.PlanView, error) {
	if v.r.URL.Query().Get("all") == "true" {
		most = 0
	}
	var plan v1.Plan
	err := v.Get("/runs/"+url.PathEscape(run.ID)+"/plan", nil, &plan)
	switch {
	case err == nil:
		return planView(plan, prefix, most, words.With(words.RunHref(run.ID), url.Values{"all": {"true"}})), nil
	case !call.Is(err, http.StatusNotFound) && !call.Is(err, http.StatusForbidden):
		return console.PlanView{}, err
	}
	why := "There is no plan."
	switch run.Status {
	case holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying:
		why = "No plan yet: it is shown as soon as the engine has made it."
	case holdfast.RunErrored, holdfast.RunInterrupted:
		why = "No plan: the run failed before it was made."
	case holdfast.RunCanceled:
		why = "No plan: the run was canceled before it was made."
	default:
	}
	return console.PlanView{Why: why}, nil
}

func runFacts(run v1.Run) []console.Fact {
	var facts []console.Fact
	if run.PullRequest.IsZero() {
		facts = append(facts, console.Fact{Name: "for", Value: "the tracked branch of " + run.Repo})
	} else {
		facts = append(facts, console.Fact{Name: "pull request", Value: run.PullRequest.String(), Href: words.PullRequestHref(run.PullRequest)})
	}
	for _, f := range []console.Fact{
		{Name: "asked for by", Value: run.Actor},
		{Name: "revision", Value: run.Revision.Short(), Mono: true},
		{Name: "template", Value: strings.Join(strings.Fields(run.Template), " "), Mono: true},
		{Name: "engine", Value: strings.TrimSpace(run.EngineName + " " + run.EngineVersion)},
		{Name: "agent", Value: run.Agent},
		{Name: "runner", Value: run.Runner},
	} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return append(facts, console.Fact{Name: "created", At: run.CreatedAt})
}

// runAlerts say what went wrong and what to do, or what the run waits for.
func runAlerts(run v1.Run) []console.Alert {
	if f := run.Failure; f != nil {
		return []console.Alert{failureAlert(run, f)}
	}
	switch {
	case run.Status == holdfast.RunCanceled || run.Status == holdfast.RunInterrupted || run.Status == holdfast.RunErrored:
		info := run.Reason.Info()
		tone := "bad"
		if run.Status == holdfast.RunCanceled {
			tone = "warn"
		}
		return []console.Alert{{Tone: tone, Title: words.Sentence(reasonWords(run.Reason, run.Detail)), Hint: words.Unquoted(info.Hint)}}
	case run.Cancel != "" && run.Status == holdfast.RunRunning:
		return []console.Alert{{Tone: "warn", Title: "It is being canceled", Why: words.Sentence(reasonWords(run.Cancel, ""))}}
	case run.Status == holdfast.RunRetrying:
		return []console.Alert{{Tone: "warn", Title: fmt.Sprintf("Attempt %d failed; it is retried", run.Attempt), Why: words.Sentence(reasonWords(run.Reason, run.Detail))}}
	default:
		return nil
	}
}

func failureAlert(run v1.Run, f *v1.Failure) console.Alert {
	alert := console.Alert{Tone: "bad", Title: words.Sentence(cmp.Or(f.Summary, "It failed")), Hint: words.Sentence(words.Unquoted(f.Hint)), Output: f.Detail}
	words := words.Unquoted(f.Cause.Info().Words)
	alert.Why = fmt.Sprintf("In step %s: %s.", cmp.Or(f.Step, "unknown"), words)
	if f.Address != "" {
		alert.Why = fmt.Sprintf("At %s, in step %s: %s.", f.Address, cmp.Or(f.Step, "unknown"), words)
	}
	var output []string
	for _, d := range f.Diagnostics {
		text := d.Summary
		for _, more := range []string{d.Detail, place(d), d.Snippet} {
			if strings.TrimSpace(more) != "" {
				text += "\n" + strings.TrimRight(more, "\n")
			}
		}
		output = append(output, text)
	}
	if len(output) > 0 {
		alert.Output = strings.Join(output, "\n\n")
	}
	alert.Items = f.Unrecorded
	if len(f.Unrecorded) > 0 {
		alert.Hint = strings.TrimSpace(alert.Hint + " These resources may exist without being in the state:")
	}
	if line := f.Cause.Command(run.Cluster); line != "" {
		alert.Command = line
	}
	return alert
}

// stepNames are what a run does, in order, by the name that agents give. The last one is
// of applies.
var stepNames = []struct{ key, plan, apply string }{
	{"prepare", "Workspace", "Workspace"},
	{"init", "Engine init", "Engine init"},
	{"plan", "Plan", "Plan and compare with the review"},
	{"apply", "", "Apply"},
	{"outputs", "", "Save state and outputs"},
}

// runSteps are how far a run is. Agents say which step they are in, not when each began.
func runSteps(run v1.Run, now time.Time) []console.Step {
	steps := []console.Step{waitStep(run, now)}
	current := stepIndex(run)
	for i, name := range stepNames {
		word := name.plan
		if run.Kind == holdfast.RunApply || run.Kind == holdfast.RunDestroy {
			word = name.apply
		}
		if word == "" {
			continue
		}
		if run.Kind == holdfast.RunDestroy && name.key == "apply" {
			word = "Destroy"
		}
		steps = append(steps, stepState(run, i, current, word))
	}
	return append(steps, endStep(run, now))
}

// stepIndex is where a run is, or was when it ended; all of it is behind one that succeeded.
func stepIndex(run v1.Run) int {
	step := run.Step
	if run.Failure != nil {
		step = run.Failure.Step
	}
	switch {
	case run.Status == holdfast.RunPlanned, run.Status == holdfast.RunApplied, run.Status == holdfast.RunNoChanges:
		return len(stepNames)
	case run.StartedAt.IsZero():
		return -1
	}
	if step == "show" {
		step = "plan"
	}
	return max(0, slices.IndexFunc(stepNames, func(n struct{ key, plan, apply string }) bool { return n.key == step }))
}

func stepState(run v1.Run, i, current int, word string) console.Step {
	step := console.Step{What: word}
	switch {
	case i < current && run.Status == holdfast.RunNoChanges && (stepNames[i].key == "apply"):
		step.State, step.Sub, step.Next = console.State{Word: "skipped", Icon: "skip", Tone: "faint"}, "nothing to do", true
	case i < current:
		step.State = console.State{Word: "done", Icon: "ok", Tone: "ok"}
	case i > current || current < 0:
		step.State, step.Next = console.State{Word: "to come", Icon: "todo", Tone: "faint"}, true
	case run.Status == holdfast.RunRunning:
		step.State = console.State{Word: "running", Icon: "run", Tone: "info", Spin: true}
	case run.Status == holdfast.RunCanceled:
		step.State = console.State{Word: "canceled", Icon: "skip", Tone: "muted"}
	default:
		step.State = console.State{Word: "failed", Icon: "bad", Tone: "bad"}
	}
	return step
}

func waitStep(run v1.Run, now time.Time) console.Step {
	step := console.Step{What: "Waited for an agent", State: console.State{Word: "done", Icon: "ok", Tone: "ok"}, Time: lasted(run.CreatedAt, run.StartedAt, now)}
	if !run.StartedAt.IsZero() {
		if run.Agent != "" {
			step.Sub = run.Agent
		}
		if run.Attempt > 1 {
			step.Sub = strings.TrimSpace(step.Sub + fmt.Sprintf(", attempt %d", run.Attempt))
		}
		return step
	}
	step.What = "Waits for an agent"
	step.State = console.State{Word: "running", Icon: "wait", Tone: "info"}
	if run.Reason != "" {
		step.Sub = reasonWords(run.Reason, run.Detail)
	}
	if run.Status == holdfast.RunCanceled {
		step.What, step.State = "Waited for an agent", console.State{Word: "canceled", Icon: "skip", Tone: "muted"}
		step.Time = lasted(run.CreatedAt, run.FinishedAt, now)
	}
	return step
}

func endStep(run v1.Run, now time.Time) console.Step {
	state := runState(run.Status, run.Kind)
	step := console.Step{What: state.Word, State: state, Time: lasted(run.StartedAt, run.FinishedAt, now)}
	switch run.Status {
	case holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying:
		return console.Step{What: "Result", Next: true, State: console.State{Word: "to come", Icon: "todo", Tone: "faint"}}
	case holdfast.RunApplied, holdfast.RunPlanned, holdfast.RunNoChanges:
		step.State.Tone, step.State.Icon = "ok", "ok"
	default:
	}
	return step
}

// attemptsOf are the attempts of a run that has several.
func attemptsOf(run v1.Run, chosen int) []console.Option {
	if run.Attempt < 2 {
		return nil
	}
	var out []console.Option
	for n := max(1, run.Attempt-9); n <= run.Attempt; n++ {
		out = append(out, console.Option{
			Label: "attempt " + strconv.Itoa(n), Href: words.With(words.RunHref(run.ID), url.Values{"attempt": {strconv.Itoa(n)}}) + "#log-panel", On: n == chosen,
		})
	}
	return out
}
