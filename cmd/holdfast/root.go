package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/offline"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/policies"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/show"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/storage"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/template"
)

// newRootCommand returns the whole command tree.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Keep a fleet of Kubernetes clusters as Git defines them",
		Long: `Holdfast keeps a fleet of Kubernetes clusters in the state that Git defines.

Commands that need a server find its address in --server, HOLDFAST_SERVER or the
client file, and a token in --token-file, HOLDFAST_TOKEN or the client file. The
client file is ~/.config/holdfast/client.yaml, or the file that
HOLDFAST_CLIENT_CONFIG names. It must be readable only for you:

  server: https://holdfast.example.com
  token: ...

holdfast login writes it.

Exit codes: 0 success; 1 error; 2 usage error; 3 a run failed, was held or canceled,
or a command was refused.`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hint.New(cli.UsageError("%w", err), "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(
		newLoginCommand(a),
		newLogoutCommand(a),
		newWhoamiCommand(a),
		newConsoleCommand(a),
		show.NewGetCommand(a.App),
		show.NewDescribeCommand(a.App),
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
		newCreateCommand(a),
		newUpdateCommand(a),
		newDeleteCommand(a),
		newRefreshCommand(a),
		storage.NewDatastoreCommand(a.App),
		storage.NewBackupCommand(a.App),
		storage.NewRestoreCommand(a.App),
		newVersionCommand(a),
		newServeCommand(a),
		newAgentCommand(a),
		offline.NewValidateCommand(a.App),
		offline.NewRenderCommand(a.App),
		offline.NewPlanCommand(a.App),
		offline.NewCostCommand(a.App),
		policies.NewPolicyCommand(a.App),
		policies.NewEvaluatorCommand(a.App),
		template.NewTemplateCommand(a.App),
		template.NewSchemaCommand(a.App),
	)
	return root
}
