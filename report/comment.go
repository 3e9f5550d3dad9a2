package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// writer writes one comment, at one level of detail after the other.
type writer struct {
	r        PullRequest
	outcomes []outcome
	groups   []group
	total    total
	impacts  []*impactView
	tabled   [][]outcome // rows of the summary
	level    detail
	// choicesOf has the cluster at which a list of choices was shown.
	choicesOf map[string]string
	diffs     map[*holdfast.Plan]fullPlan
	page
}

// An impactWriter writes what a template's change would do: its box, its groups, and
// the clusters that would refuse it.
type impactWriter struct{ *writer }

// A planWriter writes what plans would do, and how those differ that are shown as one.
type planWriter struct{ *writer }

func newWriter(r PullRequest) *writer {
	w := &writer{r: r, outcomes: outcomesOf(r), diffs: map[*holdfast.Plan]fullPlan{}}
	for i, o := range w.outcomes {
		if o.plan != nil {
			w.outcomes[i].key = groupKey(o)
		}
	}
	slices.SortStableFunc(w.outcomes, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(dangerOf(b), dangerOf(a)), strings.Compare(a.cluster.Name, b.cluster.Name))
	})
	w.groups = groupsOf(w.outcomes)
	w.tabled = w.rows()
	w.total = totalOf(w.outcomes)
	w.impacts = impactsOf(r, w.outcomes)
	return w
}

func (w *writer) comment(level detail) string {
	w.level = level
	w.choicesOf = nil
	w.reset()
	w.line(Marker(w.r.PullRequest.PullRequestRef))
	w.line("### " + w.headline())
	w.line("")
	w.refusal()
	impactWriter{w}.impactFaults()
	w.danger()
	decisionWriter{w}.decision()
	for _, notice := range firstOf(&w.page, slices.Concat(w.r.Notices, w.r.PullRequest.Settings), w.level.notes) {
		w.line("> [!NOTE]\n> " + markdown.Words(notice) + "\n")
	}
	w.faults()
	w.attention()
	w.gates()
	policyWriter{w}.policies()
	costWriter{w}.costs()
	w.failures()
	tableWriter{w}.summary()
	w.runners()
	for _, g := range w.groups {
		if w.full() {
			return w.b.String()
		}
		planWriter{w}.details(g)
	}
	if w.level.rows == 0 {
		w.losses()
	}
	for _, v := range firstOf(&w.page, w.impacts, w.level.clusters) {
		impactWriter{w}.impact(v)
	}
	w.footer()
	return w.b.String()
}

// bare is the comment when nothing else fits, such as with names of a hostile length.
func (w *writer) bare() string {
	body := Marker(w.r.PullRequest.PullRequestRef) + "\n### " + w.headline() + "\n\n"
	if why := Unshown(w.r); why != "" {
		body += "> [!CAUTION]\n> **None of these plans counts as reviewed:** " + why + ". Split the pull request.\n\n"
	}
	return body + "There is too much to show in a comment. The commit statuses and the command line show more: " +
		markdown.Code("holdfast describe pullrequest "+markdown.OneLine(w.r.PullRequest.String())) + ". " + w.wholePlan() + "\n"
}

// headline is the decision in a line.
func (w *writer) headline() string {
	pr := w.r.PullRequest
	head := markdown.Code(orElse(pr.Head.Short(), "no commit"))
	if len(w.impacts) > 0 && (pr.Reason == "" || w.r.merged()) {
		return impactWriter{w}.impactHeadline(head)
	}
	return w.clustersHeadline(head)
}

