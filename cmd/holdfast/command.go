package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

const targetWords = "clusters, a run's ID, or a pull request such as shop#7"

func newApplyCommand(a *app) *cobra.Command {
	return newVerbCommand(a, verb{
		word:  holdfast.VerbApply,
		short: "Apply pending plans",
		long: `Apply pending plans: for clusters, the plans of the tracked branch; for a merged pull
request, the plans of its clusters; for a run, exactly its plan, if the state has not
changed since.

For clusters and for a pull request, the pending plans are listed and exactly these
are applied. If there is a newer plan by then, apply is refused.

If the tracked branch has removed a cluster, apply confirms a deletion that waits for
confirmation. If there is nothing to apply and the last check found drift, apply
reverts exactly the drift that the check showed.`,
		waits: true,
	})
}

func newReplanCommand(a *app) *cobra.Command {
	return newVerbCommand(a, verb{
		name:  "replan",
		word:  holdfast.VerbPlan,
		short: "Plan again, on the server",
		long: `Plan clusters again as the tracked branch defines them, or plan a pull request again,
for example after a plan that failed. Nothing is applied. To plan on this machine, use
holdfast plan.`,
		waits: true,
		all:   "plan every cluster that the pull request's change of a template would change",
	})
}

func newApproveCommand(a *app) *cobra.Command {
	return newVerbCommand(a, verb{
		word:  holdfast.VerbApprove,
		short: "Approve a plan",
		long: `Approve a cluster's pending plan, all plans of a pull request, or exactly the plan
of a run, including plans that destroy or revert drift. Clusters that waited only
for the approval are then applied. A cluster with onMerge: false is not: its plan is
approved, and holdfast apply applies it.

For clusters, the pending plans are listed and exactly these are approved. If a
newer plan by then, approve is refused.`,
	})
}

func newCancelCommand(a *app) *cobra.Command {
	return newVerbCommand(a, verb{
		word:  holdfast.VerbCancel,
		short: "Cancel runs",
		long: `Cancel the runs of clusters or of a pull request, or a single run. A running engine is
interrupted, and has time to store its state.`,
	})
}

type verb struct {
	name        string // of the command; empty: as the word
	word        holdfast.Verb
	short, long string
	waits       bool   // it makes a run that can be waited for
	all         string // what --all means; empty: there is no such flag
}

