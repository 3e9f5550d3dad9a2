package runners

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// verdict is what a tree means for the records.
type verdict struct {
	change runnerspec.Change
	trail  []holdfast.AuditEntry
	faults holdfast.Faults // of the tree's documents, and of those that are missing, by position
	news   bool            // something is in force that was not before
}

// judging is a tree while it is judged.
type judging struct {
	*Keeper
	tree
	known
	verdict
	// of are the faults of each document, by its number.
	of []holdfast.Faults
	// next are the documents that are at fault for states alone, by their numbers.
	next map[int]bool
	// names are those of runners that are in force after this.
	names map[string]bool
}

// judge holds a tree's documents to one another and to what is on record.
func (k *Keeper) judge(ctx context.Context, said tree, is known) (verdict, error) {
	j := &judging{Keeper: k, tree: said, known: is, of: make([]holdfast.Faults, len(said.docs)), names: map[string]bool{holdfast.LocalRunner: true}, next: make(map[int]bool)}
	j.change.Unwatched = j.unwatched()
	for i, doc := range said.docs {
		j.of[i] = slices.Clone(doc.Faults)
		j.owned(i, doc)
	}
	j.claimedTwice()
	j.immutable()
	for _, rec := range is.runners {
		j.names[rec.Document.Name] = true
	}
	for i, doc := range said.docs {
		if doc.Runner != nil && len(j.of[i]) == 0 {
			j.names[doc.Name()] = true
		}
	}
	j.unknownRunners()
	j.equalRules()
	if err := j.statesStay(ctx); err != nil {
		return j.verdict, err
	}
	j.records()
	j.removed()
	j.faults = slices.Concat(append(j.of, said.unnamed, j.faults)...)
	decode.SortFaults(j.faults)
	return j.verdict, nil
}

func (j *judging) unwatched() (repos []string) {
	add := func(repo string) {
		if !slices.Contains(j.opts.Repositories, repo) && !slices.Contains(repos, repo) {
			repos = append(repos, repo)
		}
	}
	for _, rec := range j.runners {
		add(rec.Place.Repo)
	}
	for _, rec := range j.rules {
		add(rec.Place.Repo)
	}
	return repos
}

// place is where the document in force is that has a document's kind and name.
func (j *judging) place(doc runnerdoc.Document) (at runnerspec.DocumentPlace, ok bool) {
	if doc.Rule != nil {
		rec, ok := j.rule(doc.Name())
		return rec.Place, ok
	}
	rec, ok := j.runner(doc.Name())
	return rec.Place, ok
}

// ours reports whether a name on record is of this repository, or no longer anybody's.
func (j *judging) ours(at runnerspec.DocumentPlace) bool {
	return at.Repo == j.repo || slices.Contains(j.change.Unwatched, at.Repo)
}

// owned finds fault with what the repository may not define.
func (j *judging) owned(i int, doc runnerdoc.Document) {
	if err := j.opts.Allow(j.repo, doc); err != nil {
		j.of[i] = append(j.of[i], doc.Fault(err.Error(), "allow it under repositories[].allow in holdfast.yaml, or move the document", "metadata", "name"))
		return
	}
	if at, known := j.place(doc); known && !j.ours(at) {
		j.of[i] = append(j.of[i], doc.Fault(
			fmt.Sprintf("%s %q belongs to repository %s, which defined it first", wordOf(doc.Kind()), doc.Name(), at.Repo),
			"give it another name", "metadata", "name"))
	}
}

// wordOf is a kind in a sentence.
func wordOf(kind string) string {
	if kind == decode.KindRunnerRule {
		return "runner rule"
	}
	return "runner"
}

func (j *judging) claimedTwice() {
	for i, doc := range j.docs {
		for n, other := range j.docs {
			if n != i && other.Kind() == doc.Kind() && other.Name() == doc.Name() {
				j.of[i] = append(j.of[i], doc.Fault(
					fmt.Sprintf("the name %q is claimed twice: also at %s", doc.Name(), other.Fault("", "", "metadata", "name").Position()),
					"give one of the two another metadata.name", "metadata", "name"))
				break
			}
		}
	}
}

