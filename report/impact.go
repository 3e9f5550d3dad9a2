package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

// Impact is what a change of a template would do to the clusters that are made
// from it, with the plans that were made to see it.
type Impact struct {
	rollout.Impact
	// Groups are those of rollout.Impact with their samples; nil: all samples
	// are among the pull request's clusters.
	Groups []ImpactGroup
	// Over is how many clusters are in groups of which none is planned, because
	// there are more groups than are planned automatically.
	Over int
	All  bool // all clusters that would change are planned, not only samples
}

// ImpactGroup is a group of clusters whose root modules would change in the same
// way.
type ImpactGroup struct {
	rollout.ImpactGroup
	// Samples are those of its clusters that are planned for it. Samples of its
	// names among the pull request's clusters are samples too.
	Samples []Cluster
}

// impactView is an Impact as people see it: by what would happen.
type impactView struct {
	Impact
	effects []*effect // most dangerous first

	total     int // clusters that are made from the template
	members   int // of them, those whose root modules change
	planned   int // of members: those whose own plans are known
	groups    int
	seen      int // of groups: those with a known plan
	samples   int
	waiting   int // of samples: those whose plans are still to come
	changing  int // of planned
	replaced  int // of changing: a control plane is replaced
	destroyed int // of changing: one is destroyed
	unplanned int // of members: nobody has planned, or is planning, these themselves
	merges    int // of members: applied by the merge itself
}

// impactsOf puts the impacts of a pull request together with the plans of it.
func impactsOf(r PullRequest, ordinary []outcome) []*impactView {
	if len(r.Impacts) == 0 {
		return nil
	}
	known := map[string]outcome{}
	for _, c := range r.Clusters {
		if c.Sample {
			known[c.Name] = sampleOutcome(r, c)
		}
	}
	for _, o := range ordinary {
		known[o.cluster.Name] = o
	}
	views := make([]*impactView, len(r.Impacts))
	for i, impact := range r.Impacts {
		views[i] = viewImpact(r, impact, known)
	}
	return views
}

func viewImpact(r PullRequest, impact Impact, known map[string]outcome) *impactView {
	if impact.Groups == nil {
		for _, g := range impact.Impact.Groups {
			impact.Groups = append(impact.Groups, ImpactGroup{ImpactGroup: g})
		}
	}
	impact.All = impact.All || r.PullRequest.AllSamples
	v := &impactView{Impact: impact, groups: len(impact.Groups), total: impact.Same + len(impact.Refused)}
	at := map[string]*effect{}
	for _, g := range impact.Groups {
		own := map[string]outcome{}
		for _, c := range g.Samples {
			own[c.Name] = sampleOutcome(r, c)
		}
		for _, c := range g.Clusters {
			// What the merge makes of a cluster is not what the template would.
			if o, ok := known[c.Name]; ok && (o.cluster.Sample || c.Reach == rollout.ReachMerge) {
				own[c.Name] = o
			}
		}
		v.addGroup(g, own, at)
	}
	for _, e := range v.effects {
		e.sort()
		v.unplanned += e.unplanned()
		if e.known() && e.rank != rankUnchanged {
			v.changing += len(e.outcomes)
		}
		if slices.Contains(e.planes, holdfast.ActionReplace) {
			v.replaced += len(e.outcomes)
		}
		if slices.Contains(e.planes, holdfast.ActionDelete) {
			v.destroyed += len(e.outcomes)
		}
	}
	slices.SortStableFunc(v.effects, func(a, b *effect) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(len(b.clusters), len(a.clusters)), strings.Compare(a.key, b.key))
	})
	return v
}

// addGroup adds each cluster of a group to what happens to it: by its own plan,
// or by that of another of the group.
func (v *impactView) addGroup(g ImpactGroup, own map[string]outcome, at map[string]*effect) {
	v.total += len(g.Clusters)
	v.members += len(g.Clusters)
	effects := make(map[string]effect, len(own))
	taken := unplannedEffect() // what those without a plan count as
	seen := false
	for _, name := range sortedNames(own) {
		o := own[name]
		if o.cluster.Sample {
			v.samples++
			if o.stage == stageWorking {
				v.waiting++
			}
		}
		e := effectOf(o)
		effects[name] = e
		if e.exemplary() > taken.exemplary() {
			taken = e
		}
		seen = seen || e.known()
	}
	if seen {
		v.seen++
	}
	counts := map[string]int{}
	for _, c := range g.Clusters {
		e, planned := effects[c.Name]
		if !planned || e.rank == rankUnplanned {
			e, planned = taken, false
		}
		to := at[e.key]
		if to == nil {
			to = &effect{rank: e.rank, key: e.key, phrases: e.phrases, planes: e.planes}
			at[e.key] = to
			v.effects = append(v.effects, to)
		}
		if c.Reach == rollout.ReachMerge {
			v.merges++
		}
		to.clusters = append(to.clusters, c)
		counts[e.key]++
		if planned {
			to.outcomes = append(to.outcomes, own[c.Name])
			if e.known() {
				v.planned++
			}
		}
	}
	for key, n := range counts {
		at[key].addRoot(g.Changes, n)
		at[key].groups++
	}
}

func sortedNames(outcomes map[string]outcome) []string {
	names := make([]string, 0, len(outcomes))
	for name := range outcomes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sampleOutcome is what is known of a sample. Nothing waits for a person, as
// nothing is going to be applied.
func sampleOutcome(r PullRequest, c Cluster) outcome {
	c.Sample = true
	// Its run may be of a revision of another repository.
	open := PullRequest{Now: r.Now}
	open.PullRequest.Reason = r.PullRequest.Reason
	o := plannedOutcome(open, c)
	o.notice = ""
	if o.stage == stageHeld || o.stage == stageWorking && r.merged() {
		o.plan = nil
		return o.as(stageLeft, "❔", "not planned")
	}
	return o
}

// icon shows how much attention the change of a template deserves.
func (v *impactView) icon() string {
	worst := rankUnchanged
	if len(v.effects) > 0 {
		worst = v.effects[0].rank
	}
	switch {
	case v.Fault != "" || v.refusedBy(rollout.ReachMerge) > 0 || v.failed() > 0:
		return "❌"
	case worst >= rankDestroys:
		return "🛑"
	case len(v.Refused) > 0, len(v.Unseen) > 0:
		return "⚠️"
	case v.changing > 0:
		return "🔵"
	case v.unplanned > 0:
		return "❔"
	default:
		return "✅"
	}
}

func (v *impactView) refusedBy(reach rollout.ImpactReach) int {
	n := 0
	for _, refused := range v.Refused {
		if refused.Reach == reach {
			n++
		}
	}
	return n
}

// failed counts the plans that failed.
func (v *impactView) failed() int {
	n := 0
	for _, o := range v.failures() {
		if o.cluster.Sample {
			n++
		}
	}
	return n
}

func (v *impactView) failures() []outcome {
	for _, e := range v.effects {
		if e.rank == rankFailed {
			return e.outcomes
		}
	}
	return nil
}

// unseen counts the groups of which no plan is known or still to come, and their
// clusters.
func (v *impactView) unseen() (groups, clusters int) {
	for _, e := range v.effects {
		if e.rank == rankUnplanned {
			return e.groups, len(e.clusters)
		}
	}
	return 0, 0
}
