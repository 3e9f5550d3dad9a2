package reconciler_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/emptystore"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// fleet is a Reconciler over a real store and real Git, with a code host that
// the test speaks for, and the test as its only agent.
type fleet struct {
	finding string // what plans find besides what they are of
	t       testing.TB
	r       *reconciler.Reconciler
	store   *datastore.Store
	repo    *gitserver.Repo
	forge   *codeHost
	locks   *lock.Memory
	clock   *clock
	opts    reconciler.Options

	database string // its file
}

const (
	infra  = "infra"
	master = "main"
)

// clock is the time that everybody goes by. It moves on a little with each look, so
// that no two things happen at once.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newFleet returns a fleet whose repository has files on its tracked branch.
func newFleet(t testing.TB, files map[string]string, with ...func(*reconciler.Options)) *fleet {
	t.Helper()
	dir := memory.Dir(t)
	f := &fleet{t: t, clock: &clock{now: noon}, locks: lock.NewMemory()}
	f.repo = gitserver.NewRepo(t, filepath.Join(dir, "infra.git"))
	if files != nil {
		f.repo.Commit(master, "first", files)
	}
	f.forge = newCodeHost(f.clock)
	git, err := gitsource.New(gitsource.Options{
		Dir:          filepath.Join(dir, "mirrors"),
		Repositories: []gitsource.Repository{{Name: infra, URL: f.repo.Path, Branch: master}},
	})
	f.must(err)
	database := filepath.Join(dir, "db", "holdfast.db")
	emptyDatabase.Write(t, database)
	f.database = database
	f.store, err = datastore.Open(t.Context(), storeAt(database, f.clock.Now))
	f.must(err)
	t.Cleanup(func() { _ = f.store.Close() })
	opts := reconciler.Options{
		Store: f.store,
		Sources: reconciler.Sources{
			Git: git, Forges: map[string]reconciler.Forge{infra: f.forge},
			Repositories: []reconciler.Repository{{
				Name: infra, Branch: master, Clusters: []string{"clusters/**/*.yaml"},
				Templates: map[string]string{"web": "templates/web"},
			}},
			Commands: commandsOf,
		},
		Replica: reconciler.Replica{
			Locker: f.locks, Identity: "test",
			FingerprintKey: bytes.Repeat([]byte{2}, 32), TokenKey: bytes.Repeat([]byte{3}, 32),
		},
		Now: f.clock.Now,
	}
	f.opts = opts
	f.restart(with...)
	return f
}

var emptyDatabase = emptystore.New(func(path string) datastore.Options { return storeAt(path, time.Now) })

func storeAt(path string, now func() time.Time) datastore.Options {
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		panic(err) // a key of ones is one
	}
	return datastore.Options{Path: path, Keys: keys, Now: now}
}

// restart makes a new Reconciler over what is there.
func (f *fleet) restart(with ...func(*reconciler.Options)) {
	f.t.Helper()
	for _, change := range with {
		change(&f.opts)
	}
	r, err := reconciler.New(f.opts)
	f.must(err)
	f.r = r
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// look takes in the tracked branch and works off what follows from it.
func (f *fleet) look() {
	f.t.Helper()
	f.must(f.r.TakeIn(f.t.Context(), infra, 0))
	f.settle()
}

func (f *fleet) settle() {
	f.t.Helper()
	f.must(f.r.Settle(f.t.Context()))
}

// open opens a pull request of a new branch with files on top of the tracked one.
func (f *fleet) open(number int, files map[string]string, with ...func(*holdfast.PullRequest)) {
	f.t.Helper()
	f.openUnnoticed(number, files, with...)
	f.lookAt(number)
}

func (f *fleet) openUnnoticed(number int, files map[string]string, with ...func(*holdfast.PullRequest)) {
	f.t.Helper()
	branch := fmt.Sprintf("branch-%d", number)
	head := f.repo.CommitOn(branch, master, "change", files)
	f.repo.SetPullRequest(number, head, "")
	pr := holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: infra, Number: number}, Title: branch, Author: "bob",
		State: holdfast.PullRequestOpen, Branch: branch, Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	}
	for _, change := range with {
		change(&pr)
	}
	f.forge.set(pr)
}

// push adds a commit to a pull request's branch.
func (f *fleet) push(number int, files map[string]string) {
	f.t.Helper()
	pr := f.forge.get(number)
	head := f.repo.Commit(pr.Branch, "more", files)
	f.repo.SetPullRequest(number, head, "")
	pr.Head = holdfast.Revision(head)
	f.forge.set(pr)
	f.lookAt(number)
}

