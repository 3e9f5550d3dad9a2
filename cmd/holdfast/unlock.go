package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newUnlockCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		force  bool
		lock   string
	)
	c := &cobra.Command{
		Use:   "unlock CLUSTER",
		Short: "Release a lock whose holder is dead",
		Long: `Show who holds a cluster's lock, since when, and whether its agent is still sending
heartbeats, and release the lock if it is not. If the holder is alive, --force is
required: its run may still be writing.

The backend locks the state itself, too. If it is not Holdfast's own, --lock makes an
agent run the engine's force-unlock for a lock that a dead run has left. --force does
this for any other lock, whose holder may still be running. If only a pull request has
that state, the agent runs the pull request's code, with the credentials for plans.`,
		Args: cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("lock") && lock == "" { // of a script: without it, a run is ended
				return cli.UsageError("--lock is empty: want the ID of a lock")
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if lock != "" {
				return a.unlockBackend(c, cl, args[0], format, v1.UnlockRequest{Lock: lock, Force: force})
			}
			return a.unlock(c, cl, args[0], format, force)
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().StringVar(&lock, "lock", "", "the ID of a lock of the state's own backend, to be released there")
	c.Flags().BoolVar(&force, "force", false, "even if the holder is alive (requires role admin)")
	return c
}

func (a *app) unlock(c *cobra.Command, cl *client.Client, cluster, format string, force bool) error {
	lock, err := cl.Lock(c.Context(), cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return a.showBackendLock(c, cl, cluster, format)
	} else if err != nil {
		return err
	}
	if lock.Alive && !force {
		fmt.Fprint(a.Err, a.lockText(lock))
		return hint.New(
			&cli.ExitCodeError{Code: cli.ExitRun, Err: fmt.Errorf("the lock of %s is held by a run that is alive", cluster)},
			fmt.Sprintf("holdfast cancel %s, and wait for it; if its agent has died, it counts as alive until its heartbeats have been missing for runs.lease; --force breaks the lock of a run that may still write", lock.Run.ID),
		)
	}
	if lock, err = cl.Unlock(c.Context(), cluster, force); err != nil {
		return err
	}
	return a.Print(format, lock, func() string {
		text := a.lockText(lock) + fmt.Sprintf("released the lock of %s\n", cluster)
		if at := lock.Run.StateLocation; at != "" && !holdfast.OwnState(at) && lock.Run.Kind.Writes() {
			text += fmt.Sprintf("its state is in another backend (%s), and may still be locked there: the next run says so, and by whom\n", at)
		}
		return text
	})
}

// showBackendLock reports what is known of a lock that is not Holdfast's, which is free.
func (a *app) showBackendLock(c *cobra.Command, cl *client.Client, cluster, format string) error {
	left, err := cl.BackendLock(c.Context(), cluster)
	if err == nil {
		return a.Print(format, left, func() string { return a.backendLockText(cluster, left) })
	} else if !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	if _, err := cl.Cluster(c.Context(), cluster); errors.Is(err, holdfast.ErrNotFound) {
		// A pull request may have it. Otherwise a free lock says nothing: nobody knows the
		// cluster.
		if runs, errRuns := cl.Runs(c.Context(), url.Values{"cluster": {cluster}, "limit": {"1"}}); len(runs) == 0 {
			return cmp.Or(errRuns, err)
		}
	} else if err != nil {
		return err
	}
	return a.Print(format, struct{}{}, func() string { return fmt.Sprintf("nobody holds the lock of %s\n", cluster) })
}

// backendLockText reports a lock that is not Holdfast's.
func (a *app) backendLockText(cluster string, l v1.BackendLock) string {
	text := fmt.Sprintf("Holdfast's lock of %s is free; its state is in another backend, and was locked there when %s ran:\n", cluster, l.Run)
	text += a.Fields(
		[2]string{"Lock", l.ID}, [2]string{"Holder", l.Who}, [2]string{"Since", a.When(l.Created)}, [2]string{"Probably left by", l.Dead},
	)
	if l.Dead == "" {
		return text + "it is not known to belong to a dead Holdfast run: its holder may be alive\n" +
			fmt.Sprintf("if it is dead, release it: holdfast unlock %s --lock %s --force (requires role admin)\n", cluster, l.ID)
	}
	return text + fmt.Sprintf("release it: holdfast unlock %s --lock %s\n", cluster, l.ID)
}

func (a *app) unlockBackend(c *cobra.Command, cl *client.Client, cluster, format string, req v1.UnlockRequest) error {
	run, err := cl.UnlockBackend(c.Context(), cluster, req)
	if err != nil {
		return err
	}
	return a.Print(format, run, func() string {
		code := ""
		if pr := holdfast.PullRequestRef(run.PullRequest); !pr.IsZero() {
			code = fmt.Sprintf(" with the code of %s and the credentials for plans", pr)
		}
		return fmt.Sprintf("%s releases the lock%s; follow it with: holdfast logs %s --follow\n", run.ID, code, run.ID)
	})
}

func (a *app) lockText(l v1.Lock) string {
	alive, run := "no", ""
	if l.Run.ID != "" {
		of := cmp.Or(l.Run.PullRequest.String(), l.Run.Revision.Short())
		run = table.Joined(fmt.Sprintf("%s of %s", l.Run.Kind, of), string(l.Run.Status))
	}
	if l.Alive {
		alive = "yes"
	}
	return a.Fields(
		[2]string{"Cluster", l.Cluster},
		[2]string{"Holder", l.Holder.Owner},
		[2]string{"Run", run},
		[2]string{"Agent", l.Run.Agent},
		[2]string{"Since", a.When(l.Holder.Since)},
		[2]string{"Last heartbeat", a.When(l.Run.HeartbeatAt)},
		[2]string{"Alive", alive},
	)
}
