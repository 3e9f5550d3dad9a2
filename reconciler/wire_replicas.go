package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/intake"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/relay"
	"github.com/holdfast-dev/holdfast/replica"
)

// peering is the Reconciler among other replicas.
type peering struct{ r *Reconciler }

// The topics by which replicas hurry one another. What is lost of them is seen within a second.
const (
	topicLeases   = "leases"
	topicRefs     = "refs"
	topicCommands = "commands"
	topicAsks     = "asks:" // and a repository
)

func newLeader(r *Reconciler) *leader.Keeper {
	opts := leader.Options{
		Identity: r.opts.Replica.Identity, Process: r.opts.Replica.Process, Logger: r.opts.Telemetry.Logger,
		Hooks: leader.Hooks{
			Gaining: peering{r}.gaining, Gained: peering{r}.gained, Died: peering{r}.peerDied,
			Given: func(ctx context.Context) { r.wakeOthers(ctx, topicLeases) },
		},
	}
	if r.opts.Replica.Peers != nil {
		opts.Leases = r.opts.Replica.Peers
	}
	for _, repo := range r.opts.Sources.Repositories {
		opts.Repositories = append(opts.Repositories, repo.Name)
	}
	return leader.New(opts)
}

func newDesk(r *Reconciler) *relay.Desk {
	if r.opts.Replica.Peers == nil {
		return nil
	}
	return relay.New(relay.Options{
		Store: r.opts.Replica.Peers, Led: r.leader.Led, Take: peering{r}.takeAsk, Log: r.opts.Telemetry.Logger,
		Told: func(ctx context.Context, repo string) { r.wakeOthers(ctx, topicAsks+repo) },
	})
}

// gaining forgets what this replica remembers of a repository that it is about to lead:
// another one has worked on it meanwhile.
func (p peering) gaining(repo string) {
	if repo == leader.Fleet {
		return
	}
	p.r.toldRefs.Delete(repo)
	p.r.intake.Forget(repo)
	p.r.impacts.ForgetRepository(repo)
	p.r.upgrades.Forget(repo)
	p.r.publish.Forget(repo)
}

// gained asks for everything of a repository that this replica leads from now on, as after a
// start.
func (p peering) gained(repo string) {
	p.r.commands.CommandStored()
	p.r.publish.Wake()
	if repo == leader.Fleet {
		p.r.drift.Wake()
		return
	}
	p.r.intake.Gained(repo)
	if p.r.desk != nil {
		p.r.desk.Wake()
	}
}

// peerDied asks for everything that this replica leads: what the one that has died was asked
// for may be lost.
func (p peering) peerDied() {
	select {
	case p.r.deaths <- struct{}{}:
	default: // it is about to be done
	}
}

// take is intake.Take for what this replica leads; the rest is handed over.
func (p peering) take(ctx context.Context, look agenda.Look) error {
	if p.r.leader.Leads(look.Repo) {
		return p.r.intake.Take(ctx, look)
	}
	if look.Number != 0 {
		return p.handOver(ctx, replica.Ask{
			Repo: look.Repo, Kind: replica.AskLook, What: strconv.Itoa(look.Number), Note: p.r.traces.Of(look.Repo, look.Number),
		})
	}
	again := p.r.intake.HandOver(look.Repo)
	asks := []replica.Ask{{Repo: look.Repo, Kind: replica.AskLook, What: "0", Note: p.r.traces.Of(look.Repo, 0)}}
	if again.Relook {
		asks = append(asks, replica.Ask{Repo: look.Repo, Kind: replica.AskRelook})
	}
	if again.Behind {
		asks = append(asks, replica.Ask{Repo: look.Repo, Kind: replica.AskBehind})
	}
	for _, cluster := range again.Recheck {
		asks = append(asks, replica.Ask{Repo: look.Repo, Kind: replica.AskRecheck, What: cluster})
	}
	for _, ask := range asks {
		if err := p.handOver(ctx, ask); err != nil {
			p.r.intake.Keep(look.Repo, again)
			return err
		}
	}
	return nil
}

// decide is act.Loop.Once for the clusters of what this replica leads; the rest is handed over.
func (p peering) decide(ctx context.Context, req holdfast.Request) error {
	repo, err := p.placeOf(ctx, req)
	if err != nil {
		return err
	}
	if p.r.leader.Leads(repo) {
		return p.r.loop.Once(ctx, req)
	}
	what, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return p.handOver(ctx, replica.Ask{Repo: repo, Kind: replica.AskDecide, What: string(what)})
}

