package dispatch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Bounds of what an agent may say of an attempt. What is longer is cut: it is for
// people, and nothing is decided by it.
const (
	maxLine        = 2 << 10  // bytes of what is in one line
	maxText        = 64 << 10 // bytes of a text of several lines
	maxDiagnostics = 100
	maxAddresses   = 1000
	maxSteps       = 32
	maxStepTime    = 30 * 24 * time.Hour
)

// comparedReasons are the reasons of applies that did not begin because their plan, or what
// policies say of it, is not what was reviewed.
var comparedReasons = []holdfast.Reason{holdfast.ReasonPlanChanged, holdfast.ReasonPolicyChanged, holdfast.ReasonPolicyDenied}

// steps are the parts that an attempt has.
var steps = []string{"prepare", "init", "validate", "plan", "show", "wait", "apply", "outputs", "push", "unlock"}

// Lengths are separate bounds: to compile a counted repetition takes every start of the
// program longer than to check all digests of a day.
const (
	maxDigest  = 200
	maxVersion = 64
)

var (
	digestText  = regexp.MustCompile(`^sha256:[0-9A-Za-z:._-]+$`)
	versionText = regexp.MustCompile(`^[0-9A-Za-z.+-]+$`)
)

// checked is the part of an agent's result of an attempt at run that is accepted.
// Accepted are the ends that its kind of run can have, and known words; an impossible
// result becomes an error, which is never retried automatically, and why says what was
// wrong with it.
func checked(run holdfast.Run, result protocol.Result) (out protocol.Result, why string) {
	result = bounded(result)
	switch {
	case !result.Status.Done():
		why = fmt.Sprintf("a run does not end %q", result.Status)
	case run.Kind.OnlyPlans() && result.Status == holdfast.RunApplied:
		why = fmt.Sprintf("a %s run cannot end applied", run.Kind)
	case !run.Kind.Writes() && result.Applying:
		why = fmt.Sprintf("a %s run applies nothing", run.Kind)
	case !run.Kind.Plans() && result.Status != holdfast.RunApplied && result.Status.Good():
		why = fmt.Sprintf("a %s run plans nothing", run.Kind)
	case slices.Contains(comparedReasons, result.Reason) && !run.Kind.Writes():
		why = fmt.Sprintf("a %s run is compared with no review", run.Kind)
	case result.Reason == holdfast.ReasonMayExist && !looksForLeftovers(run):
		why = fmt.Sprintf("this %s may create what exists", run.Kind)
	case result.Matched != "" && !slices.ContainsFunc(run.Reviews, func(r holdfast.Review) bool { return r.Run == result.Matched }):
		why = "it matched a plan that it was not to be compared with"
	case badDigest(result.InputDigest), badDigest(result.PlanDigest), badReport(run, result.Policies):
		why = "it has an invalid digest"
	case !slices.Contains([]string{"", "terraform", "tofu"}, result.EngineName),
		result.EngineVersion != "" && badVersion(result.EngineVersion):
		why = "it names an unknown engine"
	}
	if why == "" {
		return reported(result), ""
	}
	return protocol.Result{
		Fence: result.Fence, Status: holdfast.RunErrored, Reason: holdfast.CauseInvalidOutcome,
		Applying: result.Applying && run.Kind.Writes(), Steps: result.Steps,
		Failure: &holdfast.Failure{
			Step: "prepare", Cause: holdfast.CauseInvalidOutcome, Summary: "the agent reported something impossible",
			Detail: why, Hint: "look at the agent's log: it is of another version than the server, or something is impersonating it",
		},
	}, why
}

// looksForLeftovers reports whether a run is given what may exist already.
func looksForLeftovers(run holdfast.Run) bool {
	return run.Kind == holdfast.RunApply && !decision.MayCreate(run) || run.Kind == holdfast.RunPlan && !run.Destroy && !run.Sample
}

// reported is a result whose reason and cause are known words. An agent of a newer
// version may have others: what else it says counts, but it is not retried
// automatically.
func reported(r protocol.Result) protocol.Result {
	if !r.Reason.Reportable() {
		r.Reason = holdfast.CauseInvalidOutcome
	}
	if r.Failure != nil && !r.Failure.Cause.Reportable() {
		f := *r.Failure
		f.Cause, f.Transient = holdfast.CauseInvalidOutcome, false
		r.Failure = &f
	}
	return r
}

func badDigest(d holdfast.Digest) bool {
	return d != "" && (len(d) > len("sha256:")+maxDigest || !digestText.MatchString(string(d)))
}

func badVersion(v string) bool { return len(v) > maxVersion || !versionText.MatchString(v) }

// bounded cuts texts and lists to what they may be at most, and leaves out unknown
// steps.
func bounded(r protocol.Result) protocol.Result {
	r.Detail = cut(r.Detail, maxLine)
	r.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s protocol.Step) bool {
		return !slices.Contains(steps, s.Name) || s.Duration < 0 || s.Duration > maxStepTime
	})
	r.Steps = r.Steps[:min(len(r.Steps), maxSteps)]
	r.Policies = boundedReport(r.Policies)
	if r.Failure == nil {
		return r
	}
	f := *r.Failure
	if f.Step != "" && !slices.Contains(steps, f.Step) {
		f.Step = ""
	}
	f.Summary, f.Hint, f.Address = cut(f.Summary, maxLine), cut(f.Hint, maxLine), cut(f.Address, maxLine)
	f.Detail = cut(f.Detail, maxText)
	f.Diagnostics = slices.Clone(f.Diagnostics[:min(len(f.Diagnostics), maxDiagnostics)])
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		d.Severity, d.Summary, d.Detail = cut(d.Severity, 16), cut(d.Summary, maxLine), cut(d.Detail, maxText)
		d.Address, d.File = cut(d.Address, maxLine), cut(d.File, maxLine)
	}
	f.Remaining, _ = cutList(f.Remaining)
	var whole [2]bool
	f.Unrecorded, whole[0] = cutList(f.Unrecorded)
	f.Completed, whole[1] = cutList(f.Completed)
	// A cut address is not that of any resource of a plan.
	f.ProgressLost = f.ProgressLost || whole != [2]bool{true, true}
	r.Failure = &f
	return r
}

// cutList cuts a list of addresses, and each of them. Whole: there was nothing to cut.
func cutList(addresses []string) (list []string, whole bool) {
	list = slices.Clone(addresses[:min(len(addresses), maxAddresses)])
	for i := range list {
		list[i] = cut(list[i], maxLine)
	}
	return list, slices.Equal(list, addresses)
}

// cut shortens a text to at most n bytes, at the border of a character.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
