package impact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// fleet has records by name.
type fleet struct {
	Store
	records map[string]holdfast.ClusterRecord
	fails   error
}

func (f fleet) Clusters(_ context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	var out []holdfast.ClusterRecord
	for _, name := range filter.Names {
		if rec, ok := f.records[name]; ok {
			out = append(out, rec)
		}
	}
	return out, f.fails
}

const repo = "acme/clusters"

// groupOf are clusters, each as "name reach" or "name reach environment".
func groupOf(clusters ...string) *group {
	g := &group{members: make(map[string]member)}
	for _, text := range clusters {
		words := append(strings.Fields(text), "production")
		name := words[0]
		g.Clusters = append(g.Clusters, rollout.ImpactCluster{Name: name, Repo: repo, Reach: rollout.ImpactReach(words[1])})
		doc := document.Document{Cluster: holdfast.Cluster{Name: name, Environment: words[2]}}
		g.members[name] = member{
			user:   templateUser{snapshot: snapshot{cat: &catalog.Catalog{Repo: repo}}, doc: doc},
			coming: words[1] == string(rollout.ReachRelease),
		}
	}
	return g
}

func applied(name string) holdfast.ClusterRecord {
	return holdfast.ClusterRecord{Name: name, Owner: repo, Applied: holdfast.Applied{Run: "run-1"}}
}

// The budget of samples is spent on groups, and never on what a change of a template
// must not reach.
func TestSamples(t *testing.T) {
	t.Parallel()
	faulty, foreign, gone := applied("a2"), applied("a2"), applied("a1")
	faulty.Desired.Faults = holdfast.Faults{{Message: "no"}}
	foreign.Owner = "acme/other"
	gone.Deletion = &holdfast.Deletion{}
	all := []holdfast.ClusterRecord{applied("a2"), applied("b1")}
	two := []*group{groupOf("a1 manual", "a2 manual"), groupOf("b1 upgrade")}
	for name, test := range map[string]struct {
		repo    Repository
		groups  []*group
		records []holdfast.ClusterRecord
		former  string
		own     string
		all     bool
		want    string
	}{
		"one of each, applied ones first": {Repository{Samples: 10}, two, all, "", "", false, "a2 b1"},
		"the one that was planned before": {Repository{Samples: 10}, two, all, "a1", "", false, "a1 b1"},
		"as far as the budget goes":       {Repository{Samples: 1}, two, all, "", "", false, "a2"},
		"all of them, if asked for":       {Repository{Samples: 1}, two, all, "", "", true, "a1 a2 b1"},
		"none":                            {Repository{Samples: -1}, two, all, "", "", true, ""},
		"not what the merge applies":      {Repository{Samples: 10}, []*group{groupOf("m1 merge", "a2 manual")}, all, "", "", false, "a2"},
		"whose groups come last":          {Repository{Samples: 1}, []*group{groupOf("m1 merge", "a2 manual"), groupOf("b1 manual")}, all, "", "", false, "b1"},
		"not what is changed otherwise":   {Repository{Samples: 10}, two, all, "", "b1", false, "a2"},
		"not in every environment":        {Repository{Samples: 10, SampleEnvironments: []string{"dev*"}}, []*group{groupOf("a1 manual", "a2 manual dev-eu")}, nil, "", "", false, "a2"},
		"nor if asked for all":            {Repository{Samples: 10, SampleEnvironments: []string{"dev*"}}, two, all, "", "", true, ""},
		"not at fault":                    {Repository{Samples: 10}, two[:1], []holdfast.ClusterRecord{faulty}, "", "", false, "a1"},
		"not of another repository":       {Repository{Samples: 10}, two[:1], []holdfast.ClusterRecord{foreign}, "", "", true, "a1"},
		"at fault until the release":      {Repository{Samples: 10}, []*group{groupOf("a2 release")}, []holdfast.ClusterRecord{faulty}, "", "", false, "a2"},
		"not as applied what is gone":     {Repository{Samples: 10}, two[:1], []holdfast.ClusterRecord{gone, applied("a2")}, "", "", false, "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet{records: make(map[string]holdfast.ClusterRecord)}
			for _, rec := range test.records {
				f.records[rec.Name] = rec
			}
			rec := holdfast.PullRequestRecord{AllSamples: test.all}
			if test.own != "" {
				rec.Clusters = []holdfast.PullRequestCluster{{Name: test.own}}
			}
			k := NewKeeper(Options{Store: f})
			got, err := k.samples(t.Context(), test.repo, test.groups, []holdfast.PullRequestCluster{{Name: test.former}}, &rec)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range got {
				if !c.Sample || c.Repo != repo {
					t.Errorf("%s would be applied: %+v", c.Name, c)
				}
				names = append(names, c.Name)
			}
			if words := strings.Join(names, " "); words != test.want {
				t.Errorf("samples are %q, want %q", words, test.want)
			}
		})
	}
	broken := errors.New("no records")
	if _, err := NewKeeper(Options{Store: fleet{fails: broken}}).samples(t.Context(), Repository{Samples: 1}, two, nil, &holdfast.PullRequestRecord{}); !errors.Is(err, broken) {
		t.Errorf("records that cannot be read: %v", err)
	}
}

