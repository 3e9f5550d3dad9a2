//go:build !race

package reconciler_test

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

var (
	dayClusters = flag.Int("day.clusters", 24, "clusters of the fleet whose days are simulated")
	dayDays     = flag.Int("day.days", 4, "days that are simulated")
	dayHours    = flag.Int("day.hours", 24, "hours of each day that are simulated")
	dayOut      = flag.String("day.out", "", "file for what was measured, as JSON")
)

// dayFigures is what a simulated day has cost.
type dayFigures struct {
	Checks   int           `json:"checks"`
	Wait50   time.Duration `json:"wait50"`   // simulated, from due to claimed
	Wait99   time.Duration `json:"wait99"`   //
	Pass     time.Duration `json:"pass"`     // of the schedule, the median
	PassMost time.Duration `json:"passMost"` // the longest
	PassAll  time.Duration `json:"passAll"`  // of the last day: when every cluster is due
	Wall     time.Duration `json:"wall"`     // of all, real
	Database int64         `json:"database"` // bytes, after the sweep at its end
	Blobs    int64         `json:"blobs"`
	Before   int64         `json:"before"` // bytes of the database at its begin
	Heap     uint64        `json:"heap"`   // bytes that live
	Issues   int           `json:"issues"`
}

const (
	daySlots = 10               // checks at once
	dayTakes = 40 * time.Second // a check, a half more or less
	daysRuns = 2                // checks of each cluster that retention leaves
)

// TestDaysOfAFleet lets days pass for a fleet that is checked for drift once a
// day: every cluster is checked once, none waits long, and what is kept of it
// does not grow. With -day.clusters it measures larger fleets.
func TestDaysOfAFleet(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many clusters")
	}
	d := newDays(t, *dayClusters)
	var figures []dayFigures
	for range *dayDays {
		figures = append(figures, d.pass())
	}
	figures[len(figures)-1].PassAll = d.passAll()
	if *dayOut != "" {
		data, err := json.Marshal(figures)
		d.must(err)
		d.must(os.WriteFile(*dayOut, data, 0o600))
	}
	for day, f := range figures {
		t.Logf("day %d: %+v", day+1, f)
		if f.Checks != *dayClusters && *dayHours == 24 {
			t.Errorf("day %d had %d checks of %d clusters", day+1, f.Checks, *dayClusters)
		}
		if f.Wait50 < 0 || f.Wait99 > time.Hour {
			t.Errorf("on day %d checks have waited for %s", day+1, f.Wait99)
		}
		if want := (*dayClusters + 19) / 20; f.Issues != min(want, 10)+min(1, max(0, want-10)) && *dayHours == 24 {
			t.Errorf("after day %d there are %d open issues of %d drifted clusters", day+1, f.Issues, want)
		}
	}
	if len(figures) > 3 && *dayHours == 24 {
		if before, last := figures[2], figures[3]; float64(last.Database) > 1.05*float64(before.Database) || last.Blobs > before.Blobs {
			t.Errorf("what is kept has grown from %d and %d bytes to %d and %d", before.Database, before.Blobs, last.Database, last.Blobs)
		}
	}
}

// days is a fleet at rest, with an engine that takes no time but simulated.
type days struct {
	*fleet
	dir     string
	rnd     *rand.Rand
	running attempts
	ends    time.Time            // of the day
	due     map[string]time.Time // when the next check is, by cluster

	waits, passes []time.Duration
	clean, drift  []byte // plans
	resources     []byte
	bulk          []byte // what the engine and the providers say
}

func newDays(t *testing.T, n int) *days {
	t.Helper()
	f := newFleet(t, nil)
	d := &days{fleet: f, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(1, 2)), due: make(map[string]time.Time)}
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	d.must(err)
	d.store, err = datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(d.dir, "holdfast.db"), Keys: keys, Now: f.clock.Now,
		Retention: datastore.Retention{DriftRuns: daysRuns},
	})
	d.must(err)
	t.Cleanup(func() { _ = d.store.Close() })
	f.restart(func(o *reconciler.Options) {
		o.Store, o.Limits.Runs, o.Limits.Drift = d.store, 2*daySlots, daySlots
	})
	d.plans()
	d.look()
	d.clock.Advance(45 * time.Minute) // no schedule's time is near
	for i := range n {
		d.atRest(i)
	}
	d.ends = d.clock.Now()
	return d
}