// change edits what the code host says of a pull request.
func (f *fleet) change(number int, how func(*holdfast.PullRequest)) {
	f.t.Helper()
	pr := f.forge.get(number)
	how(&pr)
	f.forge.set(pr)
	f.lookAt(number)
}

func (f *fleet) lookAt(number int) {
	f.t.Helper()
	f.must(f.r.TakeIn(f.t.Context(), infra, number))
	f.settle()
}

// merge merges a pull request by way, and has the branch looked at.
func (f *fleet) merge(number int, way func(*gitserver.Repo, holdfast.PullRequest) string) {
	f.t.Helper()
	f.mergeUnnoticed(number, way)
	f.look()
}

func (f *fleet) mergeUnnoticed(number int, way func(*gitserver.Repo, holdfast.PullRequest) string) {
	f.t.Helper()
	pr := f.forge.get(number)
	pr.MergeCommit = holdfast.Revision(way(f.repo, pr))
	pr.State, pr.MergedAt = holdfast.PullRequestMerged, f.clock.Now()
	f.forge.set(pr)
}

func byMerge(repo *gitserver.Repo, pr holdfast.PullRequest) string {
	return repo.Merge(master, pr.Branch)
}

func bySquash(repo *gitserver.Repo, pr holdfast.PullRequest) string {
	return repo.Squash(master, pr.Branch, "squashed")
}

// claim hands the next run to the agent; the zero Assignment if there is none.
func (f *fleet) claim(executing ...holdfast.AttemptRef) protocol.Assignment {
	f.t.Helper()
	a, err := f.r.Dispatcher().Claim(f.t.Context(), protocol.ClaimRequest{Agent: "agent", Executing: executing})
	if err != nil && !strings.Contains(err.Error(), holdfast.ErrNotFound.Error()) {
		f.t.Fatal(err)
	}
	return a
}

// left leaves what an agent leaves of the plan that it has made, which is the
// summary that a test has stored, or else a plan that depends on what is planned,
// and returns the result with the document's digest.
func (f *fleet) left(a protocol.Assignment, result protocol.Result) protocol.Result {
	f.t.Helper()
	if result.PlanDigest != "" || !result.Status.Good() {
		return result
	}
	var plan holdfast.Plan
	if file, err := f.store.Artefact(f.t.Context(), a.Run, protocol.ArtefactPlan); err == nil {
		f.must(json.NewDecoder(file).Decode(&plan))
		f.must(file.Close())
	}
	switch {
	case result.Status == holdfast.RunNoChanges:
		plan.Changes, plan.OutputChanges, plan.Counts = nil, nil, holdfast.Counts{}
	case len(plan.Changes)+len(plan.OutputChanges) == 0 && plan.Counts.Zero():
		plan.Counts.Create = 1
	}
	if len(plan.Changes) == 0 && plan.Counts.Create > 0 {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{
			Address: "null_resource.main", Type: "null_resource", Action: holdfast.ActionCreate,
			Attributes: []holdfast.AttributeChange{{Path: "source", After: json.RawMessage(strconv.Quote(string(a.SourceDigest) + f.finding))}},
		})
	}
	document, info, digest, err := plandoctest.Artefacts(plan)
	f.must(err)
	f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactDocument, bytes.NewReader(document)))
	f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactInfo, bytes.NewReader(info)))
	result.PlanDigest = digest
	return result
}

// finish ends an attempt and works off what follows.
func (f *fleet) finish(a protocol.Assignment, result protocol.Result) {
	f.t.Helper()
	result.Fence = a.Fence
	f.must(f.r.Dispatcher().Finish(f.t.Context(), a.AttemptRef, f.left(a, result)))
	f.settle()
}

// execute claims and ends the next run.
func (f *fleet) execute(result func(protocol.Assignment) protocol.Result) holdfast.Run {
	f.t.Helper()
	a := f.claim()
	if a.Run == "" {
		f.t.Fatal("there is nothing to claim")
	}
	made := holdfast.Plan{Counts: holdfast.Counts{Create: 1}}
	for _, address := range a.MayExist {
		made.Changes = append(made.Changes, holdfast.ResourceChange{Address: address, Action: holdfast.ActionCreate})
	}
	plan, err := json.Marshal(made)
	f.must(err)
	f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(plan)))
	f.finish(a, result(a))
	run, err := f.store.Run(f.t.Context(), a.Run)
	f.must(err)
	return run
}

