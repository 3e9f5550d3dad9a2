package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// obeyIdle is how often commands are looked for without being told of one:
// another replica may have stored it, or its permission could not be asked for.
const obeyIdle = 10 * time.Second

// permissionPatience is for how long a command waits while the code host refuses
// to say who may command: a credential may be renewed, or it may be lacking.
const permissionPatience = 15 * time.Minute

// CommandStored says that a command is in the store. It never blocks.
func (r *Reconciler) CommandStored() { r.asked.Send() }

// obey works off commands in the order in which they were given, until ctx is
// done.
func (r *Reconciler) obey(ctx context.Context) error {
	for {
		asked := r.asked.Wait()
		r.commandsWaiting(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
		case <-time.After(obeyIdle):
		}
	}
}

func (r *Reconciler) commandsWaiting(ctx context.Context) {
	r.obeying.Lock()
	defer r.obeying.Unlock()
	commands, err := r.opts.Store.Commands(ctx, holdfast.CommandReceived)
	if err != nil {
		r.opts.Logger.ErrorContext(ctx, "commands were not listed", "err", err)
		return
	}
	for _, c := range commands {
		if ctx.Err() != nil {
			return
		}
		begun, done := queue.Begun(ctx)
		_, err := r.execute(begun, c)
		done()
		if err != nil {
			r.opts.Logger.WarnContext(ctx, "command is tried again", "command", c.ID, "err", err)
		}
	}
}

// Command stores a command that came through the API and executes it.
func (r *Reconciler) Command(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	now := r.opts.Now()
	c.ID, c.Status, c.CreatedAt = holdfast.NewID("command", now), holdfast.CommandReceived, now
	r.obeying.Lock() // before it is stored, or it would be found and executed twice
	defer r.obeying.Unlock()
	if _, err := r.opts.Store.StoreCommand(ctx, c); err != nil {
		return c, fmt.Errorf("store command: %w", err)
	}
	return r.execute(context.WithoutCancel(ctx), c)
}

// execute does what a command asks for, or refuses it with a reason; either way
// it is answered. An error means that it has to be tried again.
func (r *Reconciler) execute(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	if other, err := r.forAnotherEntry(ctx, c); err != nil {
		return c, err
	} else if other != "" {
		// Not a word of it in the pull request, where that one answers.
		c.Status, c.Reply, c.DoneAt = holdfast.CommandRefused, "obeyed by repository "+other, r.opts.Now()
		if err := r.opts.Store.FinishCommand(ctx, c); err != nil {
			return c, fmt.Errorf("record command %s: %w", c.ID, err)
		}
		return c, nil
	}
	if err := r.publish.React(ctx, c, holdfast.ReactionSeen); err != nil {
		return c, err
	}
	reply, err := r.carryOut(ctx, &c)
	var refused refusal
	switch {
	case errors.As(err, &refused):
		c.Status, c.Reply = holdfast.CommandRefused, string(refused)
	case err != nil:
		return c, fmt.Errorf("%s: %w", c.Verb, err)
	default:
		c.Status, c.Reply = holdfast.CommandDone, reply
	}
	c.DoneAt = r.opts.Now()
	if err := r.answer(ctx, c); err != nil {
		return c, err
	}
	if err := r.opts.Store.FinishCommand(ctx, c); err != nil {
		return c, fmt.Errorf("record command %s: %w", c.ID, err)
	}
	r.records.Audit(ctx, c.Author, "command."+string(c.Verb), commandObject(c), strings.TrimSpace(string(c.Status)+" "+c.Reply))
	return c, nil
}

func commandObject(c holdfast.Command) string {
	if c.PullRequest.IsZero() {
		return strings.Join(c.Clusters, " ")
	}
	return c.PullRequest.String()
}

// refusal is why a command is not done.
type refusal string

func (r refusal) Error() string { return string(r) }

const upToDate = "it is up to date: nothing to apply"

// asksForGit reports whether a command of the API is about what Git says of clusters,
// and not about the plan of a run.
func asksForGit(c holdfast.Command) bool {
	run := func(name string) bool { return strings.HasPrefix(name, "run-") }
	return c.CommentID == "" && len(c.Shown) == 0 && !slices.ContainsFunc(c.Clusters, run)
}

// errUpToDate refuses an apply in a comment; who asks for one on the command line
// has what they want.
var errUpToDate error = refusal(upToDate)

// answer acknowledges a comment's command, with words where they are needed.
func (r *Reconciler) answer(ctx context.Context, c holdfast.Command) error {
	if c.CommentID == "" {
		return nil
	}
	reaction := holdfast.ReactionDone
	if c.Status == holdfast.CommandRefused {
		reaction = holdfast.ReactionRefused
	}
	if c.Reply != "" {
		if err := r.publish.Reply(ctx, c); err != nil {
			return err
		}
	}
	return r.publish.React(ctx, c, reaction)
}

