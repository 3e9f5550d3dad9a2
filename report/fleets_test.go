package report_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/report"
)

const (
	ownName, ownRegion = "its-own-name", "its-own-region" // in the documents of a kind
	lossIcons          = "♻🔴👋"
	maxClasses         = 8
	fleetSeeds         = 10
)

// fleetScene makes fleets at random: clusters whose plans are of some kinds, with
// their own names, secrets and readings in them, and some too large to be shown.
type fleetScene struct {
	scene
	clusters []report.Cluster
	plans    []plandoc.Document // by cluster, without what is its own
	kinds    []int              // by cluster; below 0: it is no longer of its kind
	classes  int                // how many secrets and readings there may be
}

// newFleetScene draws 5 to 12 clusters, mostly of one kind.
func newFleetScene(t testing.TB, seed uint64) *fleetScene {
	t.Helper()
	s := &fleetScene{scene: scene{t, rand.New(rand.NewPCG(seed, 3))}, classes: []int{3, maxClasses}[seed%2]}
	n, apart := 5+s.r.IntN(8), seed%5 == 0
	kinds := make([]plandoc.Document, 1+s.r.IntN(3))
	if apart { // no two are alike, and of each there is more than fits a table
		n = 12
		kinds = make([]plandoc.Document, n)
	}
	for i := range kinds {
		kinds[i] = s.kind(fmt.Sprintf("k%d", i), apart)
	}
	for i := range n {
		kind := 0
		if apart {
			kind = i
		} else if s.r.IntN(3) == 0 {
			kind = s.r.IntN(len(kinds))
		}
		d := kinds[kind]
		d.Resources = slices.Clone(d.Resources)
		first := ownResource(d)
		first.After = plandoc.Value(strings.Replace(string(first.After), mark("secret-0").HMAC, mark(s.secret()).HMAC, 1))
		d.Reads = []plandoc.Read{{Address: d.Reads[0].Address, Value: s.reading()}}
		s.plans, s.kinds = append(s.plans, d), append(s.kinds, kind)
		s.clusters = append(s.clusters, s.planned(fmt.Sprintf("cluster-%02d", i), fmt.Sprintf("eu-%d", i%3), d))
	}
	return s
}

// secret and reading are of what the clusters of a kind differ in.
func (s *fleetScene) secret() string { return fmt.Sprintf("secret-%d", s.r.IntN(s.classes)) }

func (s *fleetScene) reading() plandoc.Value {
	return s.encoded(map[string]any{"body": fmt.Sprintf("read %d", s.r.IntN(s.classes))})
}

// ownResource is the resource that has something of each cluster in it.
func ownResource(d plandoc.Document) *plandoc.Resource {
	n := slices.IndexFunc(d.Resources, func(r plandoc.Resource) bool { return bytes.Contains(r.After, []byte(`"secret":`)) })
	return &d.Resources[n]
}

// kind is a plan of some clusters: now and then one of many resources, always if it is
// large, or of long values.
func (s *fleetScene) kind(prefix string, large bool) plandoc.Document {
	d := plandoc.Document{Version: plandoc.Version}
	n, long := []int{1 + s.r.IntN(4), 5 + s.r.IntN(30), 40 + s.r.IntN(80)}[s.r.IntN(3)], s.r.IntN(3) == 0
	if large {
		n = 30 + s.r.IntN(30)
		prefix += strings.Repeat("_long", 8+s.r.IntN(10))
	}
	for i := range n {
		name := fmt.Sprintf("%s_r%d", prefix, i)
		if s.r.IntN(4) == 0 {
			name = fmt.Sprintf("%s_row[%d]", prefix, i)
		}
		d.Resources = append(d.Resources, s.resource(name))
		if r := &d.Resources[i]; long && s.r.IntN(2) == 0 && r.After != nil {
			r.After = s.encoded(map[string]any{"id": "i", "p": strings.Repeat(fmt.Sprintf("line %d of it\n", i), 20+s.r.IntN(200)), "q": s.value()})
		}
	}
	d.Resources[0].Actions, d.Resources[0].Importing, d.Resources[0].Replace, d.Resources[0].Reason = []string{"update"}, nil, nil, ""
	d.Resources[0].Before = s.encoded(map[string]any{"id": "i", "name": "former", "secret": mark("former"), "tags": []any{"x"}})
	d.Resources[0].After = s.encoded(map[string]any{"id": "i", "name": ownName, "secret": mark("secret-0"), "tags": []any{ownRegion, ownName}})
	d.Reads = []plandoc.Read{{Address: "data.http." + prefix, Value: s.encoded(map[string]any{"body": "read 0"})}}
	d.Sort()
	return d
}

