package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/statelock"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world stands for everything behind the listeners: one fake of all ports.
type world struct {
	reads atomic.Int64 // of records of clusters, one by one
	mu    sync.Mutex

	runs      map[string]holdfast.Run
	attempts  map[string][]holdfast.Attempt
	clusters  map[string]holdfast.ClusterRecord
	prs       map[string]holdfast.PullRequestRecord
	posts     map[string]outgoing.Post
	plans     map[string]holdfast.Plan
	bundles   map[holdfast.Digest]string
	artefacts map[string]string // run/name
	logs      map[string]string // run/attempt
	logMore   chan struct{}     // replaced when a log grows or ends
	changes   []holdfast.Change
	forgotten int64 // changes up to this one
	audit     []holdfast.AuditEntry

	summaries   []holdfast.ClusterSummary
	history     []holdfast.Transition
	resources   []holdfast.Resource
	suspensions []holdfast.Suspension
	drift       map[string]holdfast.DriftReport
	families    map[string]holdfast.Family
	templates   []rollout.TemplateStatus
	upgrades    []rollout.Upgrade
	agents      []protocol.AgentStatus
	queued      int // runs in the queue

	states     map[string][]byte
	versions   map[string]int64
	locks      map[string]statelock.StateLock
	quarantine []holdfast.StateWrite

	claims   chan protocol.Assignment
	claimed  []protocol.ClaimRequest
	calls    []string
	alive    bool
	held     bool
	failWith error                                // of Claim, Heartbeat, Clusters
	locked   int                                  // how often a state was locked
	obey     func(context.Context) string         // waited for by Command
	source   func(run, name string) io.ReadCloser // of artefacts, instead of the map
	begins   func(name string)                    // an artefact's upload, before it is read
}

func newWorld() *world {
	return &world{
		runs: map[string]holdfast.Run{}, attempts: map[string][]holdfast.Attempt{},
		clusters: map[string]holdfast.ClusterRecord{}, prs: map[string]holdfast.PullRequestRecord{},
		posts: map[string]outgoing.Post{}, plans: map[string]holdfast.Plan{},
		bundles: map[holdfast.Digest]string{}, artefacts: map[string]string{}, logs: map[string]string{},
		drift: map[string]holdfast.DriftReport{}, families: map[string]holdfast.Family{},
		states: map[string][]byte{}, versions: map[string]int64{}, locks: map[string]statelock.StateLock{},
		claims: make(chan protocol.Assignment, 10), logMore: make(chan struct{}),
	}
}

// start makes a run's next attempt and returns its token.
func (w *world) start(run holdfast.Run) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	run.Attempt++
	run.Fence += 10
	run.Status = holdfast.RunRunning
	w.runs[run.ID] = run
	w.attempts[run.ID] = append(w.attempts[run.ID], holdfast.Attempt{
		Run: run.ID, Attempt: run.Attempt, Fence: run.Fence, Agent: "agent-1", Status: holdfast.RunRunning, ClaimedAt: now,
	})
	return protocol.FormatRunToken(run.Ref(), "secret-of-"+run.ID)
}

func (w *world) end(id string, status holdfast.RunStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	run := w.runs[id]
	run.Status = status
	w.runs[id] = run
	close(w.logMore)
	w.logMore = make(chan struct{})
}

func (w *world) Claim(ctx context.Context, req protocol.ClaimRequest) (protocol.Assignment, error) {
	w.note("claim %s %s", req.Agent, req.Wait)
	w.look(func() { w.claimed = append(w.claimed, req) })
	if w.failWith != nil {
		return protocol.Assignment{}, w.failWith
	}
	select {
	case a := <-w.claims:
		return a, nil
	case <-ctx.Done():
		return protocol.Assignment{}, ctx.Err()
	case <-time.After(req.Wait):
		return protocol.Assignment{}, holdfast.ErrNotFound
	}
}

func (w *world) Present(_ context.Context, req protocol.ClaimRequest) error {
	w.note("present %s", req.Agent)
	return w.failWith
}

