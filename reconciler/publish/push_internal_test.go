package publish

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
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