// planned is a cluster with a plan, in which it has its own name and region.
func (s *fleetScene) planned(name, region string, d plandoc.Document) report.Cluster {
	own := strings.NewReplacer(`"`+ownName+`"`, `"`+name+`"`, `"`+ownRegion+`"`, `"`+region+`"`)
	d.Resources = slices.Clone(d.Resources)
	for i := range d.Resources {
		if r := &d.Resources[i]; bytes.Contains(r.After, []byte(`"its-own-`)) {
			r.After = plandoc.Value(own.Replace(string(r.After)))
		}
	}
	if err := d.Validate(); err != nil {
		s.t.Fatal(err)
	}
	plan := plandiff.Plan(d, plandoc.Info{})
	return in(region, planned(name, &plan))
}

// change changes one thing in the plan of one cluster, and says what.
func (s *fleetScene) change() (cluster int, what string) {
	k := s.r.IntN(len(s.clusters))
	d := s.plans[k]
	d.Resources, d.Reads, d.Outputs = slices.Clone(d.Resources), slices.Clone(d.Reads), slices.Clone(d.Outputs)
	first, one := ownResource(d), &d.Resources[s.r.IntN(len(d.Resources))]
	swap := func(old, other string) {
		first.After = plandoc.Value(strings.Replace(string(first.After), old, other, 1))
	}
	other := s.clusters[(k+1)%len(s.clusters)]
	switch s.r.IntN(9) {
	case 0:
		what = "name"
		swap(`"name":"`+ownName, `"name":"`+other.Name)
	case 1:
		what = "name in a list"
		swap(`"`+ownName+`"]`, `"`+other.Name+`"]`)
	case 2:
		what = "region"
		swap(ownRegion, other.Document.Region)
	case 3:
		first.After = plandoc.Value(hmacOf.ReplaceAllString(string(first.After), mark(s.secret()).HMAC))
		if s.parts(k, first.After) {
			what = "secret"
		}
	case 4:
		what, d.Reads[0].Value = "read", s.reading()
	case 5:
		what, one.Provider = "provider", "registry.example.com/hashicorp/aws"
	case 6:
		what, d.Resources = "resource", append(d.Resources, s.resource(fmt.Sprintf("more_%d", len(d.Resources))))
	case 7:
		if one == first {
			break
		}
		what, *one = "resource gone", plandoc.Resource{
			Address: one.Address, Type: one.Type, Provider: one.Provider, Actions: []string{"delete"}, Before: s.object(),
		}
	case 8:
		what, d.Outputs = "output", append(d.Outputs, s.output(fmt.Sprintf("more_%d", len(d.Outputs))))
	}
	if what != "secret" && what != "read" && what != "" {
		s.kinds[k] = -1
	}
	d.Sort()
	c := &s.clusters[k]
	was := c.Summary.Digest
	s.plans[k], *c = d, s.planned(c.Name, c.Document.Region, d)
	if c.Summary.Digest == was {
		what = "" // it is the same by chance
	}
	return k, what
}

// hmacOf finds what stands for the secret in what is new of a resource.
var hmacOf = regexp.MustCompile(hmacs())

func hmacs() string {
	var all []string
	for i := range maxClasses {
		all = append(all, regexp.QuoteMeta(mark(fmt.Sprintf("secret-%d", i)).HMAC))
	}
	return strings.Join(all, "|")
}