func (j *judging) immutable() {
	for i, doc := range j.docs {
		if doc.Runner == nil || doc.Runner.Type == "" {
			continue
		}
		if rec, known := j.runner(doc.Name()); known && j.ours(rec.Place) && rec.Document.Type != doc.Runner.Type {
			j.of[i] = append(j.of[i], doc.Fault(
				fmt.Sprintf("the type of runner %q is %s and cannot become %s", doc.Name(), rec.Document.Type, doc.Runner.Type),
				"define a runner with another name, and move environments there: holdfast refresh runner", "spec", "type"))
		}
	}
}

func (j *judging) unknownRunners() {
	for i, doc := range j.docs {
		if doc.Rule == nil || len(j.of[i]) > 0 || j.names[doc.Rule.Runner] {
			continue
		}
		var names []string
		for name := range j.names {
			names = append(names, name)
		}
		hint := "define it, or name another one"
		if near := nearest.Of(doc.Rule.Runner, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		j.of[i] = append(j.of[i], doc.Fault(fmt.Sprintf("there is no runner %q", wording.Clip(doc.Rule.Runner)), hint, "spec", "runner"))
	}
}

// statesStay finds fault with runners that would have states elsewhere than these are: what is
// in them would be left behind. They come into force once the states are migrated.
func (j *judging) statesStay(ctx context.Context) error {
	for i, doc := range j.docs {
		if doc.Runner == nil || len(j.of[i]) > 0 {
			continue
		}
		rec, known := j.runner(doc.Name())
		if !known || !j.ours(rec.Place) || rec.Document.Storage.SameStore(doc.Runner.Storage) {
			continue
		}
		moves, err := j.moves(ctx, doc.Name(), doc.Runner.Storage)
		if err != nil {
			return err
		}
		if len(moves) == 0 {
			continue
		}
		fault := doc.Fault(fmt.Sprintf("%s: %s", holdfast.ReasonStateWouldMove, MovesText(moves)),
			"the last document stays in force until these are moved: holdfast state migrate CLUSTER", "spec", "storage")
		j.of[i], j.next[i] = append(j.of[i], fault), true
	}
	return nil
}

// moves are the states of a runner's environments that another storage would move.
func (j *judging) moves(ctx context.Context, runner string, to *holdfast.StateStorage) ([]holdfast.StateMigration, error) {
	var names []string
	for _, env := range j.environments {
		if env.Runner != runner {
			continue
		}
		clusters, err := j.clustersOf(ctx, env.EnvironmentKey)
		if err != nil {
			return nil, err
		}
		names = append(names, clusters...)
	}
	return j.opts.Moves(ctx, names, to)
}

// MovesText says in words which states would move.
func MovesText(moves []holdfast.StateMigration) string {
	const most = 3
	parts := make([]string, 0, len(moves))
	for _, m := range moves[:min(len(moves), most)] {
		parts = append(parts, fmt.Sprintf("the state of %s is %s and would be %s", m.Cluster, m.From, m.To))
	}
	if more := len(moves) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more would move", more))
	}
	return strings.Join(parts, "; ")
}

// scope is what a rule is about.
func scope(r runnerspec.Rule) holdfast.EnvironmentKey {
	return holdfast.EnvironmentKey{Project: r.Project, Name: r.Environment}
}

