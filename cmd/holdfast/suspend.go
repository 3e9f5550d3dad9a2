package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "github.com/holdfast-dev/holdfast/api/v1"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/show"
)

func newSuspendCommand(a *app) *cobra.Command {
	c := newSuspensionCommand(a, true)
	c.Short = "Stop new runs of a cluster, a project or everything"
	c.Long = `Stop new runs of a cluster, of all clusters of a project, or of all: no apply,
no destroy and no drift check starts. Runs in progress continue, and pull
requests are still planned.`
	c.Example = "  holdfast suspend prod-eu --reason 'moves to another network'\n  holdfast suspend --all --reason 'incident 4711'"
	return c
}

func newResumeCommand(a *app) *cobra.Command {
	c := newSuspensionCommand(a, false)
	c.Short = "Resume runs of a suspended cluster, project or everything"
	c.Long = `Resume the runs of a cluster, of a project's clusters, or of all. Whatever was held
continues. Each suspension ends separately: a cluster that was suspended stays so when
its project is resumed.`
	return c
}

// suspendWord is the word of the command.
func suspendWord(suspended bool) string {
	if suspended {
		return "suspend"
	}
	return "resume"
}

func newSuspensionCommand(a *app, suspended bool) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		req    v1.SuspendRequest
	)
	const want = "one of a cluster's name, --project and --all"
	c := &cobra.Command{
		Use: suspendWord(suspended) + " CLUSTER | --project PROJECT | --all",
		Args: func(c *cobra.Command, args []string) error {
			given := len(args)
			if req.Project != "" {
				given++
			}
			if req.All {
				given++
			}
			if given != 1 {
				return cli.WrongArguments(c, args, want)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				record, err := cl.Suspend(c.Context(), args[0], suspended, req.Reason)
				if err != nil {
					return err
				}
				text, err := a.suspendedText(c.Context(), cl, record)
				if err != nil {
					return err
				}
				return a.Print(format, record, func() string { return text })
			}
			answer, err := cl.SuspendAll(c.Context(), req, suspended)
			if err != nil {
				return err
			}
			return a.Print(format, answer, func() string { return suspendedNow(answer, suspended) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	c.Flags().StringVar(&req.Project, "project", "", "all clusters of this project")
	c.Flags().BoolVar(&req.All, "all", false, "all clusters")
	c.Flags().StringVar(&req.Reason, "reason", "", "the reason, shown to others")
	a.CompleteFlag(c, &conn, "project", cli.Projects)
	return c
}

func suspendedNow(s v1.Suspension, suspended bool) string {
	now := "active"
	if suspended {
		now = "suspended"
	}
	return fmt.Sprintf("%s %s %s\n", show.SuspendedWhat(s.Cluster, s.Project), show.IsOrAre(s), now)
}

// suspendedText says whether a cluster may run, or what still stops it.
func (a *app) suspendedText(ctx context.Context, cl *client.Client, record v1.Cluster) (string, error) {
	if !record.Suspended {
		suspensions, err := cl.Suspensions(ctx, true)
		if err != nil {
			return "", err
		}
		if by := show.SuspendedBy(record, suspensions); by != nil {
			return fmt.Sprintf("cluster %s is still suspended: %s\n", record.Name, show.SuspensionText(&a.Printer, *by)), nil
		}
	}
	return suspendedNow(v1.Suspension{Cluster: record.Name}, record.Suspended), nil
}

func newTransferCommand(a *app) *cobra.Command {
	var (
		conn       cli.Connection
		format, to string
	)
	c := &cobra.Command{
		Use:   "transfer CLUSTER --to REPOSITORY",
		Short: "Move a cluster to another repository",
		Long: `Move a cluster to another repository, which must already define it: from then on its
document is read from there. State and history stay; nothing is planned unless the new
document differs.`,
		Example: "  holdfast transfer prod-eu --to acme/platform",
		Args:    cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return cli.UsageError("--to is missing: the repository that will define %s", args[0])
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			record, err := cl.Transfer(c.Context(), args[0], to)
			if err != nil {
				var refused *client.Error
				if errors.As(err, &refused) && refused.Status == http.StatusConflict && refused.Hint() == "" {
					return hint.New(err, "merge its document there first, let its runs end, and try again")
				}
				return err
			}
			return a.Print(format, record, func() string {
				return fmt.Sprintf("cluster %s belongs to %s now\n", record.Name, record.Owner)
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	c.Flags().StringVar(&to, "to", "", "the repository, as the server's configuration names it")
	a.CompleteFlag(c, &conn, "to", cli.Repositories)
	return c
}
