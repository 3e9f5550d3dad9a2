package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// rank is how much attention what happens to a cluster deserves.
type rank int

const (
	rankUnchanged rank = iota
	rankWorking        // being planned
	rankUnplanned
	rankChanges
	rankDestroys // or forgets: something is lost
	rankFailed   // its plan failed
	rankData     // something that keeps data is destroyed or replaced
	rankCluster  // a control plane is
)

// effect is what a change of a template does to some clusters, by plans that may be
// shown as one.
type effect struct {
	rank     rank
	key      string
	phrases  []phrase
	clusters []rollout.ImpactCluster // planned or not; by reach, then name
	outcomes []outcome               // of those that are planned themselves; by name
	roots    []rootChange
	groups   int // that they are of

	planes []holdfast.ChangeAction // what happens to control planes: replace, delete

	differences []difference // between the plans of outcomes
}

// rootChange is what happens in the root modules of some clusters.
type rootChange struct {
	changes  []string
	clusters int
}

// phrase is "`module.kubernetes…node_pool` updated in place".
type phrase struct {
	address string // empty: words say it all
	words   string
	strong  bool
}

// known reports whether a plan says it.
func (e effect) known() bool {
	return e.rank == rankUnchanged || e.rank >= rankChanges && e.rank != rankFailed
}

// exemplary ranks an effect as the example for clusters that are not planned
// themselves: a known one, and the worst of these, is best.
func (e effect) exemplary() int {
	switch {
	case e.known():
		return 10 + int(e.rank)
	case e.rank == rankWorking:
		return 2
	case e.rank == rankFailed:
		return 1
	default:
		return 0
	}
}

// shown is the index of the plan that represents all of them: the first sample that has
// one; -1 if there is none.
func (e *effect) shown() int {
	return slices.IndexFunc(e.outcomes, func(o outcome) bool { return o.cluster.Sample && o.plan != nil })
}

// planned are those of its outcomes that have a plan.
func (e *effect) planned() []outcome {
	return slices.DeleteFunc(slices.Clone(e.outcomes), func(o outcome) bool { return o.plan == nil || !o.plan.HasChanges() })
}

// unplanned is how many of its clusters have no plan of their own, made or being made:
// they are counted as those that have one.
func (e *effect) unplanned() int {
	if e.rank == rankUnplanned {
		return len(e.clusters)
	}
	return len(e.clusters) - len(e.outcomes)
}

// parted are its clusters that are planned themselves, or are being planned, and the
// others. What the others are is known without a plan.
func (e *effect) parted() (planned, others []rollout.ImpactCluster) {
	if e.rank == rankUnplanned {
		return e.clusters, nil
	}
	own := map[string]bool{}
	for _, o := range e.outcomes {
		own[o.cluster.Name] = true
	}
	for _, c := range e.clusters {
		if own[c.Name] {
			planned = append(planned, c)
		} else {
			others = append(others, c)
		}
	}
	return planned, others
}

// planeWords is what happens to control planes.
func (e *effect) planeWords() string {
	words := make([]string, len(e.planes))
	for i, action := range e.planes {
		words[i] = "control plane " + actionVerbs[action]
	}
	return strings.Join(words, ", ")
}

// addRoot adds what happens in the root modules of some clusters. Groups with the same
// words are shown together.
func (e *effect) addRoot(changes []string, clusters int) {
	for i, root := range e.roots {
		if slices.Equal(root.changes, changes) {
			e.roots[i].clusters += clusters
			return
		}
	}
	e.roots = append(e.roots, rootChange{changes: changes, clusters: clusters})
}