// parts reports whether another secret of a cluster makes a difference: it leaves one of
// its group that has the former, or joins one that has the new one. Of what nobody
// else has only comparing tells anything.
func (s *fleetScene) parts(k int, after plandoc.Value) bool {
	was, is := hmacOf.FindString(string(ownResource(s.plans[k]).After)), hmacOf.FindString(string(after))
	for i, d := range s.plans {
		if has := hmacOf.FindString(string(ownResource(d).After)); i != k && s.kinds[k] >= 0 && s.kinds[i] == s.kinds[k] && (has == was) != (has == is) {
			return true
		}
	}
	return false
}

// TestEachDifferenceInAFleetIsShown: of many clusters, too, whatever else one of them
// would do changes the comment, or that says that it is shortened, and where all of it
// is; and with a status of success nothing that is lost is missing.
func TestEachDifferenceInAFleetIsShown(t *testing.T) {
	t.Parallel()

	shortened, groups := 0, 0
	for seed := range uint64(fleetSeeds) {
		s := newFleetScene(t, seed)
		comment := report.Comment(pullRequest(s.clusters...))
		for range 3 { // one after the other, in one fleet
			s.clusters = slices.Clone(s.clusters)
			k, what := s.change()
			r, before := pullRequest(s.clusters...), comment
			comment = report.Comment(r)
			short := strings.Contains(comment, "_Shortened to fit a comment. Left out: ") && strings.Contains(comment, "`holdfast describe run ID --plan`")
			elsewhere := short || what == "read" && strings.Contains(comment, "; `holdfast describe run ID --plan` shows each")
			if what != "" && before == comment && !elsewhere {
				t.Errorf("seed %d: another %s of cluster %d is not in the comment:\n%s", seed, what, k, comment)
			}
			if short {
				shortened++
			}
			if strings.Contains(comment, " with the same plan") {
				groups++
			}
			if report.PlanStatus(r).State == holdfast.StatusSuccess {
				lossesShown(t, seed, r, comment)
			}
		}
	}
	if shortened < 3 || groups < fleetSeeds {
		t.Errorf("of %d comments %d are shortened, and %d have groups", 3*fleetSeeds, shortened, groups)
	}
}

// lossesShown checks that all that is destroyed, replaced or forgotten is in a comment,
// by its address or in a row of them.
func lossesShown(t *testing.T, seed uint64, r report.PullRequest, comment string) {
	t.Helper()
	for _, c := range r.Clusters {
		for _, change := range c.Summary.Changes {
			switch change.Action {
			case holdfast.ActionDelete, holdfast.ActionReplace, holdfast.ActionForget:
				if !lostIn(comment, change.Address) && !inARow(comment, change.Address) {
					t.Errorf("seed %d: %s of %s is not in the comment:\n%s", seed, change.Address, c.Name, comment)
					return // there may be thousands
				}
			default:
			}
		}
		if !strings.Contains(comment, "`"+c.Name+"`") && !strings.Contains(comment, "<b>"+c.Name+"</b>") {
			t.Errorf("seed %d: %s is not in the comment:\n%s", seed, c.Name, comment)
		}
	}
}

// lostIn reports whether a line of a comment has an address and a sign of loss.
func lostIn(comment, address string) bool {
	for line := range strings.Lines(comment) {
		if strings.Contains(line, "`"+address+"`") && strings.ContainsAny(line, lossIcons) {
			return true
		}
	}
	return false
}

// inARow reports whether an address is inside of "`x[1–9, 12]`", in a row of what is lost.
func inARow(comment, address string) bool {
	before, number, ok := strings.Cut(strings.TrimSuffix(address, "]"), "[")
	at, err := strconv.Atoi(number)
	if !ok || err != nil {
		return false
	}
	for line := range strings.Lines(comment) {
		_, found, ok := strings.Cut(line, "`"+before+"[")
		if !ok || !strings.ContainsAny(line, lossIcons) {
			continue
		}
		numbers, _, _ := strings.Cut(found, "]`")
		for part := range strings.SplitSeq(numbers, ", ") {
			first, last, several := strings.Cut(part, "–")
			if !several {
				last = first
			}
			from, _ := strconv.Atoi(first)
			to, err := strconv.Atoi(last)
			if err == nil && from <= at && at <= to {
				return true
			}
		}
	}
	return false
}
