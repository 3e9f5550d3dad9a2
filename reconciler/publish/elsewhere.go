// What the replica that leads a repository shows, whichever replica was asked.

package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/replica"
)

// shown is a showKey, or an issueKey, on its way to another replica.
type shown struct {
	Number   int               `json:"number,omitempty"`
	Revision holdfast.Revision `json:"revision,omitempty"`
	Left     bool              `json:"left,omitempty"`
	Cluster  string            `json:"cluster,omitempty"`
}

// showHere updates what a pull request or a commit shows, or asks its leader to.
func (p *Publisher) showHere(ctx context.Context, key showKey) error {
	if p.opts.Settings.Leads(key.repository()) {
		return p.showOnce(ctx, key)
	}
	return p.handOver(ctx, key.repository(), replica.AskShow, shown{Number: key.pullRequest.Number, Revision: key.revision, Left: key.left})
}

// driftHere is showHere for issues.
func (p *Publisher) driftHere(ctx context.Context, key issueKey) error {
	if p.opts.Settings.Leads(key.repo) {
		return p.showDrift(ctx, key)
	}
	return p.handOver(ctx, key.repo, replica.AskIssue, shown{Cluster: key.cluster})
}

func (p *Publisher) handOver(ctx context.Context, repo string, kind replica.AskKind, which shown) error {
	what, err := json.Marshal(which)
	if err != nil {
		return fmt.Errorf("encode what is to be shown: %w", err)
	}
	return p.opts.Settings.HandOver(ctx, replica.Ask{Repo: repo, Kind: kind, What: string(what)})
}

// Take does what another replica asks for.
func (p *Publisher) Take(ask replica.Ask) error {
	var which shown
	if err := json.Unmarshal([]byte(ask.What), &which); err != nil {
		return fmt.Errorf("decode what is to be shown: %w", err)
	}
	switch {
	case ask.Kind == replica.AskIssue:
		p.drifts.Add(issueKey{repo: ask.Repo, cluster: which.Cluster})
	case which.Number != 0:
		p.Show(holdfast.PullRequestRef{Repo: ask.Repo, Number: which.Number})
	default:
		p.shows.Add(showKey{repo: ask.Repo, revision: which.Revision, left: which.Left})
	}
	return nil
}

// Forget forgets what is remembered of a repository, which this replica is about to lead:
// another one has written to it meanwhile.
func (p *Publisher) Forget(repo string) {
	p.mu.Lock()
	maps.DeleteFunc(p.working, func(ref holdfast.PullRequestRef, _ workLook) bool { return ref.Repo == repo })
	maps.DeleteFunc(p.statusesEnded, func(ref holdfast.PullRequestRef, _ headState) bool { return ref.Repo == repo })
	p.mu.Unlock()
	p.issues.mu.Lock()
	delete(p.issueState, repo)
	p.issues.mu.Unlock()
	p.pushes.mu.Lock()
	maps.DeleteFunc(p.checkedAt, func(key showKey, _ pushLook) bool { return key.repo == repo })
	p.pushes.mu.Unlock()
}
