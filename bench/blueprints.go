package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const (
	rendered = 1000 // root modules that one core makes
	// betweenLooks is how long the server lets upgrades be between two looks at
	// them. What is measured does not begin with such a wait.
	betweenLooks = 10 * time.Second
)

// blueprints measures what a change of a template takes that all clusters of a
// fleet are made from, and then its release, at several sizes of fleets. A fleet has
// its release after the change of the next one: until then its server rests.
func (b *bench) blueprints(s *stage) {
	s.rendering()
	var resting *blueprintWorld
	for _, n := range b.fleetSizes {
		w := s.changeOf(n)
		if resting != nil {
			resting.releaseOf()
		}
		resting = w
	}
	if resting != nil {
		resting.releaseOf()
	}
}

// blueprintWorld is a fleet whose template has changed, and is to be released.
type blueprintWorld struct {
	*fleetWorld
	rests time.Time // since when nobody has done anything
}

// measured keeps a figure of a fleet, and its floor if there is one.
func (w *fleetWorld) measured(name string, value float64, unit string, floor ...float64) {
	f := figure{Name: templatePrefix + name, N: len(w.members), Value: value, Unit: unit}
	if len(floor) > 0 {
		f = f.against(floor[0])
	}
	w.add(f)
	fmt.Fprintln(w.bench.log, strings.Join(f.cells(), "  "))
}

// changeOf measures a change of the template of n clusters.
func (s *stage) changeOf(n int) *blueprintWorld {
	began := time.Now()
	w := s.newBlueprintWorld(n)
	w.start()
	w.stop()
	w.rest()
	w.startAll()
	resident, _ := w.resident(w.cmd.Process.Pid)
	w.measured("memory at rest, resident", resident, "MiB")

	number, recorded, shown := w.change()
	bare := w.floorOfAssessing()
	w.measured("pull request on it, to what it would do", recorded.Seconds(), "s", bare.Seconds())
	w.measured("the same, to the comment", shown.Seconds(), "s", bare.Seconds())
	w.measured("memory while that is found out, peak", w.peak(), "MiB")

	push, beyond, floor, _ := w.pushes(fleetPushes)
	w.measured("push of one document next to it, to decision", inMS(push), "ms", inMS(floor))
	w.measured("the same beyond the fetch", inMS(beyond), "ms")
	w.measured("what it would do, again after a push", w.lookAgain(number).Seconds(), "s", bare.Seconds())
	w.measured("get templates", inMS(w.ask("templates")), "ms", inMS(w.floorOfRecords("summaries")))
	w.tpl.hub.Close(number)
	w.quiet()
	s.Logf("a change of a template of %d took %s", n, time.Since(began).Round(time.Second))
	return &blueprintWorld{fleetWorld: w, rests: time.Now()}
}

// releaseOf measures the release of what has changed.
func (w *blueprintWorld) releaseOf() {
	began := time.Now()
	select {
	case <-w.ctx.Done():
		w.Fatal("the server rests before the release")
	case <-time.After(time.Until(w.rests.Add(2 * betweenLooks))):
	}
	w.forgetPeak()
	upgrade := w.release()
	w.measured("release to the pull request of a tenth", upgrade.Seconds(), "s", w.floorOfProposing().Seconds())
	w.measured("memory while that is proposed, peak", w.peak(), "MiB")
	w.quiet()
	push, beyond, floor, _ := w.pushes(w.bench.repeat) // each has the whole pull request decided about
	w.measured("push of one document next to that, to decision", inMS(push), "ms", inMS(floor))
	w.measured("the same next to that, beyond the fetch", inMS(beyond), "ms")
	w.stop()
	w.Logf("the release of a template of %d took %s", len(w.members), time.Since(began).Round(time.Second))
}