// executeAll executes until there is nothing to claim, and posts what is to be
// seen then.
func (f *fleet) executeAll(result func(protocol.Assignment) protocol.Result) {
	f.t.Helper()
	for {
		a := f.claim()
		if a.Run == "" {
			break
		}
		f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
		f.finish(a, result(a))
	}
	f.post()
}

// planned and applied are what an engine makes of runs that go well: a plan
// that depends on what it plans, and applies that find what was reviewed.
func planned(a protocol.Assignment) protocol.Result {
	return protocol.Result{
		Status: holdfast.RunPlanned, InputDigest: "sha256:in-" + a.SourceDigest,
	}
}

func good(a protocol.Assignment) protocol.Result {
	if a.Kind == holdfast.RunPlan {
		return planned(a)
	}
	result := planned(a)
	result.Status, result.Applying = holdfast.RunApplied, true
	return result
}

func failing(a protocol.Assignment) protocol.Result {
	return protocol.Result{Status: holdfast.RunErrored, Reason: "EngineFailed", Applying: a.Kind.Writes(), Failure: &holdfast.Failure{
		Step: "apply", Summary: "no such instance type", Cause: "InvalidConfiguration",
	}}
}

func transient(a protocol.Assignment) protocol.Result {
	result := failing(a)
	result.Failure.Transient = true
	return result
}

// post works off the outbox.
func (f *fleet) post() {
	f.t.Helper()
	for {
		n, err := f.r.Post(f.t.Context())
		f.must(err)
		if n == 0 {
			return
		}
	}
}

func (f *fleet) cluster(name string) holdfast.ClusterRecord {
	f.t.Helper()
	rec, err := f.store.Cluster(f.t.Context(), name)
	f.must(err)
	return rec
}

func (f *fleet) pullRequest(number int) holdfast.PullRequestRecord {
	f.t.Helper()
	rec, err := f.store.PullRequest(f.t.Context(), holdfast.PullRequestRef{Repo: infra, Number: number})
	f.must(err)
	return rec
}

// affected are the clusters that a pull request changes.
func (f *fleet) affected(number int) []string {
	f.t.Helper()
	var names []string
	for _, c := range f.pullRequest(number).Clusters {
		names = append(names, c.Name)
	}
	return names
}

// runs tells the runs of a cluster, oldest first, as "kind status reason".
func (f *fleet) runs(cluster string) []string {
	f.t.Helper()
	all, err := f.store.Runs(f.t.Context(), holdfast.RunFilter{Cluster: cluster})
	f.must(err)
	var out []string
	for _, run := range slices.Backward(all) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", run.Kind, run.Status, run.Reason)))
	}
	return out
}

func (f *fleet) newest(cluster string) holdfast.Run {
	f.t.Helper()
	all, err := f.store.Runs(f.t.Context(), holdfast.RunFilter{Cluster: cluster, Limit: 1})
	f.must(err)
	if len(all) == 0 {
		f.t.Fatalf("%s has no run", cluster)
	}
	return all[0]
}

func (f *fleet) expectRuns(cluster string, want ...string) {
	f.t.Helper()
	if got := f.runs(cluster); !slices.Equal(got, want) {
		f.t.Fatalf("runs of %s:\n%s\nwant\n%s", cluster, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// adopt has all clusters taken over as they are.
func (f *fleet) adopt() {
	f.t.Helper()
	f.look()
	f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
}

// document is a cluster whose root module is infra/NAME, with more lines of spec.
func document(name string, more ...string) string {
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: %s}
spec:
  project: p
  environment: e
  module: {path: infra/%s}
%s`, name, name, indent(more))
}

// templated is a cluster of a template in the same repository.
func templated(name, template string) string {
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: %s}
spec:
  project: p
  environment: e
  template: %s
  provider: any
`, name, template)
}

func indent(lines []string) string {
	out := ""
	for _, line := range lines {
		out += "  " + line + "\n"
	}
	return out
}

func module(text string) string {
	return "resource \"terraform_data\" \"x\" {\n  input = \"" + text + "\"\n}\n"
}

// twoClusters are prod and preprod, each with its own module.
func twoClusters() map[string]string {
	return map[string]string{
		"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one"),
		"clusters/preprod.yaml": document("preprod"), "infra/preprod/main.tf": module("one"),
		"README.md": "hello",
	}
}

// twoOfTemplate adds web-a and web-b, of a template in a folder.
func twoOfTemplate() map[string]string {
	files := twoClusters()
	maps.Copy(files, webTemplate("one"))
	files["clusters/a.yaml"] = templated("web-a", "{path: ../templates/web}")
	files["clusters/b.yaml"] = templated("web-b", "{path: ../templates/web}")
	return files
}