func (w *world) Replicas(context.Context) ([]replica.Replica, error) {
	return []replica.Replica{{Identity: "a", Living: true, StartedAt: now}, {Identity: "b", HeartbeatAt: now}}, nil
}

func (w *world) Heard() []protocol.AgentStatus { return w.agents }

// Queue are queued runs of two projects in turns; without any, all runs.
func (w *world) Queue(_ context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error) {
	projects, after, limit := filter.Projects, filter.After, filter.Limit
	var queue []holdfast.QueuedRun
	if w.queued == 0 {
		for _, run := range w.runs {
			queue = append(queue, holdfast.QueuedRun{Position: len(queue) + 1, Run: run})
		}
		return queue, w.failWith
	}
	for position := after + 1; position <= w.queued && len(queue) < limit; position++ {
		project := []string{"payments", "web"}[position%2]
		if len(projects) > 0 && !slices.Contains(projects, project) {
			continue
		}
		run := holdfast.Run{ID: fmt.Sprint("queued-", position), Status: holdfast.RunQueued, Kind: holdfast.RunPlan}
		run.Document.Project = project
		queue = append(queue, holdfast.QueuedRun{Position: position, Run: run, Ahead: holdfast.Ahead{Others: position - 1}})
	}
	return queue, w.failWith
}

func (w *world) Agents(context.Context) ([]protocol.AgentStatus, error) { return w.agents, w.failWith }

func (w *world) Authorize(ctx context.Context, ref holdfast.AttemptRef, token string) (holdfast.RunBrief, error) {
	run, err := w.Brief(ctx, ref.Run)
	switch {
	case err != nil || token != protocol.FormatRunToken(ref, "secret-of-"+ref.Run):
		return holdfast.RunBrief{}, holdfast.ErrUnauthorized
	case ref != run.AttemptRef || run.Status != holdfast.RunRunning:
		return run, holdfast.ErrFenced
	}
	return run, nil
}

func (w *world) Brief(_ context.Context, id string) (holdfast.RunBrief, error) {
	run, err := get(w, w.runs, id)
	return holdfast.RunBrief{
		AttemptRef: run.Ref(), Cluster: run.Cluster, Kind: run.Kind, Status: run.Status, StateLocation: run.StateLocation, Bundle: run.Bundle,
	}, err
}

func (w *world) Heartbeat(_ context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	w.note("heartbeat %s/%d/%d %s", ref.Run, ref.Attempt, ref.Fence, beat.Step)
	return protocol.HeartbeatReply{MayApply: true, Cancel: "NewerHead"}, w.failWith
}

