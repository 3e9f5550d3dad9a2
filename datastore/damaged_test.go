package datastore_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/rollout"
)

// What is damaged, gone or sealed with a key that is gone does not stop what comes after
// it.

// TestADamagedBundleIsStoredAgain: the content is what it was, and so is its digest.
func TestADamagedBundleIsStoredAgain(t *testing.T) {
	t.Parallel()
	blob := func(t *testing.T, dir string) string {
		for file := range blobFiles(t, dir) {
			return file
		}
		t.Fatal("there is no blob")
		return ""
	}
	for name, tt := range map[string]struct {
		size   int
		damage func(t *testing.T, dir string) error
	}{
		"gone": {200 << 10, func(t *testing.T, dir string) error { return os.Remove(blob(t, dir)) }},
		"cut":  {200 << 10, func(t *testing.T, dir string) error { return os.Truncate(blob(t, dir), 100<<10) }},
		"in rows": {100, func(t *testing.T, dir string) error {
			execute(t, filepath.Join(dir, "holdfast.db"), `UPDATE bundles SET inline = x'00'`)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, data := t.TempDir(), noise(tt.size)
			store := openAt(t, datastore.Options{Path: filepath.Join(dir, "holdfast.db")})
			digest := holdfast.DigestOf(data)
			read := func() bool {
				r, err := store.Bundle(t.Context(), digest)
				if err != nil {
					return false
				}
				defer r.Close()
				got, err := io.ReadAll(r)
				return err == nil && bytes.Equal(got, data)
			}
			put := func() {
				t.Helper()
				if err := store.PutBundle(t.Context(), digest, data); err != nil {
					t.Fatal(err)
				}
			}
			put()
			if err := tt.damage(t, dir); err != nil {
				t.Fatal(err)
			}
			if read() {
				t.Fatal("it is read as it was")
			}
			put()
			if !read() {
				t.Error("it cannot be read after it was stored again")
			}
			before := len(blobFiles(t, dir))
			put()
			if after := len(blobFiles(t, dir)); after != before {
				t.Errorf("what can be read was stored again: %d blobs, then %d", before, after)
			}
		})
	}
}

// TestABundleWhoseKeyIsGoneIsStoredAgain: whoever changes keys may take one away too soon.
func TestABundleWhoseKeyIsGoneIsStoredAgain(t *testing.T) {
	t.Parallel()
	path, data := filepath.Join(t.TempDir(), "holdfast.db"), noise(100)
	digest := holdfast.DigestOf(data)
	for _, keys := range []string{"k", "nk", "k"} {
		store, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, []byte(keys)...)})
		if err != nil {
			t.Fatal(err)
		}
		if keys != "k" || must[bool](t)(store.HasBundle(t.Context(), digest)) { // not with the first key
			if err := store.PutBundle(t.Context(), digest, data); err != nil {
				t.Fatal(err)
			}
			r := must[io.ReadCloser](t)(store.Bundle(t.Context(), digest))
			if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, data) {
				t.Errorf("with the keys %q it came back as %d other bytes", keys, len(got))
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADamagedPostHoldsUpNoOther: it is given up, and posted when something is wanted of
// it again.
func TestADamagedPostHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	want(t, store, commentPost("a plan", "abc"))
	posted(t, store, claimPosts(t, store, noon)[0], noon)
	want(t, store, commentPost("another plan", "abc"))
	reply := outgoing.Post{Key: "reply:1", Kind: outgoing.PostReply, Repo: "other", Body: "done"}
	want(t, store, reply)
	execute(t, path, `UPDATE posts SET doc = x'00' WHERE post_key = 'comment:fleet#7'`)
	if got := claimPosts(t, store, noon); len(got) != 1 || got[0].Key != reply.Key {
		t.Fatalf("ClaimPosts() = %+v, want the reply", got)
	}
	later := noon.Add(time.Hour)
	if got := claimPosts(t, store, later); len(got) != 1 || got[0].Key != reply.Key {
		t.Errorf("ClaimPosts() an hour later = %+v, want the reply", got)
	}
	if got := must[outgoing.Post](t)(store.Post(t.Context(), "comment:fleet#7")); !got.GivenUp || got.LastError != "it cannot be read" {
		t.Errorf("Post() = %+v, want it to be given up", got)
	}
	want(t, store, commentPost("another plan", "abc"))
	got := claimPosts(t, store, later)
	if len(got) != 1 || got[0].Body != "another plan" || got[0].Posted != 1 || got[0].Kind != outgoing.PostComment {
		t.Errorf("ClaimPosts() once it is wanted again = %+v", got)
	}
}

