package report

// The labels of pull requests, which say in a list of them what the comments say.
const (
	labelDestroys = "holdfast/destroys" // a plan destroys, replaces or forgets something
	labelChanges  = "holdfast/changes"  // plans change something, and lose nothing
	labelEmpty    = "holdfast/no-changes"
	labelFailed   = "holdfast/failed"  // there is no plan, or there are errors in the files
	labelBlocked  = "holdfast/blocked" // something is required that is missing, or somebody has to act
)

// LabelNames are all labels that a pull request may get: those that it should not have
// are taken off.
func LabelNames() []string {
	return []string{labelDestroys, labelChanges, labelEmpty, labelFailed, labelBlocked}
}

// Labels are the labels that a pull request should have, in the order of LabelNames; false
// while that is not known, as plans are being made.
func Labels(r PullRequest) (labels []string, known bool) {
	w := newWriter(r)
	t := w.total
	_, waiting := samplesOf(w.impacts)
	if t.by[stageWorking]+waiting > 0 {
		return nil, false
	}
	if t.all == 0 && len(r.PullRequest.Faults) == 0 {
		return nil, true
	}
	add := func(label string, on bool) {
		if on {
			labels = append(labels, label)
		}
	}
	failed := t.by[stageFailed] > 0 || len(r.PullRequest.Faults) > 0
	loses := t.counts.Replace+t.counts.Delete+t.counts.Forget > 0
	add(labelDestroys, loses)
	add(labelChanges, !loses && !t.counts.Zero())
	add(labelEmpty, !failed && t.counts.Zero() && t.by[stageUnchanged] == t.all)
	add(labelFailed, failed)
	add(labelBlocked, len(decisionWriter{w}.blockers()) > 0)
	return labels, true
}