func (w *world) Finish(_ context.Context, ref holdfast.AttemptRef, result protocol.Result) error {
	w.note("finish %s/%d/%d %s", ref.Run, ref.Attempt, ref.Fence, result.Status)
	return nil
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

// look runs do while nobody else changes the world.
func (w *world) look(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

func get[K comparable, V any](w *world, from map[K]V, key K) (V, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := from[key]
	if !ok {
		return v, fmt.Errorf("%v: %w", key, holdfast.ErrNotFound)
	}
	return v, nil
}

func (w *world) Bundle(_ context.Context, digest holdfast.Digest) (io.ReadCloser, error) {
	text, err := get(w, w.bundles, digest)
	return io.NopCloser(strings.NewReader(text)), err
}

func (w *world) Artefact(_ context.Context, run, name string) (io.ReadCloser, error) {
	if w.source != nil {
		return w.source(run, name), nil
	}
	text, err := get(w, w.artefacts, run+"/"+name)
	return io.NopCloser(strings.NewReader(text)), err
}

func (w *world) PutArtefact(_ context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error {
	if w.begins != nil {
		w.begins(name)
	}
	text, err := io.ReadAll(data)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.artefacts[ref.Run+"/"+name] = string(text)
	return nil
}

func (w *world) AppendLog(_ context.Context, ref holdfast.AttemptRef, offset int64, data []byte) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprintf("%s/%d", ref.Run, ref.Attempt)
	have := int64(len(w.logs[key]))
	if offset > have {
		return have, nil
	}
	w.logs[key] = w.logs[key][:offset] + string(data)
	close(w.logMore)
	w.logMore = make(chan struct{})
	return int64(len(w.logs[key])), nil
}

func (w *world) MaskLog(_ context.Context, ref holdfast.AttemptRef, spans []protocol.LogSpan) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprintf("%s/%d", ref.Run, ref.Attempt)
	text := []byte(w.logs[key])
	for _, span := range spans {
		for i := span.From; i < min(span.To, int64(len(text))); i++ {
			text[i] = '*'
		}
	}
	w.logs[key] = string(text)
	return nil
}

func (w *world) Log(ctx context.Context, run string, attempt int, offset int64, wait bool) (holdfast.LogRange, error) {
	for {
		w.mu.Lock()
		text, more, r := w.logs[fmt.Sprintf("%s/%d", run, attempt)], w.logMore, w.runs[run]
		w.mu.Unlock()
		part := holdfast.LogRange{Next: int64(len(text)), Done: r.Status.Done() || attempt < r.Attempt}
		if offset < part.Next {
			part.Data = []byte(text[offset:])
		}
		if !wait || part.Done || len(part.Data) > 0 {
			return part, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return part, nil
		}
	}
}

func (w *world) State(_ context.Context, location string) ([]byte, holdfast.StateVersion, error) {
	data, err := get(w, w.states, location)
	version, _ := get(w, w.versions, location)
	return data, holdfast.StateVersion{Location: location, Version: version}, err
}

func (w *world) PutState(_ context.Context, write holdfast.StateWrite) (holdfast.StateVersion, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	run := w.runs[write.By.Run]
	if write.By != run.Ref() || run.Status != holdfast.RunRunning {
		w.quarantine = append(w.quarantine, write)
		return holdfast.StateVersion{}, holdfast.ErrFenced
	}
	if lock, ok := w.locks[write.Location]; ok && lock.ID != write.LockID {
		return holdfast.StateVersion{}, &statelock.StateLockedError{Lock: lock}
	}
	w.states[write.Location] = bytes.Clone(write.Data)
	w.versions[write.Location]++
	return holdfast.StateVersion{Version: w.versions[write.Location]}, nil
}

func (w *world) OpenUnsaved(ctx context.Context, u holdfast.UnsavedState) (io.ReadCloser, error) {
	return w.Artefact(ctx, u.Run, protocol.ArtefactErrored)
}

func (w *world) LockState(_ context.Context, location string, lock statelock.StateLock) error {
	w.mu.Lock()
	held, ok := w.locks[location]
	if ok && held.ID != lock.ID {
		w.mu.Unlock()
		return &statelock.StateLockedError{Lock: held}
	}
	w.locks[location] = lock
	w.locked++
	w.mu.Unlock()
	return nil
}

func (w *world) UnlockState(_ context.Context, location, id string, by holdfast.AttemptRef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, ok := w.locks[location]
	switch {
	case !ok:
		return nil
	case id == held.ID && held.By == by:
		delete(w.locks, location)
		return nil
	}
	return &statelock.StateLockedError{Lock: held}
}

func (w *world) Run(_ context.Context, id string) (holdfast.Run, error) { return get(w, w.runs, id) }

func (w *world) Runs(_ context.Context, f holdfast.RunFilter) ([]holdfast.Run, error) {
	text, _ := json.Marshal(f)
	w.note("runs %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	var runs []holdfast.Run
	for _, r := range w.runs {
		if (f.Cluster == "" || f.Cluster == r.Cluster) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b holdfast.Run) int { return strings.Compare(b.ID, a.ID) })
	return runs, nil
}

func (w *world) Attempts(_ context.Context, run string) ([]holdfast.Attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.attempts[run]), nil
}

func (w *world) Plan(_ context.Context, run string) (holdfast.Plan, error) {
	return get(w, w.plans, run)
}

func (w *world) Cluster(_ context.Context, name string) (holdfast.ClusterRecord, error) {
	w.reads.Add(1)
	return get(w, w.clusters, name)
}