func newVerbCommand(a *app, v verb) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		wait   bool
		every  bool
		only   []string
	)
	name := v.name
	if name == "" {
		name = string(v.word)
	}
	c := &cobra.Command{
		Use:   name + " CLUSTER...|RUN|REPOSITORY#NUMBER",
		Short: v.short,
		Long:  v.long,
		Args:  cli.AtLeast(1, targetWords),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := commandRequest(v.word, args, only)
			if err != nil {
				return err
			}
			if req.All = every; every && (req.PullRequest.IsZero() || len(req.Clusters) > 0) {
				return cli.UsageError("--all is for a pull request that changes a template, as a whole")
			} else if every && wait {
				return cli.UsageError("--wait cannot follow --all: the comment of the pull request shows how far it is")
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if wait && v.word == holdfast.VerbApply {
				if err := a.awaitPlans(c.Context(), cl, req); err != nil {
					return err
				}
			}
			if req.Shown, err = a.lookAtPlans(c.Context(), cl, req, format); err != nil {
				return err
			}
			command, err := cl.Command(c.Context(), req)
			if err != nil {
				return err
			}
			if err := a.printCommand(format, command); err != nil {
				return err
			}
			if wait {
				return a.awaitRuns(c.Context(), cl, a.logOutFor(format), command)
			}
			return refusedForSome(command)
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	c.Flags().StringArrayVarP(&only, "cluster", "c", nil, "only this cluster of the pull request; may be repeated")
	a.Complete(c, &conn, 0, cli.ClusterNames, cli.PullRequestNames, cli.RunIDs)
	a.CompleteFlag(c, &conn, "cluster", cli.ClusterNames)
	if v.all != "" {
		c.Flags().BoolVar(&every, "all", false, v.all)
	}
	if v.waits {
		c.Flags().BoolVarP(&wait, "wait", "w", false, "follow the runs to their end, with their logs")
	}
	return c
}

func commandRequest(word holdfast.Verb, args, only []string) (v1.CommandRequest, error) {
	t, err := cli.ParseTarget(args)
	if err != nil {
		return v1.CommandRequest{}, err
	}
	if len(only) > 0 && t.PullRequest.IsZero() {
		return v1.CommandRequest{}, cli.UsageError("--cluster picks clusters of a pull request: name one")
	}
	return v1.CommandRequest{
		Verb: word, Run: t.Run, PullRequest: t.PullRequest, Clusters: append(t.Clusters, only...),
	}, nil
}

// printCommand prints the outcome of a command. A refusal has its own exit code.
func (a *app) printCommand(format string, command v1.Command) error {
	err := a.Print(format, command, func() string {
		switch {
		case command.Reply == "":
			return fmt.Sprintf("%s: the server has it; see holdfast get runs\n", command.Verb)
		case command.Status == holdfast.CommandRefused:
			return fmt.Sprintf("%s refused: %s\n", command.Verb, replyText(command.Reply))
		default:
			return replyText(command.Reply) + "\n"
		}
	})
	if err == nil && command.Status == holdfast.CommandRefused {
		return &cli.ExitCodeError{Code: cli.ExitRun}
	}
	return err
}

// refusedForSome is the exit code of a command that was done, though not for all of
// its clusters.
func refusedForSome(command v1.Command) error {
	if len(command.Refused) > 0 {
		return &cli.ExitCodeError{Code: cli.ExitRun}
	}
	return nil
}

// quotedName is a name as replies on a code host have it.
var quotedName = regexp.MustCompile("`([a-z0-9-]+)`")

// replyText is a reply as a terminal shows it: names need no quotes there.
func replyText(reply string) string { return quotedName.ReplaceAllString(table.Clean(reply), "$1") }

// runAppears is how long a command's run may take to be queued.
const runAppears = 2 * time.Minute

// awaitRuns follows the runs that a command led to, cluster after cluster; they
// execute side by side meanwhile.
func (a *app) awaitRuns(ctx context.Context, cl *client.Client, logs io.Writer, command v1.Command) error {
	clusters, of, err := awaited(ctx, cl, command)
	if err != nil {
		return err
	}
	var worst error
	for _, cluster := range clusters {
		if slices.Contains(command.Refused, cluster) { // as was printed above
			worst = &cli.ExitCodeError{Code: cli.ExitRun}
			continue
		} else if slices.Contains(command.UpToDate, cluster) {
			continue
		}
		run, err := a.awaitRun(ctx, cl, cluster, of, command)
		if err == nil {
			run, err = a.followRun(ctx, cl, logs, run.ID, 1)
		}
		if err == nil {
			err = a.awaitRecord(ctx, cl, run)
		}
		if err != nil {
			return err
		}
		if err := a.outcome(run); err != nil {
			worst = err
		}
	}
	return worst
}

// awaited are the clusters of the runs that a command leads to, and the pull request of its
// plans: those that are made after a merge are of the tracked branch.
func awaited(ctx context.Context, cl *client.Client, command v1.Command) (clusters []string, of v1.PullRequestRef, err error) {
	clusters, of = command.Clusters, command.PullRequest
	if of.IsZero() || len(clusters) > 0 && command.Verb != holdfast.VerbPlan {
		return clusters, of, nil
	}
	answer, err := cl.PullRequest(ctx, of)
	if err != nil {
		return nil, of, err
	}
	merged := answer.PullRequest.State == holdfast.PullRequestMerged
	if merged {
		of = v1.PullRequestRef{}
	}
	if len(clusters) > 0 {
		return clusters, of, nil
	}
	for _, c := range answer.PullRequest.Clusters {
		if !c.Sample || !merged { // a merge leaves them as they are
			clusters = append(clusters, c.Name)
		}
	}
	return clusters, of, nil
}

// recordFollows is how long a cluster's record may take to say what a run has done.
const recordFollows = time.Minute

// awaitRecord waits until the cluster's record says what a run has changed: what
// a script asks next is answered with it.
func (a *app) awaitRecord(ctx context.Context, cl *client.Client, run v1.Run) error {
	if !run.Kind.Writes() || !run.Status.Good() || run.Status == holdfast.RunPlanned {
		return nil
	}
	deadline := time.Now().Add(recordFollows)
	for patience := a.patience(); ; {
		rec, err := cl.Cluster(ctx, run.Cluster)
		if errors.Is(err, holdfast.ErrNotFound) {
			return nil // destroyed
		}
		if err := patience.judge(err); err != nil {
			return err
		}
		// A newer apply has a greater id: ids begin with the time.
		if err == nil && (rec.Applied.Run >= run.ID || rec.Life >= run.ID || rec.Deletion != nil) {
			return nil
		}
		if time.Now().After(deadline) {
			_, _ = fmt.Fprintf(a.Err, "%s: the run has ended, and the cluster's record does not say so yet\n", run.Cluster)
			return nil
		}
		if err := cli.Pause(ctx, a.Poll); err != nil {
			return err
		}
	}
}

// awaitPlans waits until no plan of the tracked branch is queued or running for the
// clusters of a request: until then there is nothing to apply.
func (a *app) awaitPlans(ctx context.Context, cl *client.Client, req v1.CommandRequest) error {
	clusters, err := clustersOf(ctx, cl, req)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if err := a.awaitPlan(ctx, cl, cluster); err != nil {
			return err
		}
	}
	return nil
}