// TestADamagedCommandHoldsUpNoOther: neither one that is to be carried out, nor one that
// was withdrawn.
func TestADamagedCommandHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	store := openAt(t, datastore.Options{Path: path})
	for _, id := range []string{"1", "2", "3"} {
		must[bool](t)(store.StoreCommand(ctx, holdfast.Command{ID: id, PullRequest: thePullRequest, CommentID: id, Text: "/holdfast plan", Said: noon}))
	}
	execute(t, path, `UPDATE commands SET doc = x'00' WHERE id = '2'`)
	comment := holdfast.Comment{ID: "3", PullRequest: thePullRequest}
	if err := store.WithdrawCommands(ctx, comment, noon.Add(time.Minute), "edited"); err != nil {
		t.Errorf("WithdrawCommands() = %v", err)
	}
	got := must[[]holdfast.Command](t)(store.Commands(ctx, holdfast.CommandReceived))
	if len(got) != 2 || got[0].ID != "1" || got[0].Barred != "" || got[1].ID != "3" || got[1].Barred != "edited" {
		t.Errorf("Commands() = %+v, want the others, and the last one barred", got)
	}
}

// TestADamagedCommandHoldsUpNoRetention: it stays, and what comes after it goes.
func TestADamagedCommandHoldsUpNoRetention(t *testing.T) {
	t.Parallel()
	dir, ctx := memory.Dir(t), t.Context()
	p := openPast(t, dir, datastore.Retention{})
	for _, id := range []string{"1", "2"} {
		must[bool](t)(p.StoreCommand(ctx, holdfast.Command{
			ID: id, PullRequest: thePullRequest, CommentID: id, Text: "/holdfast plan", Status: holdfast.CommandDone, CreatedAt: noon,
		}))
	}
	execute(t, filepath.Join(dir, "holdfast.db"), `UPDATE commands SET doc = x'00' WHERE id = '1'`)
	p.now.Store(noon.Add(200 * 24 * time.Hour).UnixNano())
	p.sweep()
	if _, err := p.Command(ctx, "2"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Command() of what comes after it = %v, want ErrNotFound", err)
	}
	if _, err := p.Command(ctx, "1"); err == nil || errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Command() of what is damaged = %v, want that it cannot be read", err)
	}
}