// carryOut does the command and returns what to tell about it, if anything.
func (r *Reconciler) carryOut(ctx context.Context, c *holdfast.Command) (string, error) {
	if c.Barred != "" {
		return "", refusal(c.Barred)
	}
	if c.Verb == holdfast.VerbHelp {
		return "these are the commands", nil
	}
	if c.Verb == holdfast.VerbUnknown {
		return "", refusal("unknown command")
	}
	if err := r.permitted(ctx, *c); err != nil {
		return "", err
	}
	if !c.PullRequest.IsZero() && (c.Verb == holdfast.VerbPlan || c.Verb == holdfast.VerbApply) {
		if err := r.publish.Retry(ctx, c.PullRequest); err != nil {
			return "", err
		}
	}
	if c.All {
		return r.planAll(ctx, *c)
	}
	if c.CommentID != "" && (c.Verb == holdfast.VerbApply || c.Verb == holdfast.VerbApprove) {
		if err := r.stillShown(ctx, *c); err != nil {
			return "", err
		}
	}
	targets, err := r.targets(ctx, *c)
	if err != nil {
		return "", err
	}
	switch c.Verb {
	case holdfast.VerbPlan:
		return r.each(ctx, c, targets, r.planFor)
	case holdfast.VerbApply:
		return r.each(ctx, c, targets, r.applyFor)
	case holdfast.VerbApprove:
		return r.approve(ctx, *c, targets)
	case holdfast.VerbCancel:
		return r.each(ctx, c, targets, r.cancelFor)
	case holdfast.VerbUnlock:
		return r.each(ctx, c, targets, func(ctx context.Context, c holdfast.Command, t target) (string, error) {
			return r.unlockFor(ctx, c, t)
		})
	default:
		return "", refusal(fmt.Sprintf("%q is not a command", c.Verb))
	}
}

// stillShown refuses what a comment says of plans if our comment, which showed them,
// was edited by somebody else: who wrote it may have read another thing.
func (r *Reconciler) stillShown(ctx context.Context, c holdfast.Command) error {
	const words = refusal("somebody had edited the comment with the plans: it is written again, look at it")
	for _, id := range c.Shown {
		run, err := r.opts.Store.Run(ctx, id)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		if err == nil && run.PostedAt.IsZero() {
			return words
		}
	}
	forge := r.opts.Forges[c.PullRequest.Repo]
	post, ok, err := r.publish.Comment(ctx, c.PullRequest)
	if err != nil || !ok || forge == nil {
		return err
	}
	found, err := forge.Comment(ctx, c.PullRequest, post.ExternalID)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read the comment with the plans of %s: %w", c.PullRequest, err)
	}
	if err == nil && !r.publish.Wrote(post, found.Body) {
		if now, _, err := r.publish.Comment(ctx, c.PullRequest); err != nil || now.Wanted != post.Wanted {
			return err // we have written it ourselves meanwhile
		}
		r.agenda.Look(agenda.Look{Repo: c.PullRequest.Repo, Number: c.PullRequest.Number})
		return words
	}
	return nil
}

// permitted checks that the author may command: write permission on the code
// host, or a token of the API.
func (r *Reconciler) permitted(ctx context.Context, c holdfast.Command) error {
	if c.Trusted {
		return nil
	}
	forge := r.opts.Forges[c.PullRequest.Repo]
	if forge == nil {
		return refusal("the repository is not configured")
	}
	permission, err := forge.Permission(ctx, c.PullRequest.Repo, c.Author)
	barred := errors.Is(err, holdfast.ErrForbidden) || errors.Is(err, holdfast.ErrUnauthorized)
	if barred && r.opts.Now().Sub(c.CreatedAt) > permissionPatience {
		return refusal("the code host does not tell who may command: its App or token needs to read members and metadata")
	}
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("ask for the permission of %q: %w", c.Author, err)
	}
	if !permission.CanWrite() {
		return refusal(fmt.Sprintf("%s needs write permission in the repository for this", c.Author))
	}
	if c.Verb == holdfast.VerbUnlock && c.Force && permission != holdfast.PermissionAdmin {
		return refusal(fmt.Sprintf("%s needs admin permission in the repository to take a lock from a living run", c.Author))
	}
	return nil
}

// target is one cluster that a command is about.
type target struct {
	cluster string
	pr      *holdfast.PullRequestRecord // nil: the tracked branch
}