// backgroundWait is how long a plan that everything else goes before is waited for while it
// is queued: it may be queued for days.
const backgroundWait = 10 * time.Minute

func (a *app) awaitPlan(ctx context.Context, cl *client.Client, cluster string) error {
	query := url.Values{"cluster": {cluster}, "kind": {string(holdfast.RunPlan)}, "limit": {strconv.Itoa(10)}, "status": {
		string(holdfast.RunQueued), string(holdfast.RunRetrying), string(holdfast.RunRunning),
	}}
	told, since := false, a.Now()
	for patience := a.patience(); ; {
		runs, err := cl.Runs(ctx, query)
		if err := patience.judge(err); err != nil {
			return err
		}
		i := slices.IndexFunc(runs, func(r v1.Run) bool {
			return r.Kind == holdfast.RunPlan && r.PullRequest.IsZero() && !r.Status.Done()
		})
		if err == nil && (i < 0 || mayWaitForDays(runs[i]) && a.Now().Sub(since) > backgroundWait) {
			return nil // the answer to the command says so
		}
		if err == nil && !told {
			told = true
			_, _ = fmt.Fprintf(a.Err, "%s: waiting for its plan %s\n", cluster, runs[i].ID)
		}
		if err := cli.Pause(ctx, a.Poll); err != nil {
			return err
		}
	}
}

// mayWaitForDays reports whether a plan is queued behind everything else.
func mayWaitForDays(plan v1.Run) bool {
	return plan.Background && plan.Status != holdfast.RunRunning
}

// awaitRun returns the cluster's newest run since a command of what it asks for:
// one that writes, or a plan of a pull request or, without one, of the tracked branch.
func (a *app) awaitRun(
	ctx context.Context, cl *client.Client, cluster string, of v1.PullRequestRef, command v1.Command,
) (v1.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, runAppears)
	defer cancel()
	since := command.CreatedAt.Truncate(time.Millisecond) // a store may keep no more of the run's time
	kinds := []string{string(holdfast.RunApply), string(holdfast.RunDestroy)}
	if command.Verb == holdfast.VerbPlan {
		kinds = []string{string(holdfast.RunPlan)}
	}
	query := url.Values{"cluster": {cluster}, "kind": kinds, "limit": {strconv.Itoa(10)}}
	wanted := func(r v1.Run) bool {
		return !r.CreatedAt.Before(since) && (r.Kind.Writes() || r.PullRequest == of)
	}
	for patience := a.patience(); ; {
		runs, err := cl.Runs(ctx, query)
		if err := patience.judge(err); err != nil {
			return v1.Run{}, err
		}
		i := slices.IndexFunc(runs, wanted)
		if i >= 0 {
			return runs[i], nil
		}
		if err := cli.Pause(ctx, a.Poll); errors.Is(err, context.DeadlineExceeded) {
			return v1.Run{}, hint.New(
				fmt.Errorf("no run of %s has appeared in %s", cluster, table.ShortDuration(runAppears)),
				"see what it waits for: holdfast describe cluster "+cluster,
			)
		} else if err != nil {
			return v1.Run{}, err
		}
	}
}