// placeOf is what has to be led to decide about a request.
func (p peering) placeOf(ctx context.Context, req holdfast.Request) (string, error) {
	switch {
	case p.r.leader.Alone():
		return leader.Fleet, nil
	case !req.PullRequest.IsZero():
		return p.r.leader.Place(req.PullRequest.Repo), nil
	}
	owner, err := p.r.opts.Replica.Peers.Owner(ctx, req.Cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return leader.Fleet, nil // there is nothing to decide
	}
	return p.r.leader.Place(owner), err
}

// handOver asks who leads a repository for something. What that is stays on the agenda here
// until it is stored.
func (p peering) handOver(ctx context.Context, ask replica.Ask) error {
	if p.r.desk == nil {
		return nil
	}
	return p.r.desk.Put(ctx, ask)
}

// takeAsk puts on the agenda what another replica asks for.
func (p peering) takeAsk(ctx context.Context, ask replica.Ask) {
	var err error
	switch ask.Kind {
	case replica.AskLook:
		var number int
		if number, err = strconv.Atoi(ask.What); err == nil {
			p.r.traces.Remember(ask.Repo, number, ask.Note)
			p.r.agenda.Look(agenda.Look{Repo: ask.Repo, Number: number})
		}
	case replica.AskRelook:
		p.r.intake.Again(ask.Repo, intake.Forgotten{Relook: true})
	case replica.AskBehind:
		p.r.intake.Again(ask.Repo, intake.Forgotten{Behind: true})
	case replica.AskRecheck:
		p.r.intake.Again(ask.Repo, intake.Forgotten{Recheck: []string{ask.What}})
	case replica.AskDecide:
		var req holdfast.Request
		if err = json.Unmarshal([]byte(ask.What), &req); err == nil {
			p.r.agenda.Request(req)
		}
	case replica.AskShow, replica.AskIssue:
		err = p.r.publish.Take(ask)
	default:
		err = errors.New("a replica of another version asks for it")
	}
	if err != nil {
		p.r.opts.Telemetry.Logger.WarnContext(ctx, "what a replica asks for is not understood", "kind", ask.Kind, "repo", ask.Repo, "err", err)
	}
}

// leading is the leader.Keeper as the rooms see it.
type leading struct {
	*leader.Keeper
	r *Reconciler
}

// Fetched tells other replicas what a repository has.
func (l leading) Fetched(ctx context.Context, repo string, refs holdfast.Refs) {
	if l.Alone() || refs == nil || !l.Leads(repo) {
		return
	}
	digest := refs.Digest()
	if last, _ := l.r.toldRefs.Load(repo); last == digest {
		return
	}
	if err := l.r.opts.Replica.Peers.SaveRefs(ctx, repo, digest); err != nil {
		l.r.opts.Telemetry.Logger.WarnContext(ctx, "what was fetched was not announced to other replicas", "repo", repo, "err", err)
		return
	}
	l.r.toldRefs.Store(repo, digest)
	l.r.wakeOthers(ctx, topicRefs)
}

// Carries reports whether this replica carries out a command: who leads the repository of its
// pull request, or of its first cluster.
func (l leading) Carries(ctx context.Context, c holdfast.Command) (bool, error) {
	if l.Alone() {
		return true, nil
	}
	req := holdfast.Request{PullRequest: c.PullRequest}
	if c.PullRequest.IsZero() && len(c.Clusters) > 0 {
		req.Cluster = c.Clusters[0]
	}
	repo, err := peering{l.r}.placeOf(ctx, req)
	return err == nil && l.Leads(repo), err
}

// TakeCommand reports whether a command of the API is this replica's to carry out.
func (l leading) TakeCommand(ctx context.Context, id string) (bool, error) {
	if l.Alone() {
		return true, nil
	}
	return l.r.opts.Replica.Peers.TakeCommand(ctx, id, l.Owner())
}

// CommandGiven tells other replicas that a command is in the store.
func (l leading) CommandGiven(ctx context.Context) { l.r.wakeOthers(ctx, topicCommands) }

// HearAgent records a sign of life of an agent.
func (f fleet) HearAgent(ctx context.Context, req protocol.ClaimRequest, was string, silence time.Duration) (bool, error) {
	if f.r.opts.Replica.Peers == nil {
		return true, nil
	}
	return f.r.opts.Replica.Peers.HearAgent(ctx, req, was, silence)
}

// HeardAgents returns those that another replica may have heard of.
func (f fleet) HeardAgents(ctx context.Context, id string) ([]replica.AgentSign, error) {
	if f.r.opts.Replica.Peers == nil {
		return nil, nil
	}
	return f.r.opts.Replica.Peers.HeardAgents(ctx, id)
}