// clustersHeadline is that of the clusters that the merge itself moves.
func (w *writer) clustersHeadline(head string) string {
	pr, t := w.r.PullRequest, w.total
	switch {
	case pr.Reason == holdfast.ReasonOtherBase && !w.r.merged():
		return fmt.Sprintf("⚪ Nothing is planned for %s here: its base is now %s, which is not the tracked branch", head, markdown.Code(markdown.OneLine(pr.BaseBranch)))
	case pr.Reason != "" && !w.r.merged():
		return "⛔ Nothing is planned for " + head + ": " + markdown.Shorten(reasonOf(pr.Reason).Words, 200)
	case t.all == 0 && len(pr.Faults) > 0:
		return fmt.Sprintf("❌ %s in %s", markdown.Plural(len(distinct(pr.Faults)), "error"), head)
	case t.all == 0 && len(pr.Runners) > 0:
		return "✅ Nothing to plan for " + head + ": it changes " + runnersPhrase(pr.Runners)
	case t.all == 0 && len(pr.Settings) > 0:
		return "✅ Nothing to plan for " + head + ": it changes settings only"
	case t.all == 0:
		return "✅ No cluster is affected by " + head
	case w.r.merged():
		return w.mergedHeadline(head)
	case t.by[stageWorking] > 0:
		return fmt.Sprintf("⏳ Planning %s · %s%s", head, progress(t.all, t.by[stageWorking]), w.retried())
	case t.by[stageFailed]+t.by[stageHeld] > 0 || len(pr.Faults) > 0:
		return fmt.Sprintf("❌ Plan for %s · %s%s", head, w.breakdown("changes", "change", len(distinct(pr.Faults))), countsPhrase(t.counts, false))
	case staying(w.outcomes) > 0:
		return fmt.Sprintf("✋ Plan for %s · %s%s", head, w.breakdown("changes", "change", 0), countsPhrase(t.counts, false))
	case t.by[stageDone] == 0:
		return fmt.Sprintf("✅ Plan for %s: no changes in %s", head, markdown.Plural(t.all, "cluster"))
	case t.counts.Replace+t.counts.Delete+t.counts.Forget > 0:
		return fmt.Sprintf("🛑 Plan for %s · %s%s", head, w.breakdown("changes", "change", 0), countsPhrase(t.counts, false))
	default:
		return fmt.Sprintf("🔵 Plan for %s · %s%s", head, w.breakdown("changes", "change", 0), countsPhrase(t.counts, false))
	}
}

// staying counts the clusters that are not planned since their states would move.
func staying(outcomes []outcome) (n int) {
	for _, o := range outcomes {
		if o.notice == holdfast.ReasonStateWouldMove {
			n++
		}
	}
	return n
}

func (w *writer) mergedHeadline(head string) string {
	t := w.total
	if commit := w.r.PullRequest.MergeCommit; commit != "" {
		head = markdown.Code(commit.Short())
	}
	switch {
	case t.by[stageFailed] > 0, slices.ContainsFunc(w.outcomes, func(o outcome) bool { return o.stage == stageHeld && reasonOf(o.reason).Failed }):
		return fmt.Sprintf("❌ Merged as %s · %s", head, w.breakdown("is applied", "are applied", 0))
	case t.by[stageHeld] > 0:
		return fmt.Sprintf("✋ Merged as %s · %s", head, w.breakdown("is applied", "are applied", 0))
	case t.by[stageWorking] > 0:
		return fmt.Sprintf("⏳ Merged as %s, applying · %s%s", head, progress(t.all, t.by[stageWorking]), w.retried())
	case t.by[stageDone] == 0:
		return fmt.Sprintf("✅ Merged as %s: nothing to apply", head)
	default:
		return fmt.Sprintf("✅ Merged as %s and applied · %s%s", head, w.breakdown("is applied", "are applied", 0), countsPhrase(t.counts, true))
	}
}

// retried says how many clusters have failed and will be retried.
func (w *writer) retried() string {
	n := 0
	for _, o := range w.outcomes {
		if o.stage == stageWorking && o.failing != nil && o.failing.Status == holdfast.RunRetrying {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed and will be retried", n)
}

func progress(all, working int) string {
	if all == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d of %d clusters done", all-working, all)
}

// breakdown says how many clusters are where.
func (w *writer) breakdown(one, many string, faults int) string {
	t := w.total
	if t.all == 1 && faults == 0 {
		o := w.outcomes[0]
		if t.destroy > 0 {
			one = w.destroyWord(1)
		}
		word := map[stage]string{
			stageWorking: "is in progress", stageDone: one, stageUnchanged: "has no changes", stageLeft: "is left unchanged",
		}[o.stage]
		switch {
		case o.stage == stageFailed, o.stage == stageHeld:
			word, _ = o.needs()
		case o.notice == holdfast.ReasonStateWouldMove:
			word = reasonOf(o.notice).One
		case o.stage == stageLeft && o.cluster.Superseded != "":
			word = "is " + o.result
		}
		return markdown.Code(markdown.Shorten(o.cluster.Name, 63)) + " " + word
	}
	var parts []string
	add := func(n int, singular, several string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+singular)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, several))
		}
	}
	w.addNeeds(stageFailed, add)
	w.addNeeds(stageHeld, add)
	add(t.by[stageWorking], "is in progress", "are in progress")
	add(t.destroy, w.destroyWord(1), w.destroyWord(2))
	add(t.by[stageDone]-t.destroy, one, many)
	add(t.by[stageUnchanged], "has no changes", "have no changes")
	moves := reasonOf(holdfast.ReasonStateWouldMove)
	add(staying(w.outcomes), moves.One, moves.Many)
	add(t.by[stageLeft]-staying(w.outcomes), "is left unchanged", "are left unchanged")
	add(faults, "error in the files", "errors in the files")
	if alike, ok := strings.CutPrefix(strings.Join(parts, ", "), fmt.Sprintf("%d ", t.all)); ok && len(parts) == 1 {
		return markdown.Plural(t.all, "cluster") + " " + alike
	}
	return markdown.Plural(t.all, "cluster") + ": " + strings.Join(parts, ", ")
}