// All of a large group are not planned without a bound.
func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	var clusters []string
	for i := range samplesMost + 50 {
		clusters = append(clusters, fmt.Sprintf("c%04d manual", i))
	}
	got, err := NewKeeper(Options{Store: fleet{}}).samples(t.Context(), Repository{Samples: 1},
		[]*group{groupOf("a1 manual"), groupOf(clusters...)}, nil, &holdfast.PullRequestRecord{AllSamples: true})
	if err != nil || len(got) != samplesMost {
		t.Errorf("%d are planned, %v, want %d", len(got), err, samplesMost)
	}
}

// How a cluster would come to a new version: reviewers read it first.
func TestReach(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepared string
		ref      holdfast.TemplateRef
		want     rollout.ImpactReach
	}{
		"a folder":               {"1.1.0", holdfast.TemplateRef{Path: "../kubernetes"}, rollout.ReachMerge},
		"the very version":       {"1.1.0", holdfast.TemplateRef{Name: "k", Version: "1.1.0"}, rollout.ReachRelease},
		"within its upgrades":    {"1.1.0", holdfast.TemplateRef{Name: "k", Version: "1.0.0", Upgrades: "~> 1.0"}, rollout.ReachUpgrade},
		"beyond them":            {"2.0.0", holdfast.TemplateRef{Name: "k", Version: "1.0.0", Upgrades: "~> 1.0"}, rollout.ReachManual},
		"older than what it has": {"1.1.0", holdfast.TemplateRef{Name: "k", Version: "1.2.0", Upgrades: "~> 1.0"}, rollout.ReachManual},
		"no upgrades":            {"1.1.0", holdfast.TemplateRef{Name: "k", Version: "1.0.0"}, rollout.ReachManual},
		"nothing is prepared":    {"", holdfast.TemplateRef{Name: "k", Version: "1.0.0", Upgrades: "~> 1.0"}, rollout.ReachManual},
	} {
		a := &assessor{version: test.prepared}
		if got := a.reach(holdfast.Cluster{Template: &test.ref}); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// What moves first is read first, then what is larger; the order is the same each time.
func TestSorted(t *testing.T) {
	t.Parallel()
	a := &assessor{groups: map[holdfast.Digest]*group{
		"1": groupOf("z manual", "y manual", "x manual"), "2": groupOf("b manual"), "3": groupOf("a manual"),
		"4": groupOf("d upgrade"), "5": groupOf("m manual", "c merge"),
	}, impact: &rollout.Impact{}}
	var got []string
	for _, g := range a.sorted() {
		got = append(got, g.Clusters[0].Name)
	}
	if want := []string{"c", "d", "x", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("sorted as %q, want %q", got, want)
	}
}