func (w *world) Clusters(_ context.Context, f holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	text, _ := json.Marshal(f)
	w.note("clusters %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	var records []holdfast.ClusterRecord
	for _, c := range w.clusters {
		if (f.Drift == "" || f.Drift == c.Drift.Status) && (len(f.Names) == 0 || slices.Contains(f.Names, c.Name)) {
			records = append(records, c)
		}
	}
	return records, w.failWith
}

func (w *world) ClusterSummaries(_ context.Context, f holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	text, _ := json.Marshal(f)
	w.note("summaries %s", text)
	var found []holdfast.ClusterSummary
	for _, s := range w.summaries {
		if (f.Drift == "" || f.Drift == s.Drift) && s.Name > f.After && (f.Limit == 0 || len(found) < f.Limit) {
			found = append(found, s)
		}
	}
	return found, w.failWith
}

func (w *world) Transitions(_ context.Context, cluster string, limit int) ([]holdfast.Transition, error) {
	w.note("history %s %d", cluster, limit)
	return w.history, nil
}

func (w *world) Resources(_ context.Context, f holdfast.ResourceFilter) ([]holdfast.Resource, error) {
	text, _ := json.Marshal(f)
	w.note("resources %s", text)
	return w.resources, nil
}

func (w *world) Suspensions(context.Context) ([]holdfast.Suspension, error) {
	return w.suspensions, w.failWith
}

func (w *world) PullRequest(_ context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	return get(w, w.prs, ref.String())
}

func (w *world) PullRequests(_ context.Context, f holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	text, _ := json.Marshal(f)
	w.note("pullrequests %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []holdfast.PullRequestRecord
	for _, pr := range w.prs {
		if f.After.Number == 0 || pr.Number < f.After.Number {
			found = append(found, pr)
		}
	}
	slices.SortFunc(found, func(a, b holdfast.PullRequestRecord) int { return b.Number - a.Number })
	return found[:min(len(found), f.Limit)], nil
}

func (w *world) Audit(_ context.Context, entry holdfast.AuditEntry) error {
	w.look(func() { w.audit = append(w.audit, entry) })
	return nil
}

func (w *world) LastChange(context.Context) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.changes) == 0 {
		return w.forgotten, nil
	}
	return w.changes[len(w.changes)-1].Seq, nil
}

