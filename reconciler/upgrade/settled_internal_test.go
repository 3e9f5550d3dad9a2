package upgrade

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/rollout"
)

// What a pull request was made from says nothing once another replica has made something else
// of it, or has led the repository.
func TestWhatAnotherReplicaHasProposed(t *testing.T) {
	t.Parallel()
	k := NewKeeper(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	rec := rollout.Upgrade{Repo: "fleet", Branch: "holdfast/web", Digest: "sha256:ours"}
	k.settle(rec, "sha256:from", rec.Digest)
	if !k.isSettled(rec, "sha256:from") || k.isSettled(rec, "sha256:another") {
		t.Error("it is not known what a pull request was made from")
	}
	theirs := rec
	theirs.Digest = "sha256:theirs"
	if k.isSettled(theirs, "sha256:from") {
		t.Error("what another replica has proposed is taken for ours")
	}
	k.Forget("other")
	if !k.isSettled(rec, "sha256:from") {
		t.Error("another repository was forgotten")
	}
	k.Forget("fleet")
	if k.isSettled(rec, "sha256:from") {
		t.Error("it is still remembered")
	}
}
