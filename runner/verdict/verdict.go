package verdict

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of what is recorded with a run.
const (
	mostEntries = 100
	mostText    = 500 // bytes
)

// Clean is a report without secrets, and as long as a record may be. What denies comes first
// in a report, so that it is not what is left out.
func Clean(r holdfast.PolicyReport, redacted func(string) string) holdfast.PolicyReport {
	clean := func(text string) string {
		text = redacted(text)
		if len(text) > mostText {
			text = strings.ToValidUTF8(text[:mostText], "") + "…"
		}
		return text
	}
	r.Policies = nil
	r.Shorten(mostEntries)
	for i := range r.Results {
		result := &r.Results[i]
		result.Address, result.Message, result.Link = clean(result.Address), clean(result.Message), clean(result.Link)
	}
	r.Faults = r.Faults[:min(len(r.Faults), mostEntries)]
	for i := range r.Faults {
		fault := &r.Faults[i]
		fault.Message, fault.Hint = clean(fault.Message), clean(fault.Hint)
	}
	return r
}

// Changed says how policies judge a plan otherwise than the reviewed one: another one does, of
// other resources, or with another severity. It is empty if they do not. Found is nil if none
// were evaluated. Of a part of what was reviewed, which is what remains after an apply that
// failed, they may say less.
func Changed(found *holdfast.PolicyReport, review holdfast.Review, part bool) string {
	switch {
	case found == nil:
		return "this agent evaluates no policies"
	case found.Verdict.Equal(review.Policies), part && review.Policies != "" && !found.Denies():
		return ""
	case review.Policies == "":
		return fmt.Sprintf("no policies were evaluated over the reviewed plan of run %s", review.Run)
	}
	return fmt.Sprintf("policies speak otherwise of the plan than of the reviewed one of run %s: now %s", review.Run, Said(*found))
}

// Said is a report in a line.
func Said(r holdfast.PolicyReport) string {
	var parts []string
	for _, result := range r.Results {
		text := string(result.Severity) + " " + result.Policy
		if result.Address != "" {
			text += " of " + result.Address
		}
		parts = append(parts, text)
	}
	for _, fault := range r.Faults {
		parts = append(parts, "a fault of "+fault.Policy)
	}
	const most = 5
	switch n := len(parts); {
	case n == 0:
		return "nothing"
	case n > most:
		return fmt.Sprintf("%s, and %d more", strings.Join(parts[:most], ", "), n-most)
	}
	return strings.Join(parts, ", ")
}