// addNeeds adds what the clusters of a stage need, in the order in which they are
// shown; of more than three needs the others are counted together.
func (w *writer) addNeeds(s stage, add func(n int, singular, several string)) {
	const most = 3
	type need struct {
		one, many string
		n         int
	}
	var needs []need
	for _, o := range w.outcomes {
		if o.stage != s {
			continue
		}
		one, many := o.needs()
		i := slices.IndexFunc(needs, func(known need) bool { return known.one == one })
		if i < 0 {
			i, needs = len(needs), append(needs, need{one: one, many: many})
		}
		needs[i].n++
	}
	others := 0
	for i, known := range needs {
		if i >= most {
			others += known.n
			continue
		}
		add(known.n, known.one, known.many)
	}
	add(others, "is held for another reason", "are held for other reasons")
}

// destroyWord is the verb for n clusters whose documents are removed.
func (w *writer) destroyWord(n int) string {
	if w.r.merged() {
		return oneOrMany(n, "is", "are") + " destroyed"
	}
	return "will be destroyed"
}

// countsPhrase is what all plans together do, most dangerous first.
func countsPhrase(c holdfast.Counts, done bool) string {
	if c.Zero() {
		return ""
	}
	return " · " + countsInWords(c, done)
}

type countPart struct {
	verb, done string
	n          int
	loses      bool
}

func countParts(c holdfast.Counts) []countPart {
	all := []countPart{
		{"to replace", "replaced", c.Replace, true},
		{"to destroy", "destroyed", c.Delete, true},
		{"to forget", "forgotten", c.Forget, true},
		{"to change", "changed", c.Update, false},
		{"to create", "created", c.Create, false},
		{"to import", "imported", c.Import, false},
		{"to move", "moved", c.Move, false},
	}
	all = slices.DeleteFunc(all, func(p countPart) bool { return p.n == 0 })
	if c.Outputs > 0 && len(all) == 0 {
		noun := oneOrMany(c.Outputs, "output", "outputs")
		all = append(all, countPart{noun + " to change", noun + " changed", c.Outputs, false})
	}
	return all
}

// countsInWords is "1 to replace, 2 to create", or "1 replaced, 2 created".
func countsInWords(c holdfast.Counts, done bool) string {
	var parts []string
	for _, part := range countParts(c) {
		verb := part.verb
		if done {
			verb = part.done
		}
		parts = append(parts, fmt.Sprintf("%d %s", part.n, verb))
	}
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}

// next is what can be done with the whole; commands are named once.
func (w *writer) next() {
	if w.r.merged() || w.r.PullRequest.Reason != "" || len(w.outcomes)+len(w.impacts) == 0 {
		return
	}
	samples, waiting := samplesOf(w.impacts)
	working := w.total.by[stageWorking] + waiting
	var parts, all []string
	switch {
	case w.total.by[stageFailed] > 0 || len(w.r.PullRequest.Faults) > 0 || unfit(w.impacts):
		if w.inCode() {
			parts = append(parts, "correct it and push")
		}
	case working > 0:
		parts = append(parts, "this comment is updated when the plans are done")
	default:
		if w.total.by[stageDone]+staying(w.outcomes) > 0 {
			merge := w.mergeWord()
			if len(missingGates(w.outcomes)) > 0 {
				merge = "get what is required, then " + merge
			}
			parts = append(parts, merge)
		}
		parts = append(parts, releaseWords(w.impacts)...)
		if planMore(w.impacts) {
			all = append(all, "plan each cluster: "+planAll)
		}
	}
	if len(w.outcomes)+samples > staying(w.outcomes) {
		parts = append(parts, "plan again: "+command(holdfast.VerbPlan))
	}
	if len(w.outcomes) > 1 {
		parts = append(parts, "one cluster only: "+command(holdfast.VerbPlan, w.outcomes[0].cluster.Name))
	}
	parts = append(parts, all...)
	if working > 0 {
		parts = append(parts, "stop: "+command(holdfast.VerbCancel))
	}
	if len(parts) == 0 {
		return
	}
	w.line("**Next:** " + strings.Join(parts, " · ") + "\n")
}

