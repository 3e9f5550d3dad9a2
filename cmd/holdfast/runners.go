package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

func newCreateCommand(a *app) *cobra.Command {
	return cli.NewGroup("create", "Propose new documents by pull requests, or make a token", newProposeClusterCommand(a, "create"), newProposeRunnerCommand(a, "create"), newCreateTokenCommand(a))
}

func newUpdateCommand(a *app) *cobra.Command {
	return cli.NewGroup("update", "Propose changes of documents by pull requests", newProposeClusterCommand(a, "update"), newProposeRunnerCommand(a, "update"))
}

func newDeleteCommand(a *app) *cobra.Command {
	return cli.NewGroup("delete", "Propose the removal of documents by pull requests, or delete a token", newProposeClusterCommand(a, "delete"), newProposeRunnerCommand(a, "delete"), newDeleteTokenCommand(a))
}

func newRefreshCommand(a *app) *cobra.Command {
	return cli.NewGroup("refresh", "Update what environments are pinned to", newRefreshRunnerCommand(a))
}

// runnerTypes are the types that a document may say.
func runnerTypes() []string {
	var types []string
	for _, t := range runnerspec.Types() {
		types = append(types, string(t))
	}
	return types
}

// newProposeRunnerCommand returns the command that creates, updates or deletes a runner.
func newProposeRunnerCommand(a *app, change string) *cobra.Command {
	var (
		conn         cli.Connection
		format, file string
		newKey       string
		req          = v1.RunnerProposal{Change: change}
	)
	c := &cobra.Command{
		Use:  "runner NAME",
		Args: cli.Exactly(1, "a runner's name"),
		RunE: func(c *cobra.Command, args []string) error {
			req.Name = args[0]
			if req.Type != "" {
				if err := cli.OneOf("type", string(req.Type), runnerTypes()); err != nil {
					return err
				}
			}
			var err error
			if req.Document, err = documentOf(a.In, change, file, proposalLine{
				makes: req.Type != "", notMade: "a new runner needs --type, or its document with -f",
				changes: len(req.Set) > 0, nothingElse: "there is nothing to change: give --set, or the document with -f",
			}); err != nil {
				return err
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			made, err := propose(c.Context(), client.RunnersOf(cl), req, newKey)
			if err != nil {
				return err
			}
			return a.Print(format, made, func() string { return proposedText(made) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	switch change {
	case "create":
		c.Short = "Propose a new runner by a pull request"
		c.Example = "  holdfast create runner eu --type remote --new-key eu.key --set maxRuns=10\n  holdfast create runner eu -f eu.yaml --repo platform --path runners/eu.yaml"
		c.Flags().StringVar((*string)(&req.Type), "type", "", "its type: "+strings.Join(runnerTypes(), ", "))
		c.Flags().StringVar(&newKey, "new-key", "", "make a key for its agents (remote, kubernetes-agent): the private key is written to this new file, the public one into the document")
		c.Flags().StringVar(&req.Repo, "repo", "", "the repository, if several can define runners")
		c.Flags().StringVar(&req.Path, "path", "", "the file in it (default runners/NAME.yaml)")
		_ = c.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(runnerTypes(), cobra.ShellCompDirectiveNoFileComp))
		a.CompleteFlag(c, &conn, "repo", cli.Repositories)
	case "update":
		c.Short = "Propose a change of a runner's document by a pull request"
		c.Example = "  holdfast update runner eu --set job.image=registry.example.com/holdfast:1.1 --set maxRuns="
	default:
		c.Short = "Propose the removal of a runner by a pull request"
		c.Long = "Propose the removal of a runner by a pull request. A runner with environments that are\npinned to it, or with a rule that names it, cannot be removed."
	}
	if change != "delete" {
		c.Flags().StringVarP(&file, "file", "f", "", "the complete document; - reads standard input")
		c.Flags().StringArrayVar(&req.Set, "set", nil, "a key below spec and its value in YAML, such as job.namespace=runs; an empty value removes it")
	}
	if change != "create" {
		a.Complete(c, &conn, 1, cli.Runners)
	}
	return c
}

// propose asks for a pull request, with a new key for the runner's agents if its file is named.
func propose(ctx context.Context, runners client.Runners, req v1.RunnerProposal, newKey string) (v1.ProposedRunner, error) {
	if newKey == "" {
		return runners.Propose(ctx, req)
	}
	if err := withNewKey(&req, newKey); err != nil {
		return v1.ProposedRunner{}, err
	}
	made, err := runners.Propose(ctx, req)
	if answered := new(client.Error); errors.As(err, &answered) && answered.Status < 500 {
		err = errors.Join(err, os.Remove(newKey)) // it was not proposed
	}
	return made, err
}

// withNewKey makes a key, writes it to a new file, and has the document say its public key.
func withNewKey(req *v1.RunnerProposal, file string) error {
	if t := req.Type; t != runnerspec.Remote && t != runnerspec.KubernetesAgent {
		return cli.UsageError("--new-key goes with --type %s or %s: agents of other runners have no keys", runnerspec.Remote, runnerspec.KubernetesAgent)
	}
	key, err := newKeyFile(file)
	if err != nil {
		return err
	}
	public, err := key.PublicPEM()
	if err != nil {
		return err
	}
	// A block, so that people can read and compare it.
	req.Set = append(req.Set, "keys=- |\n  "+strings.ReplaceAll(strings.TrimSpace(public), "\n", "\n  ")+"\n")
	return nil
}

// proposedText says where the pull request is.
func proposedText(made v1.ProposedRunner) string {
	where := fmt.Sprintf("pull request %s", made.PullRequest)
	if made.URL != "" {
		where += " (" + made.URL + ")"
	}
	if made.State != string(holdfast.PullRequestOpen) {
		return fmt.Sprintf("the same was proposed before: %s is %s\n", where, made.State)
	}
	return fmt.Sprintf("proposed: %s changes %s on branch %s\n", where, made.Path, made.Branch)
}

func newRefreshRunnerCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		dry    bool
	)
	c := &cobra.Command{
		Use:   "runner PROJECT/ENVIRONMENT",
		Short: "Pin an environment to the runner that the rules select now",
		Long: `Pin an environment, with its waiting runs, to the runner that the most specific rule
selects now. Nothing else moves an environment that has had runs: rules apply to new
environments. An environment without clusters is no longer pinned to any runner, so that
its runner can be removed. The command is refused while a run of the environment is
running, and if no rule matches it.`,
		Example: "  holdfast refresh runner payments/production --dry-run",
		Args:    cli.Exactly(1, "a project and an environment, such as payments/production"),
		RunE: func(c *cobra.Command, args []string) error {
			project, environment, ok := strings.Cut(args[0], "/")
			if !ok || project == "" || environment == "" {
				return cli.UsageError("%q: want PROJECT/ENVIRONMENT, such as payments/production", args[0])
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			r, err := client.RunnersOf(cl).Refresh(c.Context(), v1.RefreshRequest{Project: project, Environment: environment, DryRun: dry})
			if err != nil {
				return err
			}
			return a.Print(format, r, func() string { return refreshText(args[0], r) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	a.Complete(c, &conn, 1, cli.PinnedEnvironments)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	return c
}

func refreshText(environment string, r v1.Refresh) string {
	switch {
	case r.After.Runner == "" && r.DryRun:
		return fmt.Sprintf("%s has no cluster left: it would no longer be pinned to runner %s\n", environment, r.Before.Runner)
	case r.After.Runner == "":
		return fmt.Sprintf("%s has no cluster left: it is no longer pinned to runner %s\n", environment, r.Before.Runner)
	case r.Before == r.After:
		return fmt.Sprintf("%s stays with runner %s, by rule %s\n", environment, r.After.Runner, r.After.Rule)
	case r.Before.Runner == r.After.Runner && r.DryRun:
		return fmt.Sprintf("%s would stay with runner %s, now by rule %s\n", environment, r.After.Runner, r.After.Rule)
	case r.Before.Runner == r.After.Runner:
		return fmt.Sprintf("%s stays with runner %s, now by rule %s\n", environment, r.After.Runner, r.After.Rule)
	case r.DryRun:
		return fmt.Sprintf("%s would move from runner %s to %s, by rule %s\n", environment, r.Before.Runner, r.After.Runner, r.After.Rule)
	default:
		return fmt.Sprintf("%s has moved from runner %s to %s, by rule %s\n", environment, r.Before.Runner, r.After.Runner, r.After.Rule)
	}
}