func (r *Reconciler) targets(ctx context.Context, c holdfast.Command) ([]target, error) {
	if c.PullRequest.IsZero() {
		if len(c.Clusters) == 0 {
			return nil, refusal("name a cluster")
		}
		return r.clusterTargets(ctx, c.Clusters)
	}
	pr, err := r.opts.Store.PullRequest(ctx, c.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, refusal(fmt.Sprintf("pull request %s is not known (yet): does it change a watched branch?", c.PullRequest))
	} else if err != nil {
		return nil, fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	var out []target
	for _, cluster := range pr.Clusters {
		if cluster.Trial && c.Verb != holdfast.VerbPlan && c.Verb != holdfast.VerbCancel {
			continue // its merge does not apply them
		}
		if len(c.Clusters) == 0 || slices.Contains(c.Clusters, cluster.Name) {
			out = append(out, target{cluster.Name, &pr})
		}
	}
	for _, name := range c.Clusters {
		if !slices.ContainsFunc(out, func(t target) bool { return t.cluster == name }) {
			return nil, r.notChanged(ctx, pr, name)
		}
	}
	switch tried := slices.ContainsFunc(pr.Clusters, func(cluster holdfast.PullRequestCluster) bool { return cluster.Trial }); {
	case len(out) == 0 && tried:
		return nil, refusal("the merge applies nothing: clusters move when their documents name the new version of the template")
	case len(out) == 0:
		return nil, refusal("this pull request changes no cluster")
	}
	return out, nil
}

// notChanged says why nothing can be done to a cluster by way of a pull request.
func (r *Reconciler) notChanged(ctx context.Context, pr holdfast.PullRequestRecord, name string) error {
	if slices.ContainsFunc(pr.Clusters, func(cluster holdfast.PullRequestCluster) bool { return cluster.Name == name }) {
		return refusal(fmt.Sprintf("the merge leaves cluster %q as it is: its plan shows what the new template would do, and nothing is applied by it", name))
	}
	impacts, err := r.opts.Store.Impacts(ctx, pr.PullRequestRef)
	if err != nil {
		return fmt.Errorf("read impact of %s: %w", pr.PullRequestRef, err)
	}
	for _, impact := range impacts {
		for _, group := range impact.Groups {
			if slices.ContainsFunc(group.Clusters, func(cluster holdfast.ImpactCluster) bool { return cluster.Name == name }) {
				return refusal(fmt.Sprintf("the merge leaves cluster %q as it is, and no plan shows what the new template would do to it: `/holdfast plan --all` plans all", name))
			}
		}
	}
	return refusal(fmt.Sprintf("this pull request does not change cluster %q", name))
}

// clusterTargets takes names of clusters, or ids of runs.
func (r *Reconciler) clusterTargets(ctx context.Context, names []string) ([]target, error) {
	var out []target
	for _, name := range names {
		if strings.HasPrefix(name, "run-") {
			run, err := r.opts.Store.Run(ctx, name)
			if errors.Is(err, holdfast.ErrNotFound) {
				return nil, refusal(fmt.Sprintf("there is no run %q", name))
			} else if err != nil {
				return nil, fmt.Errorf("read run %s: %w", name, err)
			}
			name = run.Cluster
		} else if _, err := r.opts.Store.Cluster(ctx, name); errors.Is(err, holdfast.ErrNotFound) {
			return nil, refusal(fmt.Sprintf("there is no cluster %q", name))
		} else if err != nil {
			return nil, fmt.Errorf("read cluster %q: %w", name, err)
		}
		out = append(out, target{cluster: name})
	}
	return out, nil
}

// each does one thing for every target. If it is refused for all of them the
// command is refused; otherwise what was refused is reported.
func (r *Reconciler) each(
	ctx context.Context, c *holdfast.Command, targets []target,
	do func(context.Context, holdfast.Command, target) (string, error),
) (string, error) {
	var done, refused []string
	for _, t := range targets {
		word, err := do(ctx, *c, t)
		var no refusal
		switch {
		case errors.Is(err, errUpToDate) && asksForGit(*c): // as it is
			c.UpToDate = append(c.UpToDate, t.cluster)
			done = append(done, fmt.Sprintf("`%s`: %s", t.cluster, upToDate))
		case errors.As(err, &no):
			c.Refused = append(c.Refused, t.cluster)
			refused = append(refused, fmt.Sprintf("`%s`: %s", t.cluster, no))
		case err != nil:
			return "", err
		case word != "":
			done = append(done, fmt.Sprintf("`%s`: %s", t.cluster, word))
		}
	}
	if len(refused) == len(targets) {
		return "", refusal(strings.Join(refused, "\n"))
	}
	if len(refused) == 0 && c.CommentID != "" {
		return "", nil // the comment of the pull request shows it
	}
	return strings.Join(slices.Concat(done, refused), "\n"), nil
}

func (r *Reconciler) planFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	req := holdfast.Request{Cluster: t.cluster}
	if t.pr != nil && t.pr.State != holdfast.PullRequestMerged {
		req.PullRequest = t.pr.PullRequestRef
	}
	return r.decideFor(ctx, req, &decision.Ask{Verb: holdfast.VerbPlan, Actor: c.Author})
}