// inCode reports whether something has failed that a push may fix.
func (w *writer) inCode() bool {
	broken := func(o outcome) bool { return o.stage == stageFailed && (o.failure == nil || inCode[o.failure.Cause]) }
	return len(w.r.PullRequest.Faults) > 0 || slices.ContainsFunc(w.outcomes, broken) || slices.ContainsFunc(w.impacts, func(v *impactView) bool {
		return v.Fault != "" || v.refusedBy(rollout.ReachMerge) > 0 || slices.ContainsFunc(v.failures(), broken)
	})
}

// mergeWord says what a merge will do.
func (w *writer) mergeWord() string {
	manual, confirm := 0, 0
	for _, o := range w.outcomes {
		if o.cluster.Document.Apply.Manual || slices.Contains(confirmed, o.notice) {
			manual++
		}
		if o.notice == holdfast.ReasonMassDeletion {
			confirm++
		}
	}
	switch apply := w.total.by[stageDone] + w.total.by[stageUnchanged] - w.total.destroy; {
	case apply <= 0 && confirm > 0 && confirm == w.total.destroy:
		return "merge, then " + command(holdfast.VerbApply) + " to destroy"
	case apply <= 0 && w.total.destroy > 0:
		return "merge to destroy"
	case apply <= 0 && staying(w.outcomes) > 0:
		return "merge, then `holdfast state migrate`"
	case w.total.destroy > 0 && manual == 0:
		return "merge to apply and destroy"
	case manual == 0:
		return "merge to apply"
	case manual == len(w.outcomes):
		return "merge, then " + command(holdfast.VerbApply)
	default:
		return fmt.Sprintf("merge to apply (%s afterwards, by %s)", markdown.Plural(manual, "cluster"), command(holdfast.VerbApply))
	}
}

// footer is what people look up later, and what is missing.
func (w *writer) footer() {
	switch {
	case w.dropped || w.level.name != "":
		missing := orElse(w.level.name, "some lists")
		w.line("_Shortened to fit a comment. Left out: " + missing + ". " + w.wholePlan() + "_\n")
	case w.clipped:
		w.line("_Long values are cut around what differs. " + w.wholePlan() + "_\n")
	}
	seen := map[string]bool{}
	var facts []string
	all := slices.Clone(w.outcomes)
	for _, v := range w.impacts {
		for _, e := range v.effects {
			all = append(all, e.outcomes...)
		}
	}
	for _, o := range all {
		for _, fact := range runFacts(o.run) {
			if !seen[fact] {
				seen[fact] = true
				facts = append(facts, fact)
			}
		}
	}
	if len(facts) > 6 {
		facts = append(facts[:6], "…")
	}
	if took := longestPlan(all); took > 0 {
		facts = append(facts, "planned in "+took.String())
	}
	for i, fact := range facts {
		facts[i] = markdown.HTML(fact)
	}
	if len(facts) > 0 {
		w.line("<sub>" + strings.Join(facts, " · ") + "</sub>")
	}
}

// longestPlan is how long the slowest plan took, in whole seconds; zero if something is
// not planned yet, or applied already.
func longestPlan(outcomes []outcome) (longest time.Duration) {
	for _, o := range outcomes {
		run := o.run
		if run == nil || run.Kind != holdfast.RunPlan || !run.Status.Done() || run.StartedAt.IsZero() {
			return 0
		}
		longest = max(longest, run.FinishedAt.Sub(run.StartedAt).Round(time.Second))
	}
	return longest
}

// wholePlan says where all of a plan can be read.
func (w *writer) wholePlan() string {
	if w.r.LogURL != nil {
		return "The full plan: the link of its run, or `holdfast describe run ID --plan`."
	}
	return "The full plan: `holdfast describe run ID --plan`."
}

// runFacts are of others' making.
func runFacts(run *holdfast.Run) []string {
	if run == nil {
		return nil
	}
	var facts []string
	if run.Template != "" {
		facts = append(facts, markdown.Shorten(strings.Replace(run.Template, "@", " ", 1), 80))
	}
	if run.EngineName != "" {
		facts = append(facts, markdown.Shorten(run.EngineName+" "+run.EngineVersion, 60))
	}
	return facts
}
