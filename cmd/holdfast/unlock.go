package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

func newUnlockCommand(a *app) *cobra.Command {
	var (
		conn   connection
		format string
		force  bool
	)
	c := &cobra.Command{
		Use:   "unlock CLUSTER",
		Short: "Release a lock whose holder is dead",
		Long: `Show who holds a cluster's lock, since when, and whether it still beats, and
release the lock if it does not. A living holder is refused without --force: its
run may still be writing.`,
		Args: exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			return a.unlock(c, cl, args[0], format, force)
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	c.Flags().BoolVar(&force, "force", false, "even if the holder is alive (takes the role admin)")
	return c
}

func (a *app) unlock(c *cobra.Command, cl *client, cluster, format string, force bool) error {
	lock, err := cl.lock(c.Context(), cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		if _, err := cl.cluster(c.Context(), cluster); err != nil {
			return err // there is no such cluster: a free lock says nothing then
		}
		return a.print(format, struct{}{}, func() string { return fmt.Sprintf("nobody holds the lock of %s\n", cluster) })
	} else if err != nil {
		return err
	}
	if lock.Alive && !force {
		fmt.Fprint(a.err, a.lockText(lock))
		return &hintError{
			&exitCodeError{exitRun, fmt.Errorf("the lock of %s is held by a run that is alive", cluster)},
			fmt.Sprintf("holdfast cancel %s, and wait for it; --force breaks the lock of a run that may still write", lock.Run.ID),
		}
	}
	if lock, err = cl.unlock(c.Context(), cluster, force); err != nil {
		return err
	}
	return a.print(format, lock, func() string {
		return a.lockText(lock) + fmt.Sprintf("released the lock of %s\n", cluster)
	})
}

func (a *app) lockText(l server.LockAnswer) string {
	alive, run := "no", ""
	if l.Run.ID != "" {
		of := firstOf(l.Run.PullRequest.String(), l.Run.Revision.Short())
		run = joined(fmt.Sprintf("%s of %s", l.Run.Kind, of), string(l.Run.Status))
	}
	if l.Alive {
		alive = "yes"
	}
	return a.fields(
		[2]string{"Cluster", l.Cluster},
		[2]string{"Holder", l.Holder.Owner},
		[2]string{"Run", run},
		[2]string{"Agent", l.Run.Agent},
		[2]string{"Since", a.when(l.Holder.Since)},
		[2]string{"Last beat", a.when(l.Run.HeartbeatAt)},
		[2]string{"Alive", alive},
	)
}
