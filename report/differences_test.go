package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

// crew is clusters with one plan, and what each of them has to itself: texts that were
// read, and tokens.
type crew struct {
	clusters      []report.Cluster
	reads, tokens []string
}

// comment is that of a pull request that changes them, or a template of which they are samples.
func (c crew) comment() string {
	if !c.clusters[0].Sample {
		return report.Comment(pullRequest(c.clusters...))
	}
	var reached []rollout.ImpactCluster
	for _, cluster := range c.clusters {
		reached = append(reached, one(cluster.Name, rollout.ReachUpgrade, "1.4.2"))
	}
	i := report.Impact{Impact: rollout.Impact{Template: "kubernetes", Groups: []rollout.ImpactGroup{group("1", []string{"input"}, reached...)}}}
	return report.Comment(templatePullRequest([]report.Impact{i}, c.clusters...))
}

// newCrew draws 2 to 8 clusters. What is read differs early, late, or in length; next
// to a token there is the cluster's name, perhaps far from what changes in all of them.
func newCrew(s scene) crew {
	var c crew
	cluster := []func(string, *holdfast.Plan) report.Cluster{planned, sample}[s.r.IntN(2)]
	filler := strings.Repeat(s.oneOf("x", "xy", "x\n", "1"), s.r.IntN(90))
	for i := range 2 + s.r.IntN(7) {
		name := fmt.Sprintf("c%d", i)
		read := s.oneOf("", "1", "2") + filler + s.oneOf("", "1", "2", "x") + s.oneOf("", filler) + s.oneOf("", "1", "2")
		token := s.oneOf("one", "two", "three")
		object := func(size int) plandoc.Value {
			return s.encoded(map[string]any{"a_size": json.Number(fmt.Sprint(size)), "m_text": filler, "p_name": name, "z_token": mark(token)})
		}
		d := plandoc.Document{
			Version: plandoc.Version,
			Resources: []plandoc.Resource{{
				Address: "aws_thing.x", Type: "aws_thing", Provider: "registry.terraform.io/hashicorp/aws", Actions: []string{"update"}, Before: s.encoded(map[string]any{"v": "1"}), After: s.encoded(map[string]any{"v": "2"}),
			}},
			Outputs: []plandoc.Output{{Name: "grown", Actions: []string{"update"}, Before: object(1), After: object(2)}, {Name: "new", Actions: []string{"create"}, After: object(1)}},
			Reads:   []plandoc.Read{{Address: "data.http.x", Value: s.encoded(map[string]any{"body": read})}},
		}
		if err := d.Validate(); err != nil {
			s.t.Fatal(err)
		}
		plan := plandiff.Plan(d, plandoc.Info{})
		c.clusters, c.reads, c.tokens = append(c.clusters, cluster(name, &plan)), append(c.reads, read), append(c.tokens, token)
	}
	return c
}

func (s scene) oneOf(all ...string) string { return all[s.r.IntN(len(all))] }

var (
	placeOf = regexp.MustCompile("(?m)^- `(output grown|output new|data\\.http\\.x)`(?: `body`)?: (.*)$")
	valueOf = regexp.MustCompile("^(.*) in ((?:`c[0-9]`(?:, | and )?)+)$")
	nameOf  = regexp.MustCompile("`(c[0-9])`")
)

// TestWhatClustersHaveToThemselves: of clusters whose plans are shown as one the comment
// says of which the values are the same, of what is shown and of what is not, and no two
// different values look the same.
func TestWhatClustersHaveToThemselves(t *testing.T) {
	t.Parallel()

	for seed := range uint64(300) {
		c := newCrew(scene{t, rand.New(rand.NewPCG(seed, 7))})
		comment := c.comment()
		names := make([]string, len(c.clusters))
		for i := range names {
			names[i] = c.clusters[i].Name
		}
		told := map[string]string{}
		for _, m := range placeOf.FindAllStringSubmatch(comment, -1) {
			told[m[1]] = m[2]
		}
		same := make([]string, len(names))
		for place, want := range map[string]struct{ shown, secret []string }{
			"data.http.x": {c.reads, same}, "output new": {names, c.tokens}, "output grown": {names, c.tokens},
		} {
			if shown := shownClasses(told[place]); len(names) <= 4 && !slices.Equal(shown, classesBy(want.shown)) {
				t.Errorf("seed %d: the values of %s are those of %q, want %q:\n%s", seed, place, shown, classesBy(want.shown), told[place])
			}
			if read := classesAfter("another value was read for ", told[place], names); len(names) > 4 && place == "data.http.x" && !slices.Equal(read, classesBy(want.shown)) {
				t.Errorf("seed %d: what was read is that of %q, want %q:\n%s", seed, read, classesBy(want.shown), told[place])
			}
			if secret := classesAfter("a sensitive value differs between ", told[place], names); !slices.Equal(secret, classesBy(want.secret)) {
				t.Errorf("seed %d: the secrets of %s are those of %q, want %q:\n%s", seed, place, secret, classesBy(want.secret), told[place])
			}
		}
		if t.Failed() {
			t.Fatal(comment)
		}
	}
}

// classesBy says which clusters have the same, as "c0 c2"; nil if all have.
func classesBy(values []string) []string {
	members := map[string][]string{}
	for i, value := range values {
		members[value] = append(members[value], fmt.Sprintf("c%d", i))
	}
	if len(members) < 2 {
		return nil
	}
	var classes []string
	for _, names := range members {
		classes = append(classes, strings.Join(names, " "))
	}
	slices.Sort(classes)
	return classes
}

// shownClasses are what a line says of values that are shown: "`1` in `c0`; `2` in `c1`".
func shownClasses(line string) []string {
	line, _, _ = strings.Cut(line, "a sensitive value differs between ")
	if line = strings.TrimSuffix(line, "; "); line == "" {
		return nil
	}
	var classes []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(line, "; ") {
		m := valueOf.FindStringSubmatch(part)
		if m == nil || seen[m[1]] {
			return []string{"not a value of its own: " + part}
		}
		seen[m[1]] = true
		classes = append(classes, namesIn(m[2]))
	}
	slices.Sort(classes)
	return classes
}

func namesIn(text string) string {
	var names []string
	for _, m := range nameOf.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}

// classesAfter are the clusters that a line lists after some words.
func classesAfter(after, line string, names []string) []string {
	_, words, ok := strings.Cut(line, after)
	if !ok {
		return nil
	}
	words, _, _ = strings.Cut(words, "; `holdfast ")
	if words == "each of them" {
		return names
	}
	words, others := strings.CutSuffix(words, "the others, where it is the same")
	groups := strings.Split(words, " (the same)")
	var classes []string
	for _, group := range groups[:len(groups)-1] {
		classes = append(classes, namesIn(group))
	}
	classes = append(classes, strings.Fields(namesIn(groups[len(groups)-1]))...)
	if others {
		told := strings.Fields(strings.Join(classes, " "))
		classes = append(classes, strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(told, name) }), " "))
	}
	slices.Sort(classes)
	return classes
}