// TestDamagedImpactsAreReplaced: they are assessed again with each start.
func TestDamagedImpactsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, now := range map[string][]rollout.Impact{"as before": {{Template: "web"}}, "by others": {{Template: "db"}}, "by none": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
			store := openAt(t, datastore.Options{Path: path})
			put := func(impacts []rollout.Impact) {
				t.Helper()
				if err := store.SaveImpacts(ctx, thePullRequest, impacts); err != nil {
					t.Fatal(err)
				}
			}
			put([]rollout.Impact{{Template: "web"}})
			execute(t, path, `UPDATE impacts SET doc = x'00'`)
			if _, err := store.Impacts(ctx, thePullRequest); err == nil {
				t.Fatal("what is damaged is read without an error")
			}
			put(now)
			if diff := differ(now, must[[]rollout.Impact](t)(store.Impacts(ctx, thePullRequest))); diff != "" {
				t.Errorf("Impacts() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRenameOfDamagedStates: a state that cannot be read under its former name is no more
// readable under the new one, and one that is there already is not overwritten. Neither is
// a reason to try forever.
func TestRenameOfDamagedStates(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	store := openAt(t, datastore.Options{Path: path})
	a := save(t, store, holdfast.ClusterRecord{Name: "a", Applied: holdfast.Applied{Run: "run-0001"}})
	writeState(t, store, 1, "a", stateJSON(1, "lin", "x"))
	if err := store.RenameCluster(ctx, a, holdfast.ClusterRecord{Name: "b", Applied: a.Applied}); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `UPDATE state_versions SET origin = x'00'`)
	b := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "b"))
	if err := store.RenameCluster(ctx, b, holdfast.ClusterRecord{Name: "c", Applied: b.Applied}); err != nil {
		t.Errorf("RenameCluster() = %v", err)
	}
	if _, _, err := store.State(ctx, "clusters/c"); err == nil || errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("State() = %v, want an error that is not ErrNotFound", err)
	}

	writeState(t, store, 2, "there", stateJSON(1, "lin", "x"))
	execute(t, path, `UPDATE state_versions SET inline = x'00' WHERE location = 'clusters/there'`)
	c := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "c"))
	if err := store.RenameCluster(ctx, c, holdfast.ClusterRecord{Name: "there", Applied: c.Applied}); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("RenameCluster() to a name whose state is damaged = %v, want ErrConflict", err)
	}
}

// TestADamagedLocalRecordHoldsUpNoOther: of the forge without a code host, the others are
// read without it, and it is logged once, however often they are.
func TestADamagedLocalRecordHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	var logged bytes.Buffer
	store := openAt(t, datastore.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for n := range 3 {
		ref := holdfast.PullRequestRef{Repo: "fleet", Number: n + 1}
		state := []holdfast.PullRequestState{holdfast.PullRequestMerged, holdfast.PullRequestOpen, holdfast.PullRequestClosed}[n]
		must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, holdfast.PullRequest{PullRequestRef: ref, State: state}))
		must[holdfast.Comment](t)(store.SaveLocalComment(ctx, holdfast.Comment{PullRequest: thePullRequest, Body: string(state)}))
	}
	execute(t, path, `UPDATE local_pull_requests SET doc = x'00' WHERE number = 2`)
	execute(t, path, `UPDATE local_comments SET doc = x'00' WHERE id = 2`)
	for range 3 {
		prs := must[[]holdfast.PullRequest](t)(store.LocalPullRequests(ctx, "fleet"))
		if len(prs) != 2 || prs[0].Number != 3 || prs[1].Number != 1 {
			t.Errorf("LocalPullRequests() = %+v", prs)
		}
		comments := must[[]holdfast.Comment](t)(store.LocalComments(ctx, thePullRequest))
		if len(comments) != 2 || comments[0].ID != "1" || comments[1].ID != "3" {
			t.Errorf("LocalComments() = %+v", comments)
		}
	}
	if n := strings.Count(logged.String(), "cannot be read"); n != 2 {
		t.Errorf("it is logged %d times:\n%s", n, logged.String())
	}
	// Of what is on record of a pull request it is read, and it is mended when it is stored.
	known := holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 2}, State: holdfast.PullRequestOpen, Branch: "b", Head: "1"}
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: known}))
	for _, head := range []holdfast.Revision{"1", "2"} {
		known.Head = head
		if prs := must[[]holdfast.PullRequest](t)(store.LocalPullRequests(ctx, "fleet")); len(prs) != 3 || differ(known, prs[1]) != "" {
			t.Errorf("with what is on record, LocalPullRequests() = %+v", prs)
		}
		known.Head = "2"
		must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, known))
	}
	again := holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "fleet"}, State: holdfast.PullRequestOpen}
	if got := must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, again)); got.Number != 4 {
		t.Errorf("the next one is #%d", got.Number)
	}
}