func webTemplate(text string) map[string]string {
	return map[string]string{
		"templates/web/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    any:
      modules:
        - {name: site, source: ./modules/site}
`,
		"templates/web/modules/site/main.tf": module(text),
	}
}

// commandsOf returns the commands of a comment as the webhook does.
func commandsOf(comment holdfast.Comment) []holdfast.Command {
	commands := parseCommands(comment.Body)
	if comment.Edited() && len(commands) > 1 {
		commands = commands[:1]
	}
	for i := range commands {
		c := &commands[i]
		c.ID = holdfast.CommandID(comment.PullRequest.Repo, comment.ID, i)
		c.PullRequest, c.CommentID, c.Author = comment.PullRequest, comment.ID, comment.Author
		c.Status, c.CreatedAt = holdfast.CommandReceived, comment.CreatedAt.Add(time.Duration(i)*time.Millisecond)
		c.Said = comment.UpdatedAt
		if !comment.ByAuthor() {
			c.Barred = "the comment was edited"
		}
	}
	return commands
}

// parseCommands reads lines such as "/holdfast apply prod".
func parseCommands(body string) []holdfast.Command {
	var out []holdfast.Command
	for line := range strings.Lines(body) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "/holdfast" {
			continue
		}
		c := holdfast.Command{Verb: holdfast.Verb(words[1]), Text: strings.TrimSpace(line)}
		for _, word := range words[2:] {
			if word == "--force" {
				c.Force = true
				continue
			}
			c.Clusters = append(c.Clusters, word)
		}
		out = append(out, c)
	}
	return out
}

// codeHost is a forge in memory that counts what it is asked for.
type codeHost struct {
	clock *clock

	mu         sync.Mutex
	prs        map[int]holdfast.PullRequest
	comments   []holdfast.Comment
	statuses   map[string]holdfast.CommitStatus // by revision and context
	reactions  map[string]holdfast.Reaction     // by comment
	permission map[string]holdfast.Permission
	calls      map[string]int
	fail       map[string]error                                // by the name of the call
	lose       int                                             // answers to PutComment that get lost
	atMost     int                                             // comments in one list; zero: all
	watch      func(call string, status holdfast.CommitStatus) // told of each call before it is carried out
	posted     []holdfast.CommitStatus                         // all that were set, in order
	issueHost
	proposalHost
}

func newCodeHost(c *clock) *codeHost {
	return &codeHost{
		clock: c, prs: map[int]holdfast.PullRequest{}, statuses: map[string]holdfast.CommitStatus{},
		reactions: map[string]holdfast.Reaction{}, calls: map[string]int{}, fail: map[string]error{},
		permission: map[string]holdfast.Permission{"alice": holdfast.PermissionWrite, "eve": holdfast.PermissionRead},
	}
}

func (h *codeHost) called(call string) error {
	h.calls[call]++
	return h.fail[call]
}

func (h *codeHost) set(pr holdfast.PullRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pr.UpdatedAt = h.clock.Now()
	h.prs[pr.Number] = pr
}

func (h *codeHost) get(number int) holdfast.PullRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prs[number]
}

func (h *codeHost) failWith(call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail[call] = err
}

func (h *codeHost) count(call string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[call]
}

// delete deletes our comments in a pull request, and delivers nothing.
func (h *codeHost) delete(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.comments {
		if c := &h.comments[i]; c.Bot && c.PullRequest.Number == number {
			*c = holdfast.Comment{ID: "deleted"}
		}
	}
}

// ours are the comments that we have made.
func (h *codeHost) ours() []holdfast.Comment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.comments), func(c holdfast.Comment) bool { return !c.Bot })
}

func (h *codeHost) status(rev holdfast.Revision, name string) holdfast.StatusState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statuses[string(rev)+name].State
}

// told are the descriptions of the statuses that a commit was given, in order.
func (h *codeHost) told(rev holdfast.Revision, name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, s := range h.posted {
		if s.Revision == rev && s.Context == name {
			out = append(out, string(s.State)+" "+s.Description)
		}
	}
	return out
}

// comment is what our comment on a pull request says; empty if there is none.
func (h *codeHost) comment(number int) string {
	for _, c := range h.ours() {
		if c.PullRequest.Number == number {
			return c.Body
		}
	}
	return ""
}

// says writes a person's comment, unheard of until somebody polls. It takes them
// a second to read what is there.
func (h *codeHost) says(number int, author, body string) holdfast.Comment {
	h.clock.Advance(time.Second)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	c := holdfast.Comment{
		ID: fmt.Sprint(len(h.comments) + 1), PullRequest: holdfast.PullRequestRef{Repo: infra, Number: number},
		Author: author, Body: body, CreatedAt: now, UpdatedAt: now,
	}
	h.comments = append(h.comments, c)
	return c
}

func (h *codeHost) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	if err := queue.MayWait(ctx, ref.Repo); err != nil { // it may hang
		return holdfast.PullRequest{}, errors.New("asked by what keeps others waiting: " + err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("PullRequest"); err != nil {
		return holdfast.PullRequest{}, err
	}
	pr, ok := h.prs[ref.Number]
	if !ok {
		return pr, holdfast.ErrNotFound
	}
	return pr, nil
}

func (h *codeHost) PullRequests(_ context.Context, _ string, since time.Time) ([]holdfast.PullRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []holdfast.PullRequest
	for _, n := range slices.Sorted(maps.Keys(h.prs)) {
		pr := h.prs[n]
		pr.Approved, pr.Verdicts, pr.Mergeable = false, nil, false // lists leave them out
		if pr.State == holdfast.PullRequestOpen || !pr.UpdatedAt.Before(since) {
			out = append(out, pr)
		}
	}
	return out, h.called("PullRequests")
}

func (h *codeHost) PullRequestsOf(_ context.Context, _ string, commit holdfast.Revision) ([]holdfast.PullRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []holdfast.PullRequest
	for _, pr := range h.prs {
		if pr.MergeCommit == commit {
			out = append(out, pr)
		}
	}
	return out, h.called("PullRequestsOf")
}

func (h *codeHost) Comments(_ context.Context, _ string, since time.Time) (holdfast.CommentList, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list holdfast.CommentList
	for _, c := range h.comments {
		if c.UpdatedAt.Before(since) {
			continue
		}
		if list.More = h.atMost > 0 && len(list.Comments) == h.atMost; list.More {
			break
		}
		list.Comments = append(list.Comments, c)
		list.Until = c.UpdatedAt
	}
	return list, h.called("Comments")
}

func (h *codeHost) Comment(_ context.Context, _ holdfast.PullRequestRef, id string) (holdfast.Comment, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := cmp.Or(h.called("Comment"), h.called("Comment "+id)); err != nil {
		return holdfast.Comment{}, err
	}
	i := slices.IndexFunc(h.comments, func(c holdfast.Comment) bool { return c.ID == id })
	if i < 0 {
		return holdfast.Comment{}, holdfast.ErrNotFound
	}
	h.calls["Comment of "+h.comments[i].Author]++
	return h.comments[i], nil
}

func (h *codeHost) Permission(_ context.Context, _, user string) (holdfast.Permission, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.permission[user], h.called("Permission")
}

func (h *codeHost) PutComment(
	_ context.Context, ref holdfast.PullRequestRef, id, marker, body string,
) (holdfast.Comment, error) {
	if h.watch != nil {
		h.watch("PutComment", holdfast.CommitStatus{})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("PutComment"); err != nil {
		return holdfast.Comment{}, err
	}
	now := h.clock.Now()
	i := slices.IndexFunc(h.comments, func(c holdfast.Comment) bool {
		return c.Bot && (c.ID == id || id == "" && marker != "" && c.PullRequest == ref && strings.Contains(c.Body, marker))
	})
	if i < 0 {
		h.comments = append(h.comments, holdfast.Comment{
			ID: fmt.Sprint(len(h.comments) + 1), PullRequest: ref, Author: "holdfast", Bot: true, CreatedAt: now,
		})
		i = len(h.comments) - 1
	}
	if id != "" || h.comments[i].Body != body { // what is found and says it already stays as it is
		h.comments[i].Body, h.comments[i].UpdatedAt = body, now
	}
	if h.lose > 0 {
		h.lose--
		return holdfast.Comment{}, holdfast.ErrUnavailable
	}
	return h.comments[i], nil
}

func (h *codeHost) SetStatus(_ context.Context, _ string, status holdfast.CommitStatus) error {
	if h.watch != nil {
		h.watch("SetStatus", status)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("SetStatus"); err != nil {
		return err
	}
	h.statuses[string(status.Revision)+status.Context] = status
	h.posted = append(h.posted, status)
	return nil
}

func (h *codeHost) React(_ context.Context, _ holdfast.PullRequestRef, comment string, reaction holdfast.Reaction) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("React"); err != nil {
		return err
	}
	h.reactions[comment] = reaction
	return nil
}