func (e *effect) sort() {
	slices.SortStableFunc(e.clusters, func(a, b rollout.ImpactCluster) int {
		return cmp.Or(cmp.Compare(reachOrder(a.Reach), reachOrder(b.Reach)), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(e.outcomes, func(a, b outcome) int { return strings.Compare(a.cluster.Name, b.cluster.Name) })
	slices.SortStableFunc(e.roots, func(a, b rootChange) int { return cmp.Compare(b.clusters, a.clusters) })
	e.differences = differencesOf(e.planned())
}

var reaches = []rollout.ImpactReach{rollout.ReachMerge, rollout.ReachRelease, rollout.ReachUpgrade, rollout.ReachManual}

func reachOrder(reach rollout.ImpactReach) int {
	if i := slices.Index(reaches, reach); i >= 0 {
		return i
	}
	return len(reaches)
}

// effectOf is what a plan does to its cluster.
func effectOf(o outcome) effect {
	switch {
	case o.stage == stageFailed && !o.broken:
		return effect{rank: rankFailed, key: "failed", phrases: []phrase{{words: "plan failed", strong: true}}}
	case o.plan == nil && !o.counts.Zero():
		// Whether another plan of these numbers does the same is not known.
		return effectOfCounts(o.counts, "of "+o.cluster.Name)
	case o.stage == stageUnchanged:
		return unchangedEffect()
	case o.plan == nil || o.stale:
		return unknownEffect(o)
	case !o.plan.HasChanges():
		return unchangedEffect()
	case len(o.plan.Changes) == 0:
		return effectOfCounts(o.plan.Counts, planKey(o.plan, ownOf(o.cluster)))
	default:
		return effectOfChanges(o.plan.Changes, planKey(o.plan, ownOf(o.cluster)))
	}
}

func unchangedEffect() effect {
	return effect{rank: rankUnchanged, key: "unchanged", phrases: []phrase{{words: "no changes"}}}
}

func unknownEffect(o outcome) effect {
	if o.stage == stageWorking {
		return effect{rank: rankWorking, key: "working", phrases: []phrase{{words: "being planned"}}}
	}
	return unplannedEffect()
}

func unplannedEffect() effect {
	return effect{rank: rankUnplanned, key: "unplanned", phrases: []phrase{{words: "not planned"}}}
}

// effectOfCounts is for plans whose changes are not known here, or are of outputs
// only.
func effectOfCounts(counts holdfast.Counts, key string) effect {
	rank := rankChanges
	if counts.Replace+counts.Delete+counts.Forget > 0 {
		rank = rankDestroys
	}
	words := countsInWords(counts, false)
	if (counts == holdfast.Counts{Outputs: counts.Outputs}) {
		words = "changed in outputs only"
	}
	return effect{rank: rank, key: "counts " + key, phrases: []phrase{{words: words, strong: rank == rankDestroys}}}
}

var actionVerbs = map[holdfast.ChangeAction]string{
	holdfast.ActionReplace: "replaced", holdfast.ActionDelete: "destroyed", holdfast.ActionForget: "forgotten",
	holdfast.ActionUpdate: "updated in place", holdfast.ActionCreate: "created", holdfast.ActionImport: "imported",
	holdfast.ActionMove: "moved",
}

var actionOrder = []holdfast.ChangeAction{
	holdfast.ActionReplace, holdfast.ActionDelete, holdfast.ActionForget, holdfast.ActionUpdate, holdfast.ActionCreate,
	holdfast.ActionImport, holdfast.ActionMove,
}

// effectOfChanges says once what happens to all instances of a resource. Effects with
// the same words and different keys are two.
func effectOfChanges(changes []holdfast.ResourceChange, key string) effect {
	type kind struct {
		address string
		action  holdfast.ChangeAction
		danger  rank
	}
	seen := map[kind]bool{}
	var kinds []kind
	for _, c := range changes {
		k := kind{patternOf(c.Address), c.Action, rankOf(c)}
		if !seen[k] {
			seen[k] = true
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.danger, a.danger), cmp.Compare(slices.Index(actionOrder, a.action), slices.Index(actionOrder, b.action)),
			naturally(a.address, b.address), strings.Compare(string(a.action), string(b.action)))
	})
	e := effect{key: "plan " + key}
	for _, k := range kinds {
		e.rank = max(e.rank, k.danger)
		p := phrase{address: k.address, words: orElse(actionVerbs[k.action], markdown.Text(string(k.action))), strong: k.danger >= rankDestroys}
		if k.danger == rankCluster && !slices.Contains(e.planes, k.action) {
			e.planes = append(e.planes, k.action)
		}
		if k.danger == rankCluster {
			p.address, p.words = "", "control plane "+p.words
		}
		if !slices.Contains(e.phrases, p) {
			e.phrases = append(e.phrases, p)
		}
	}
	return e
}

func rankOf(c holdfast.ResourceChange) rank {
	switch {
	case !loses(c):
		return rankChanges
	case !c.Destroys(): // it is still there, without anything that manages it
		return rankDestroys
	case isControlPlane(c):
		return rankCluster
	case plandiff.DangerOf(c) != plandiff.DangerNone:
		return rankData
	default:
		return rankDestroys
	}
}

// isControlPlane distinguishes Kubernetes clusters from those of databases.
func isControlPlane(c holdfast.ResourceChange) bool {
	if plandiff.DangerOf(c) != plandiff.DangerCluster {
		return false
	}
	kubernetes := []string{"kubernetes", "container", "eks", "gke", "aks", "lke", "oke", "k8s", "k3s", "rke", "rke2", "openshift", "rosa", "kube", "sks"}
	return c.Type == "terraform_data" || c.Type == "null_resource" ||
		slices.ContainsFunc(strings.Split(strings.ToLower(c.Type), "_"), func(word string) bool { return slices.Contains(kubernetes, word) })
}

// patternOf is an address without its indices: module.a["x"].b.c[0] is
// module.a.b.c.
func patternOf(address string) string {
	var b strings.Builder
	index, quoted := false, false
	for i := 0; i < len(address); i++ {
		switch c := address[i]; {
		case quoted && c == '\\':
			i++
		case quoted:
			quoted = c != '"'
		case index && c == '"':
			quoted = true
		case index:
			index = c != ']'
		case c == '[':
			index = true
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// briefAddress is an address that fits a headline: the module and the resource's
// name, or its type if the name says nothing.
func briefAddress(address string) string {
	const most = 40
	parts := strings.Split(address, ".")
	if len(address) <= most || len(parts) < 4 || parts[0] != "module" {
		return markdown.Shorten(address, most)
	}
	name := parts[len(parts)-1]
	if slices.Contains([]string{"this", "main", "default", "self", "it", "all"}, name) {
		name = parts[len(parts)-2]
	}
	return markdown.Shorten("module."+parts[1]+"…"+name, most)
}

// markup is how phrases are written: in Markdown, or in HTML.
type markup struct {
	code func(string) string
	bold [2]string
}

var (
	asMarkdown = markup{markdown.Code, [2]string{"**", "**"}}
	asPlain    = markup{markdown.Code, [2]string{}} // Markdown that is bold already
	asHTML     = markup{func(s string) string { return "<code>" + markdown.HTML(s) + "</code>" }, [2]string{"<b>", "</b>"}}
)

// words says what happens in at most that many phrases.
func (e effect) words(m markup, most int, brief bool) string {
	phrases := e.phrases
	if len(phrases) > most+1 {
		phrases = phrases[:most]
	}
	parts := make([]string, 0, len(phrases)+1)
	for _, p := range phrases {
		part := p.words
		if p.address != "" {
			address := markdown.Shorten(p.address, 200)
			if brief {
				address = briefAddress(p.address)
			}
			part = m.code(address) + " " + part
		}
		if p.strong {
			part = m.bold[0] + part + m.bold[1]
		}
		parts = append(parts, part)
	}
	if more := len(e.phrases) - len(phrases); more > 0 {
		parts = append(parts, markdown.Plural(more, "more change"))
	}
	return strings.Join(parts, ", ")
}

func (e effect) icon() string {
	switch e.rank {
	case rankUnchanged:
		return "⚪"
	case rankWorking:
		return "⏳"
	case rankUnplanned:
		return "❔"
	case rankChanges:
		return "🔵"
	case rankFailed:
		return "❌"
	default:
		return "🛑"
	}
}