// newBlueprintWorld prepares a world whose clusters are made from a released
// version of the template.
func (s *stage) newBlueprintWorld(n int) *fleetWorld {
	w := &fleetWorld{
		world:   s.newWorldWith("\nagent: {off: true}\nengines: {download: false}\n", "clusters/**/*.yaml", blueprint),
		members: blueprintFleet(n),
	}
	w.wait, w.decisions = fleetWait, watchDecisions(w.log)
	files := make(map[string]string)
	for _, m := range w.members {
		files[m.path()] = m.document(0)
	}
	w.git.Commit("main", "A fleet", files)
	w.hub.ServeGit(w.git.Path)
	library, err := libraryFiles(libraryFolder, released)
	w.check(err)
	w.tpl.git.Commit("main", "A template", library)
	w.tpl.git.Tag(blueprint+"/v"+released, "main")
	return w
}

// nextFiles are the files that the next version of the template changes.
func (s *stage) nextFiles() map[string]string {
	before, err := libraryFiles(libraryFolder, released)
	s.check(err)
	after, err := libraryFiles(libraryFolder, next)
	s.check(err)
	return changedFiles(before, after)
}

// change opens a pull request that prepares the next version of the template, and
// returns its number and how long it took from its delivery until its effect was
// recorded, and until it was shown.
func (w *fleetWorld) change() (number int, recorded, told time.Duration) {
	main := w.tpl.git.Rev("main")
	head := w.tpl.git.CommitOn("next", main, "Prepare "+next, w.nextFiles())
	w.tpl.git.SetPullRequest(1, head, w.tpl.git.MergeCommit("main", "next"))
	db := w.records()
	defer db.Close()
	w.forgetPeak()
	began := time.Now()
	number = w.tpl.hub.OpenPullRequest(githubserver.PullRequest{Branch: "next", Head: head, BaseSHA: main})
	w.within(fleetWait, "what the pull request would do is on record", func() bool { return w.number(db, "SELECT COUNT(*) FROM impacts") > 0 })
	recorded = time.Since(began)
	made := fmt.Sprintf("used by %d clusters", len(w.members))
	w.within(fleetWait, "the pull request tells that "+made, func() bool {
		return slices.ContainsFunc(w.tpl.hub.Comments(number), func(c githubserver.Comment) bool {
			return strings.Contains(strings.ReplaceAll(c.Body, ",", ""), made)
		})
	})
	return number, recorded, time.Since(began)
}

// number is what a query for one number finds.
func (s *stage) number(db *sql.DB, query string) (n int) {
	s.check(db.QueryRow(query).Scan(&n))
	return n
}

// lookAgain returns how long it takes to find out again what the pull request
// would do, after a push to the fleet.
func (w *fleetWorld) lookAgain(number int) time.Duration {
	const version = "SELECT version FROM pull_requests WHERE repo = '" + templateRepo + "'"
	head := w.tpl.git.Rev("next")
	db := w.records()
	defer db.Close()
	var took []time.Duration
	for range w.bench.repeat {
		w.push()
		w.quiet()
		before, began := w.number(db, version), time.Now()
		w.tpl.hub.PushHead(number, head)
		w.within(fleetWait, "the pull request is looked at again", func() bool { return w.number(db, version) > before })
		took = append(took, time.Since(began))
	}
	return median(took)
}

// release releases the next version, and returns how long it took from its
// delivery to the pull request that proposes it.
func (w *fleetWorld) release() time.Duration {
	w.tpl.git.Commit("main", "Release "+next, w.nextFiles())
	tag, sha := blueprint+"/v"+next, w.tpl.git.Rev("main")
	w.tpl.git.Tag(tag, sha)
	began := time.Now()
	w.tpl.hub.Push("refs/tags/"+tag, "", sha)
	w.within(fleetWait, "the release is proposed", func() bool { return len(w.hub.PullRequests()) > 0 })
	took := time.Since(began)
	all := w.hub.PullRequests()
	changed := strings.Fields(w.git.Git("diff", "--name-only", "main", all[0].Head))
	if want := (len(w.members) + oneUpgrades - 1) / oneUpgrades; len(all) != 1 || len(changed) != want {
		w.Fatalf("%d pull requests, the first of %d files, want one of %d", len(all), len(changed), want)
	}
	return took
}