// applyFor applies the plan that our comment showed when the command was
// written. A head or a plan that has moved since is not what was meant.
func (r *Reconciler) applyFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	req := holdfast.Request{Cluster: t.cluster}
	if t.pr != nil {
		switch {
		case t.pr.State != holdfast.PullRequestMerged:
			return "", refusal(holdfast.ReasonNotMerged.Refusal(""))
		case c.CommentID != "" && c.ShownHead != t.pr.Head:
			return "", refusal("the head has moved, or another plan is shown, since this was written: look at it again")
		}
	}
	runs, err := history.Branch(ctx, r.opts.Store, t.cluster)
	if err != nil {
		return "", err
	}
	ask := decision.Ask{Verb: holdfast.VerbApply, Actor: c.Author}
	if t.pr != nil {
		ask.PullRequest, ask.Removes = t.pr.PullRequestRef, slices.ContainsFunc(t.pr.Clusters, deletes(t.cluster))
	}
	last, err := r.shownPlan(ctx, t.cluster, runs)
	if err != nil {
		return "", err
	}
	asked := len(c.Shown) == 0 && c.Trusted || slices.Contains(c.Shown, last.ID)
	if named := slices.IndexFunc(c.Clusters, func(s string) bool { return strings.HasPrefix(s, "run-") }); named >= 0 {
		asked = slices.Contains(c.Clusters, last.ID)
		ask.Run = c.Clusters[named] // another one was seen
	}
	if asked {
		ask.Run = last.ID
	}
	return r.decideFor(ctx, req, &ask)
}

// decideFor reconciles with a person's word and says what came of it.
func (r *Reconciler) decideFor(ctx context.Context, req holdfast.Request, ask *decision.Ask) (string, error) {
	if err := r.watched(ctx, req); err != nil {
		return "", err
	}
	for {
		d, err := r.reconcile(ctx, req, ask)
		switch {
		case errors.Is(err, holdfast.ErrConflict):
			continue
		case err != nil:
			return "", err
		case d.Action == decision.ActionRecord || d.Action == decision.ActionDrift || d.Action == decision.ActionCarry || d.Action == decision.ActionNone && d.After > 0:
			continue // the record had to catch up first
		case d.Action == decision.ActionPlan:
			return "plan queued", nil
		case d.Action == decision.ActionApply:
			return "apply queued", nil
		case d.Confirmed != "":
			return "it is destroyed when those that depend on it are gone: " + d.Detail, nil
		}
		if d.Reason == holdfast.ReasonUpToDate && ask.Verb == holdfast.VerbApply {
			return "", errUpToDate
		}
		return "", refusal(d.Reason.Refusal(d.Detail))
	}
}

// cancelFor stops what is queued or running for a cluster: the plans of the
// pull request or, merged, the applies that follow from it.
func (r *Reconciler) cancelFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	filter := holdfast.RunFilter{Cluster: t.cluster, Statuses: []holdfast.RunStatus{
		holdfast.RunQueued, holdfast.RunWaiting, holdfast.RunRetrying, holdfast.RunRunning,
	}}
	if t.pr != nil && t.pr.State != holdfast.PullRequestMerged {
		filter.PullRequest = &t.pr.PullRequestRef
	} else if t.pr != nil {
		filter.PullRequest = &holdfast.PullRequestRef{}
	}
	runs, err := r.opts.Store.Runs(ctx, filter)
	if err != nil {
		return "", fmt.Errorf("list runs of %q: %w", t.cluster, err)
	}
	if c.Trusted && len(c.Shown) > 0 { // these runs, and no others
		runs = slices.DeleteFunc(runs, func(run holdfast.Run) bool { return !slices.Contains(c.Shown, run.ID) })
	}
	if len(runs) == 0 {
		return "", refusal("nothing is queued or running")
	}
	for _, run := range runs {
		if err := r.records.Cancel(ctx, run.ID, holdfast.ReasonCanceled); err != nil {
			return "", err
		}
		r.records.Audit(ctx, c.Author, "run.cancel", run.ID, t.cluster)
	}
	return fmt.Sprintf("%d run(s) cancelled", len(runs)), nil
}
