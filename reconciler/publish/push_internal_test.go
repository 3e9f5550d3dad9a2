package publish

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// branch has one cluster, with a run on its tracked branch.
type branch struct {
	records
	rec holdfast.ClusterRecord
	run holdfast.Run
}

func (b *branch) ClusterNames(context.Context, holdfast.ClusterFilter) ([]string, error) {
	return []string{b.rec.Name}, nil
}

func (b *branch) Clusters(context.Context, holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	return []holdfast.ClusterRecord{b.rec}, nil
}

func (b *branch) Runs(context.Context, holdfast.RunFilter) ([]holdfast.Run, error) {
	return []holdfast.Run{b.run}, nil
}

// The status of a commit says nothing of what a cluster waited for with an earlier
// one: until a decision was made about this one, nobody knows what that waits for.
func TestAPushIsNotShownAnEarlierWait(t *testing.T) {
	t.Parallel()
	for about, want := range map[holdfast.Revision]string{
		"earlier": "applying 1 cluster", "pushed": "no living agent for prod", "": "no living agent for prod",
	} {
		t.Run("about "+string(about), func(t *testing.T) {
			t.Parallel()
			b := &branch{
				rec: holdfast.ClusterRecord{Name: "prod", Owner: ref.Repo, Waiting: holdfast.ReasonNoAgent, WaitingFor: about},
				run: holdfast.Run{ID: "run-1", Cluster: "prod", Kind: holdfast.RunPlan, Status: holdfast.RunQueued},
			}
			b.rec.Desired.Revision, b.run.Revision = "pushed", "pushed"
			p := New(Options{
				Store: b, Watcher: &watcher{}, Logger: slog.New(slog.DiscardHandler), Settings: Settings{Now: func() time.Time { return noon }},
				Forges: map[string]Forge{ref.Repo: host{}},
			})
			if err := p.showPush(t.Context(), showKey{repo: ref.Repo, revision: "pushed"}); err != nil {
				t.Fatal(err)
			}
			if len(b.wanted) != 1 || !strings.HasPrefix(b.wanted[0].Status.Description, want) {
				t.Errorf("shown is %+v, want %q", b.wanted, want)
			}
		})
	}
}

// left has many clusters, the status of whose commit waits.
type left struct {
	records
	read int
}

func (l *left) Post(context.Context, string) (outgoing.Post, error) {
	return outgoing.Post{Status: holdfast.CommitStatus{State: holdfast.StatusPending}}, nil
}

func (l *left) ClusterNames(context.Context, holdfast.ClusterFilter) ([]string, error) {
	return make([]string, pushQuick+1), nil
}

func (l *left) Clusters(context.Context, holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	l.read++
	return nil, nil
}

// Of many clusters that leave a commit one after another, each one that does costs a word to
// remember it by: they are read after a while, for all of them.
func TestOfManyThatLeaveACommitNoneIsReadAtOnce(t *testing.T) {
	t.Parallel()
	l := &left{}
	p := New(Options{Store: l, Watcher: &watcher{}, Logger: slog.New(slog.DiscardHandler), Settings: Settings{Now: func() time.Time { return noon }}})
	key := showKey{repo: ref.Repo, revision: "pushed", left: true}
	if err := p.showPush(t.Context(), key); err != nil || l.read != 0 {
		t.Errorf("they were read %d times at once, %v", l.read, err)
	}
	key.calm = true
	if err := p.showPush(t.Context(), key); err != nil || l.read == 0 {
		t.Errorf("they were read %d times later, %v", l.read, err)
	}
}
