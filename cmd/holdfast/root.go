package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

// newRootCommand returns the whole command tree.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Keep a fleet of Kubernetes clusters the way Git defines them",
		Long: `Holdfast keeps a fleet of Kubernetes clusters the way Git defines them.

The commands that talk to a server find it by --server, HOLDFAST_SERVER or the
client file, and prove who you are by --token-file, HOLDFAST_TOKEN or the client
file. The client file is ~/.config/holdfast/client.yaml, or what
HOLDFAST_CLIENT_CONFIG names; nobody but you may be able to read it:

  server: https://holdfast.example.com
  token: ...

Exit codes: 0 it worked; 1 it did not; 2 the command line is wrong; 3 a run
failed, was held or canceled, or a command was refused.`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hint.New(usageError("%w", err), "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(
		newGetCommand(a),
		newDescribeCommand(a),
		newLogsCommand(a),
		newApplyCommand(a),
		newReplanCommand(a),
		newApproveCommand(a),
		newCancelCommand(a),
		newReconcileCommand(a),
		newDriftCommand(a),
		newUnlockCommand(a),
		newStateCommand(a),
		newSuspendCommand(a),
		newResumeCommand(a),
		newTransferCommand(a),
		newVersionCommand(a),
		newServeCommand(a),
		newAgentCommand(a),
		newValidateCommand(a),
		newRenderCommand(a),
		newPlanCommand(a),
		newTemplateCommand(a),
		newSchemaCommand(a),
	)
	return root
}

// exactly makes a wrong number of arguments a usage error that says what is
// wanted.
func exactly(n int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return wrongArguments(c, args, want)
	}
}

func atLeast(n int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return wrongArguments(c, args, want)
	}
}

func wrongArguments(c *cobra.Command, args []string, want string) error {
	return hint.New(
		usageError("%s takes %s, got %d arguments", c.CommandPath(), want, len(args)),
		"see "+c.CommandPath()+" --help",
	)
}

// newGroupCommand returns a command that only has others below it.
func newGroupCommand(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			names := make([]string, len(below))
			for i, b := range below {
				names[i] = b.Name()
			}
			if len(args) == 0 {
				return usageError("%s takes what to %s: %s", c.CommandPath(), c.Name(), orList(names))
			}
			return usageError("%s does not know %q: want %s", c.CommandPath(), args[0], orList(names))
		},
	}
	c.AddCommand(below...)
	return c
}