// Sweeps reports whether this replica sees to silent attempts.
func (f fleet) Sweeps() bool { return f.r.leader.Leads(leader.Fleet) }

// followEvery is how often a replica looks for what it was not notified of.
const followEvery = time.Second

// follow sees to what other replicas do, until ctx is done.
func (p peering) follow(ctx context.Context) error {
	if p.r.leader.Alone() {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		p.r.leader.Run, p.r.desk.Run, p.followChanges, p.followRefs, p.followDeaths, p.prune,
	} {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// each calls do in a rhythm until ctx is done.
func (p peering) each(ctx context.Context, every time.Duration, woken func() <-chan struct{}, what string, do func(context.Context) error) error {
	var trouble queue.Trouble
	for {
		wake := woken()
		if err := do(ctx); err == nil {
			trouble.Over()
		} else if ctx.Err() == nil && trouble.Says(err, p.r.opts.Now()) {
			p.r.opts.Telemetry.Logger.WarnContext(ctx, "what other replicas do was not looked for", "action", what, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(every):
		}
	}
}

func never() <-chan struct{} { return nil }

// followChanges has everybody look who waits for what another replica may have written.
func (p peering) followChanges(ctx context.Context) error {
	last := int64(-1)
	return p.each(ctx, followEvery, never, "changes", func(ctx context.Context) error {
		now, err := p.r.opts.Store.LastChange(ctx)
		if err != nil || now == last {
			return err
		}
		last = now
		p.r.dispatcher.Woken(dispatch.TopicWork)
		p.r.publish.Wake()
		p.r.drift.Wake()
		return nil
	})
}

// followRefs fetches the repositories that other replicas lead when these have seen something
// new there.
func (p peering) followRefs(ctx context.Context) error {
	var fetches errgroup.Group
	var busy busyRepos
	seen := make(map[string]holdfast.Digest)
	err := p.each(ctx, followEvery, p.r.refsMoved.Wait, "refs", func(ctx context.Context) error {
		refs, err := p.r.opts.Replica.Peers.Refs(ctx)
		for repo, digest := range refs {
			if p.r.leader.Leads(repo) || seen[repo] == digest || p.r.intake.RefsDigest(repo) == digest || !busy.begin(repo) {
				continue
			}
			seen[repo] = digest
			fetches.Go(func() error {
				defer busy.end(repo)
				if err := p.r.intake.Follow(ctx, repo); err != nil && ctx.Err() == nil {
					p.r.opts.Telemetry.Logger.DebugContext(ctx, "repository that another replica leads was not fetched", "repo", repo, "err", err)
				}
				return nil
			})
		}
		return err
	})
	return errors.Join(err, fetches.Wait())
}

// followDeaths asks for everything again after another replica has died.
func (p peering) followDeaths(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.r.deaths:
			p.r.commands.CommandStored()
			p.r.intake.ResumeAfter(ctx)
		}
	}
}

// prune removes what replicas have left, now and then.
func (p peering) prune(ctx context.Context) error {
	return p.each(ctx, time.Hour, never, "prune", func(ctx context.Context) error {
		if !p.r.leader.Leads(leader.Fleet) {
			return nil
		}
		return p.r.opts.Replica.Peers.Prune(ctx)
	})
}

// wokenByPeer handles a topic that is about replicas; false if it is not.
func (p peering) wokenByPeer(topic string) bool {
	repo, asked := strings.CutPrefix(topic, topicAsks)
	switch {
	case topic == topicLeases:
		p.r.leader.Nudge()
	case topic == topicRefs:
		p.r.refsMoved.Send()
	case topic == topicCommands:
		p.r.commands.CommandStored()
	case asked && p.r.desk != nil && p.r.leader.Leads(repo):
		p.r.desk.Wake()
	case asked:
	default:
		return false
	}
	return true
}

// Leave hands out no more runs, and has other replicas lead what this one does, if there are
// any: it is about to end.
func (r *Reconciler) Leave(ctx context.Context) {
	r.dispatcher.Drain()
	if r.leader.Others() {
		r.leave(ctx)
	}
}

// busyRepos are repositories that are being fetched.
type busyRepos struct {
	mu    sync.Mutex
	repos map[string]bool
}

func (b *busyRepos) begin(repo string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.repos[repo] {
		return false
	}
	if b.repos == nil {
		b.repos = make(map[string]bool)
	}
	b.repos[repo] = true
	return true
}

func (b *busyRepos) end(repo string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.repos, repo)
}