// equalRules finds fault with rules that are about the same: nobody could say which wins.
// The one that is in force stays so.
func (j *judging) equalRules() {
	type claim struct {
		at      string
		doc     int // -1: of another repository
		inForce bool
	}
	claims := make(map[holdfast.EnvironmentKey][]claim)
	for _, rec := range j.rules {
		if !j.ours(rec.Place) {
			at := fmt.Sprintf("%s:%d of repository %s", rec.Place.Path, rec.Place.Line, rec.Place.Repo)
			claims[scope(rec.Document)] = append(claims[scope(rec.Document)], claim{at: at, doc: -1, inForce: true})
		}
	}
	for i, doc := range j.docs {
		if doc.Rule == nil || len(j.of[i]) > 0 {
			continue
		}
		rec, known := j.rule(doc.Name())
		claims[scope(*doc.Rule)] = append(claims[scope(*doc.Rule)], claim{
			at: doc.Fault("", "", "metadata", "name").Position(), doc: i, inForce: known && scope(rec.Document) == scope(*doc.Rule),
		})
	}
	for about, all := range claims {
		kept := slices.IndexFunc(all, func(c claim) bool { return c.inForce })
		for n, c := range all {
			if len(all) < 2 || n == kept || c.doc < 0 {
				continue
			}
			other := all[cmp.Or(max(kept, 0), (n+1)%len(all))]
			if kept >= 0 {
				other = all[kept]
			}
			j.of[c.doc] = append(j.of[c.doc], j.docs[c.doc].Fault(
				fmt.Sprintf("two rules are about %s: also the one at %s", aboutText(about), other.at), "keep one", "metadata", "name"))
		}
	}
}

// aboutText is what a rule is about, in words.
func aboutText(about holdfast.EnvironmentKey) string {
	switch {
	case about.Project == "" && about.Name == "":
		return "all environments"
	case about.Project == "":
		return fmt.Sprintf("environment %s of all projects", about.Name)
	case about.Name == "":
		return fmt.Sprintf("all environments of project %s", about.Project)
	default:
		return "environment " + about.String()
	}
}

// records says what is to be on record of the tree's documents.
func (j *judging) records() {
	for i, doc := range j.docs {
		if at, known := j.place(doc); known && !j.ours(at) {
			continue
		}
		place := runnerspec.DocumentPlace{Repo: j.repo, Path: doc.Path, Line: doc.Line, Revision: j.revision}
		if doc.Rule != nil {
			j.recordRule(*doc.Rule, place, j.of[i])
		} else {
			j.recordRunner(*doc.Runner, place, j.of[i], j.next[i])
		}
	}
}

func (j *judging) recordRunner(is runnerspec.Runner, place runnerspec.DocumentPlace, faults holdfast.Faults, waits bool) {
	before, known := j.runner(is.Name)
	rec := runnerspec.Record{Document: is, Place: place, UpdatedAt: j.opts.Now().UTC()}
	if known {
		rec.Former = before.Leave(is, rec.UpdatedAt)
	}
	if len(faults) > 0 {
		if !known {
			return // what was never in force has no record
		}
		rec = before
		if rec.Faults, rec.Next = faults, nil; waits {
			rec.Next = &is
		}
		if slices.Equal(before.Faults, faults) && reflect.DeepEqual(before.Next, rec.Next) {
			return
		}
	} else if known && len(before.Faults) == 0 && reflect.DeepEqual(before.Document, is) && samePlace(before.Place, place) {
		return
	}
	j.change.Runners = append(j.change.Runners, rec)
	changed := !known || !reflect.DeepEqual(before.Document, rec.Document)
	j.told("runner", is.Name, known, changed, place, faults)
}

func (j *judging) recordRule(is runnerspec.Rule, place runnerspec.DocumentPlace, faults holdfast.Faults) {
	before, known := j.rule(is.Name)
	rec := runnerspec.RuleRecord{Document: is, Place: place, UpdatedAt: j.opts.Now().UTC()}
	if len(faults) > 0 {
		if !known || slices.Equal(before.Faults, faults) {
			return
		}
		rec = before
		rec.Faults = faults
	} else if known && len(before.Faults) == 0 && before.Document == is && samePlace(before.Place, place) {
		return
	}
	j.change.Rules = append(j.change.Rules, rec)
	j.told("runnerrule", is.Name, known, !known || before.Document != rec.Document, place, faults)
}

// samePlace reports whether a document is where it was: a revision that leaves it as it is
// makes no news.
func samePlace(a, b runnerspec.DocumentPlace) bool {
	a.Revision, b.Revision = "", ""
	return a == b
}