// plans makes what checks find and leave: sixty resources, and drift of one.
func (d *days) plans() {
	var err error
	d.clean, err = json.Marshal(holdfast.Plan{})
	d.must(err)
	d.drift, err = json.Marshal(scaled("7"))
	d.must(err)
	var resources []holdfast.Resource
	for i := range 60 {
		resources = append(resources, holdfast.Resource{
			Address: fmt.Sprintf("module.kubernetes.aws_subnet.private[%d]", i), Type: "aws_subnet",
			Provider: "registry.terraform.io/hashicorp/aws", ID: fmt.Sprintf("subnet-%017x", i),
		})
	}
	d.resources, err = json.Marshal(resources)
	d.must(err)
	d.bulk = make([]byte, 32<<10)
	for i := range d.bulk {
		d.bulk[i] = byte(d.rnd.Uint32())
	}
}

// atRest stores a cluster that is as its document says, checked once a day.
func (d *days) atRest(i int) {
	ctx, now := d.t.Context(), d.clock.Now()
	doc := holdfast.Cluster{
		Name: fmt.Sprintf("c%06d", i), Project: fmt.Sprintf("project-%03d", i/100), Environment: "production",
		Labels: map[string]string{"team": fmt.Sprintf("team-%02d", i%40)}, Provider: "aws", Region: "eu-west-1",
		Template: &holdfast.TemplateRef{Path: "../../templates/kubernetes"}, Path: fmt.Sprintf("clusters/%d.yaml", i), Line: 1,
		Variables: map[string]any{"node_count": 3, "instance_type": "medium", "owners": []string{"platform@example.com"}},
		Drift:     holdfast.DriftSettings{Schedule: fmt.Sprintf("0 %d * * *", i%24)},
	}
	source := holdfast.Digest(fmt.Sprintf("sha256:%064x", i))
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: doc.Name, Kind: holdfast.RunApply, Status: holdfast.RunApplied,
		CreatedAt: now, FinishedAt: now,
		RunSpec: holdfast.RunSpec{
			Repo:     infra,
			Revision: "0123456789012345678901234567890123456789", SourceDigest: source, Bundle: "sha256:bundle", Dir: "root",
			Document: doc, StateLocation: "clusters/" + doc.Name,
		},
		RunProgress: holdfast.RunProgress{Begun: true, Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{EngineName: "terraform", EngineVersion: "1.11.4", InputDigest: source},
	}
	d.must(d.store.CreateRun(ctx, run))
	rec := holdfast.ClusterRecord{
		Name: doc.Name, Owner: infra, Phase: holdfast.PhaseActive,
		Desired: holdfast.Desired{Revision: run.Revision, SourceDigest: source, Document: doc},
		Applied: holdfast.Applied{
			Run: run.ID, Revision: run.Revision, SourceDigest: source, InputDigest: source, Bundle: run.Bundle, Dir: run.Dir,
			StateLocation: run.StateLocation, EngineName: run.EngineName, EngineVersion: run.EngineVersion, Document: doc, At: now,
		},
	}
	rec.Drift.Due = decision.DriftDue(now, rec, "")
	_, err := d.store.SaveCluster(ctx, rec)
	d.must(err)
	d.due[rec.Name] = rec.Drift.Due
}

// attempts are those that are executed, the one first that ends first.
type attempts []attempt

type attempt struct {
	protocol.Assignment
	ends time.Time
}