// trees are the template as it is released and as it is proposed.
func (w *fleetWorld) trees(ctx context.Context) (before, after holdfast.Tree) {
	alone, err := gitsource.New(gitsource.Options{Dir: w.TempDir(), Repositories: []gitsource.Repository{{
		Name: templateRepo, URL: w.tpl.git.Path, Branch: "main",
	}}})
	w.check(err)
	refs, err := alone.Fetch(ctx, templateRepo)
	w.check(err)
	before, err = alone.Tree(ctx, templateRepo, string(refs["refs/tags/"+blueprint+"/v"+released]))
	w.check(err)
	after, err = alone.Tree(ctx, templateRepo, string(refs["refs/heads/next"]))
	w.check(err)
	return before, after
}

// floorOfAssessing is how long one core takes to make all root modules as they
// are and as they would be.
func (w *fleetWorld) floorOfAssessing() time.Duration {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before, after := w.trees(context.Background())
	docs := w.documents(w.members)
	resolver := templates.NewResolver(releases{
		released: {Tree: before, Dir: blueprint}, next: {Tree: after, Dir: blueprint},
	})
	began := time.Now()
	for _, doc := range docs {
		w.render(resolver, doc)
		w.render(resolver, doc.WrittenVersion(next))
	}
	return time.Since(began)
}

// render makes a root module. Its tree is not looked at: the template is another
// repository's.
func (s *stage) render(resolver *templates.Resolver, doc document.Document) *templates.Root {
	root, faults, err := resolver.Resolve(context.Background(), nil, doc)
	s.check(err)
	if len(faults) > 0 {
		s.Fatalf("render %s: %v", doc.Cluster.Name, faults)
	}
	return root
}

// floorOfProposing is how long it takes to edit the documents and to commit them.
func (w *fleetWorld) floorOfProposing() time.Duration {
	began := time.Now()
	files := make(map[string]string)
	for _, m := range w.members {
		if !m.upgrades() {
			continue
		}
		data := []byte(m.document(0))
		docs, _ := document.ParseClusters(m.path(), data)
		edited, err := document.SetVersion(data, docs[0], next)
		w.check(err)
		files[m.path()] = string(edited)
	}
	w.git.CommitOn("floor", w.git.Rev("main"), "Upgrade", files)
	return time.Since(began)
}

// rendering measures how long one core takes to make a thousand root modules,
// the template read for the first time, against digests of the same bytes.
func (s *stage) rendering() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := s.newBlueprintWorld(1)
	w.tpl.git.Branch("next", "main")
	tree, _ := w.trees(context.Background())
	docs := s.documents(blueprintFleet(rendered))
	var took, bare []time.Duration
	for range max(fleetLists, w.bench.repeat) {
		began := time.Now()
		resolver := templates.NewResolver(releases{released: {Tree: tree, Dir: blueprint}})
		roots := make([]*templates.Root, len(docs))
		for i, doc := range docs {
			roots[i] = s.render(resolver, doc)
		}
		took = append(took, time.Since(began))
		began = time.Now()
		for _, root := range roots {
			hash := sha256.New()
			for _, file := range root.Files() {
				hash.Write(file.Data)
			}
			hash.Sum(nil)
		}
		bare = append(bare, time.Since(began))
	}
	f := figure{Name: "root modules rendered by one core", N: rendered, Value: inMS(median(took)), Unit: "ms"}.against(inMS(median(bare)))
	fmt.Fprintln(w.bench.log, strings.Join(f.cells(), "  "))
	s.add(f)
}

// forgetPeak has the server's peak of memory begin again.
func (w *fleetWorld) forgetPeak() {
	w.check(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.cmd.Process.Pid), []byte("5"), 0))
}