func (w *world) Changes(_ context.Context, after int64, limit int) ([]holdfast.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if after < w.forgotten {
		return nil, holdfast.ErrExpired
	}
	var changes []holdfast.Change
	for _, c := range w.changes {
		if c.Seq > after && len(changes) < limit {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// change notes that an object has changed.
func (w *world) change(kind holdfast.ChangeKind, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seq := w.forgotten + 1
	if n := len(w.changes); n > 0 {
		seq = w.changes[n-1].Seq + 1
	}
	w.changes = append(w.changes, holdfast.Change{Seq: seq, Kind: kind, Name: name})
}

func (w *world) AuditPage(_ context.Context, object string, before int64, limit int) ([]holdfast.AuditEntry, int64, error) {
	w.note("audit %s %d", object, limit)
	return w.audit, before + 1, nil
}

func (w *world) Post(_ context.Context, key string) (outgoing.Post, error) {
	return get(w, w.posts, key)
}

func (w *world) Posts(_ context.Context, filter outgoing.PostFilter) ([]outgoing.Post, error) {
	var posts []outgoing.Post
	for _, key := range slices.Sorted(maps.Keys(w.posts)) {
		if post := w.posts[key]; post.PullRequest == filter.PullRequest {
			posts = append(posts, post)
		}
	}
	return posts, nil
}

func (w *world) Command(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	text, _ := json.Marshal([]any{c.PullRequest, c.Clusters, c.Shown, c.ShownHead})
	w.note("command %s by %s trusted=%t force=%t %s", c.Verb, c.Author, c.Trusted, c.Force, text)
	if w.obey != nil {
		if c.Reply = w.obey(ctx); c.Reply == "" {
			return c, nil
		}
	}
	c.Status = holdfast.CommandDone
	return c, nil
}

func (w *world) Deliveries(context.Context, int64, int) ([]holdfast.Delivery, int64, error) {
	return []holdfast.Delivery{{At: now, Event: "push", Repo: "acme/shop", Status: 200, Result: "accepted"}}, 1, w.failWith
}

// PlannedRun is named as its cluster is.
func (w *world) PullRequestGates(_ context.Context, pr holdfast.PullRequestRecord) (map[string][]holdfast.Gate, error) {
	all := make(map[string][]holdfast.Gate)
	for _, c := range pr.Clusters {
		all[c.Name] = []holdfast.Gate{{Name: holdfast.GateApproved, Missing: "one more approval of " + c.Name}}
	}
	return all, nil
}

func (w *world) PlannedRun(_ context.Context, cluster string) (string, error) {
	return "run-of-" + cluster, nil
}

func (w *world) Reconcile(_ context.Context, repo, cluster string) error {
	w.note("reconcile %q %q", repo, cluster)
	return nil
}

func (w *world) Lock(_ context.Context, cluster string) (holdfast.LockHolder, holdfast.Run, bool, error) {
	if !w.held {
		return holdfast.LockHolder{}, holdfast.Run{}, false, holdfast.ErrNotFound
	}
	return holdfast.LockHolder{Owner: "run-1/2", Since: now}, holdfast.Run{ID: "run-1", Cluster: cluster}, w.alive, nil
}

func (w *world) Unlock(_ context.Context, cluster, actor string, force bool) error {
	w.note("unlock %s by %s force=%t", cluster, actor, force)
	if w.alive && !force {
		return &holdfast.LockedError{Holder: holdfast.LockHolder{Owner: "run-1/2", Since: now}}
	}
	return nil
}

func (w *world) Suspend(_ context.Context, cluster string, suspended bool, actor, reason string) (holdfast.ClusterRecord, error) {
	w.note("suspend %s %t by %s%s", cluster, suspended, actor, reason)
	rec, ok := w.clusters[cluster]
	if !ok {
		return rec, fmt.Errorf("read cluster %q: cluster %q: %w", cluster, cluster, holdfast.ErrNotFound)
	}
	rec.Suspended = suspended
	return rec, nil
}

func (w *world) SuspendAll(_ context.Context, s holdfast.Suspension, suspended bool) error {
	w.note("suspend project=%q %t by %s at %s: %s", s.Project, suspended, s.By, s.At.Format(time.RFC3339), s.Reason)
	if s.Project == "nobody" {
		return fmt.Errorf("suspension of project %q: %w", s.Project, holdfast.ErrNotFound)
	}
	return nil
}

func (w *world) CheckDrift(_ context.Context, cluster, actor string) (holdfast.Run, error) {
	w.note("check drift of %s by %s", cluster, actor)
	record, err := get(w, w.clusters, cluster)
	if err == nil && record.Applied.Run == "" {
		err = &holdfast.RefusedError{Reason: holdfast.ReasonNeverApplied, Text: "it was never applied"}
	}
	if err == nil && record.Suspended {
		err = &holdfast.RefusedError{Reason: holdfast.ReasonSuspended, Text: "it is suspended"}
	}
	return holdfast.Run{ID: "run-9", Cluster: cluster, Kind: holdfast.RunDrift, RunSpec: holdfast.RunSpec{Document: record.Applied.Document}}, err
}

func (w *world) Drift(_ context.Context, cluster string) (holdfast.DriftReport, error) {
	return get(w, w.drift, cluster)
}

func (w *world) Watches(repo string) bool { return repo != "gone" }

func (w *world) Family(_ context.Context, cluster string) (holdfast.Family, error) {
	return get(w, w.families, cluster)
}

func (w *world) Transfer(_ context.Context, cluster, repo, actor string) error {
	w.note("transfer %s to %s by %s", cluster, repo, actor)
	if repo == "busy" {
		return &holdfast.RefusedError{Reason: holdfast.ReasonInProgress, Command: "holdfast cancel run-1", Text: "run run-1 is running"}
	}
	if repo == "unwatched" {
		return fmt.Errorf("repository %q is not watched: %w", repo, holdfast.ErrNotFound)
	}
	return nil
}