func (a attempts) Len() int           { return len(a) }
func (a attempts) Less(i, j int) bool { return a[i].ends.Before(a[j].ends) }
func (a attempts) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *attempts) Push(x any)        { *a = append(*a, x.(attempt)) }
func (a *attempts) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// pass lets a day pass.
func (d *days) pass() dayFigures {
	began := time.Now()
	d.waits, d.passes = nil, nil
	before, _ := d.size()
	d.ends = d.ends.Add(time.Duration(*dayHours) * time.Hour)
	for {
		next := d.schedule()
		d.claimAll()
		if len(d.running) > 0 && d.running[0].ends.Before(next) {
			next = d.running[0].ends
		}
		if next.After(d.ends) && len(d.running) == 0 {
			break
		}
		if wait := next.Sub(d.clock.Now()); wait > 0 {
			d.clock.Advance(wait)
		}
		for len(d.running) > 0 && !d.running[0].ends.After(d.clock.Now()) {
			d.end(heap.Pop(&d.running).(attempt))
		}
	}
	d.clock.Advance(d.ends.Sub(d.clock.Now()))
	d.post()
	wall := time.Since(began)
	_, err := d.store.Sweep(d.t.Context(), time.Minute)
	d.must(err)
	f := dayFigures{Checks: len(d.waits), Wall: wall, Issues: d.openIssues(), Before: before}
	slices.Sort(d.waits)
	slices.Sort(d.passes)
	if n := len(d.waits); n > 0 {
		f.Wait50, f.Wait99 = d.waits[n/2], d.waits[n*99/100]
	}
	if n := len(d.passes); n > 0 {
		f.Pass, f.PassMost = d.passes[n/2], d.passes[n-1]
	}
	f.Database, f.Blobs = d.size()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Heap = m.HeapAlloc
	return f
}

// passAll makes a pass when the server was unavailable for a day, and returns how long
// it took.
func (d *days) passAll() time.Duration {
	d.clock.Advance(25 * time.Hour)
	began := time.Now()
	_, err := d.r.DriftPass(d.t.Context())
	d.must(err)
	return time.Since(began)
}

// schedule makes a pass of the schedule and returns when the next one is.
func (d *days) schedule() time.Time {
	began := time.Now()
	wait, err := d.r.DriftPass(d.t.Context())
	d.must(err)
	if len(d.running) < daySlots {
		d.passes = append(d.passes, time.Since(began))
	}
	return d.clock.Now().Add(max(wait, time.Second))
}

func (d *days) claimAll() {
	for len(d.running) < daySlots {
		refs := make([]holdfast.AttemptRef, 0, len(d.running))
		for _, a := range d.running {
			refs = append(refs, a.AttemptRef)
		}
		a := d.claim(refs...)
		if a.Run == "" {
			return
		}
		now := d.clock.Now()
		d.waits = append(d.waits, now.Sub(d.due[a.Cluster]))
		heap.Push(&d.running, attempt{a, now.Add(dayTakes/2 + time.Duration(d.rnd.Int64N(int64(dayTakes))))})
	}
}

// end ends a check as an agent does. One cluster in twenty has drifted.
func (d *days) end(a attempt) {
	ctx := d.t.Context()
	_, err := d.store.AppendLog(ctx, a.AttemptRef, 0, d.bulk[:6<<10])
	d.must(err)
	plan, result := d.clean, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"}
	if strings.HasSuffix(a.Cluster, "00") || strings.HasSuffix(a.Cluster, "20") || strings.HasSuffix(a.Cluster, "40") ||
		strings.HasSuffix(a.Cluster, "60") || strings.HasSuffix(a.Cluster, "80") {
		plan, result.Status = d.drift, holdfast.RunPlanned
	}
	for name, data := range map[string][]byte{
		protocol.ArtefactPlan:     plan,
		protocol.ArtefactLockFile: d.bulk[:2<<10], protocol.ArtefactInput: d.bulk[:1<<10], protocol.ArtefactResources: d.resources,
	} {
		d.must(d.store.PutArtefact(ctx, a.AttemptRef, name, bytes.NewReader(data)))
	}
	d.finish(a.Assignment, result)
	d.post()
	d.due[a.Cluster] = d.cluster(a.Cluster).Drift.Due
}

// size is how much the database and the blobs take on disk.
func (d *days) size() (database, blobs int64) {
	d.must(filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if strings.HasPrefix(filepath.Base(path), "holdfast.db") {
			database += info.Size()
		} else {
			blobs += info.Size()
		}
		return nil
	}))
	return database, blobs
}

func (d *days) openIssues() int {
	d.forge.mu.Lock()
	defer d.forge.mu.Unlock()
	open := 0
	for _, versions := range d.forge.issues {
		if !versions[len(versions)-1].Closed {
			open++
		}
	}
	return open
}