// told records in the audit trail what became of a document.
func (j *judging) told(kind, name string, known, changed bool, place runnerspec.DocumentPlace, faults holdfast.Faults) {
	action, detail := ".update", fmt.Sprintf("%s:%d of %s at %s", place.Path, place.Line, place.Repo, place.Revision.Short())
	switch {
	case len(faults) > 0:
		action, detail = ".refuse", "the last good document stays in force: "+faults[0].Error()
	case !known:
		action = ".create"
	case !changed:
		return // it was moved, or mended
	}
	j.news = j.news || changed
	j.trail = append(j.trail, holdfast.NewAuditEntry(j.opts.Now(), "", kind+action, name, detail))
}

// removed takes from the records what the tree no longer has, unless something needs it.
func (j *judging) removed() {
	for _, rec := range j.rules {
		if rec.Place.Repo == j.repo && !j.has(decode.KindRunnerRule, rec.Document.Name) && !j.spoiled(rec.Place.Path) {
			j.change.GoneRules = append(j.change.GoneRules, rec.Document.Name)
			j.trail = append(j.trail, holdfast.NewAuditEntry(j.opts.Now(), "", "runnerrule.remove", rec.Document.Name, "its document is gone at "+j.revision.Short()))
			j.news = true
		}
	}
	for _, rec := range j.runners {
		name := rec.Document.Name
		if rec.Place.Repo != j.repo || j.has(decode.KindRunner, name) || j.spoiled(rec.Place.Path) {
			continue
		}
		fault, needed := j.needed(rec)
		if needed {
			j.faults = append(j.faults, fault)
			if faults := (holdfast.Faults{fault}); !slices.Equal(rec.Faults, faults) {
				rec.Faults = faults
				j.change.Runners = append(j.change.Runners, rec)
				j.told("runner", name, true, false, rec.Place, faults)
			}
			continue
		}
		j.change.Gone = append(j.change.Gone, name)
		j.trail = append(j.trail, holdfast.NewAuditEntry(j.opts.Now(), "", "runner.remove", name, "its document is gone at "+j.revision.Short()))
	}
}

func (j *judging) has(kind, name string) bool {
	return slices.ContainsFunc(j.docs, func(doc runnerdoc.Document) bool { return doc.Kind() == kind && doc.Name() == name })
}

// needed is why a runner cannot go.
func (j *judging) needed(rec runnerspec.Record) (fault holdfast.Fault, needed bool) {
	name := rec.Document.Name
	var pinned, rules []string
	for _, env := range j.environments {
		if env.Runner == name {
			pinned = append(pinned, env.String())
		}
	}
	for _, rule := range j.rulesAfter() {
		if rule.Runner == name {
			rules = append(rules, rule.Name)
		}
	}
	fault = holdfast.Fault{File: rec.Place.Path}
	switch {
	case len(pinned) > 0:
		fault.Message = fmt.Sprintf("runner %q cannot be removed and stays in force: it has %s", name, few("environment", pinned))
		fault.Hint = fmt.Sprintf("for each: have a rule give it another runner, or delete its clusters; then holdfast refresh runner %s", pinned[0])
	case len(rules) > 0:
		fault.Message = fmt.Sprintf("runner %q cannot be removed and stays in force: it is named by %s", name, few("rule", rules))
		fault.Hint = "remove these rules, or have them name another runner"
	default:
		return fault, false
	}
	return fault, true
}

// rulesAfter are the rules that are in force after this.
func (j *judging) rulesAfter() []runnerspec.Rule {
	after := make(map[string]runnerspec.Rule)
	for _, rec := range j.rules {
		after[rec.Document.Name] = rec.Document
	}
	for _, rec := range j.change.Rules {
		after[rec.Document.Name] = rec.Document
	}
	for _, name := range j.change.GoneRules {
		delete(after, name)
	}
	rules := make([]runnerspec.Rule, 0, len(after))
	for _, rule := range after {
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b runnerspec.Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// few are some of many names, in words.
func few(what string, names []string) string {
	const most = 5
	shown := names
	if len(names) > most {
		shown = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
	}
	return wording.Count(len(names), what) + ", " + wording.Listed(shown)
}
