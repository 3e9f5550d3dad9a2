package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/proposals"
)

// newProposeClusterCommand returns the command that creates, updates or deletes a cluster.
func newProposeClusterCommand(a *app, change string) *cobra.Command {
	var (
		conn         cli.Connection
		format, file string
		variables    []string
		req          = v1.ClusterProposal{Change: change}
	)
	c := &cobra.Command{
		Use:  "cluster NAME",
		Args: cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			req.Cluster = args[0]
			var err error
			if req.Document, err = documentOf(a.In, req.Change, file, clusterLine(req, variables)); err != nil {
				return err
			}
			set, err := variablesOf(variables)
			if err != nil {
				return err
			}
			req.Set = append(set, req.Set...)
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			made, err := client.Propose(c.Context(), cl, req)
			if err != nil {
				return err
			}
			if err := a.Print(format, made, func() string { return proposalText(req, made) }); err != nil || len(made.Faults) == 0 {
				return err
			}
			return &cli.ExitCodeError{Code: cli.ExitRun}
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only print the document as it would be, and what is wrong with it")
	describeProposal(c, change)
	if change != proposals.Delete {
		addDocumentFlags(c, &req, &variables, &file)
		a.CompleteFlag(c, &conn, "template", cli.TemplateNames)
	}
	if change == proposals.Create {
		c.Flags().StringVar(&req.Repo, "repo", "", "the repository, if several define clusters")
		c.Flags().StringVar(&req.Path, "path", "", "the file in it (default: one of its own, where the repository has its clusters)")
		a.CompleteFlag(c, &conn, "repo", cli.Repositories)
	} else {
		a.Complete(c, &conn, 1, cli.ClusterNames)
	}
	return c
}

func describeProposal(c *cobra.Command, change string) {
	switch change {
	case proposals.Create:
		c.Short = "Propose a new cluster by a pull request"
		c.Long = `Propose a new cluster by a pull request. The document is checked as in any pull request:
with faults, none is made. Nothing is applied before somebody else has reviewed the plan
and the pull request is merged. Who asks for it here cannot approve it.`
		c.Example = `  holdfast create cluster shop-eu --template eks --version 1.4.0 --project shop --environment prod \
    --provider aws --region eu-central-1 --set node_count=6 --set 'zones=[a, b]'
  holdfast create cluster shop-eu -f shop-eu.yaml --dry-run`
	case proposals.Update:
		c.Short = "Propose a change of a cluster by a pull request"
		c.Long = `Propose a change of a cluster's document by a pull request: of variables, of the version
of its template, or of other keys below spec. Everything else stays as it is written.`
		c.Example = `  holdfast update cluster shop-eu --set node_count=8 --set zones=
  holdfast update cluster shop-eu --version 1.5.0 --spec drift.schedule=6h`
	default:
		c.Short = "Propose the removal of a cluster by a pull request"
		c.Long = `Propose the removal of a cluster's document by a pull request. After the merge the cluster
is destroyed, with everything in it, as its plan shows; a protected cluster is not.`
	}
}

func addDocumentFlags(c *cobra.Command, req *v1.ClusterProposal, variables *[]string, file *string) {
	flags := c.Flags()
	flags.StringVarP(file, "file", "f", "", "its whole document; - reads the standard input")
	flags.StringVar(&req.Template, "template", "", "the name of its template")
	flags.StringVar(&req.Version, "version", "", "the exact version of its template")
	flags.StringVar(&req.Project, "project", "", "its project")
	flags.StringVar(&req.Environment, "environment", "", "its environment")
	flags.StringVar(&req.Provider, "provider", "", "its provider, as the template calls it")
	flags.StringVar(&req.Region, "region", "", "its region")
	flags.StringArrayVar(variables, "set", nil, "a variable and its value in YAML, such as node_count=6; an empty value removes it")
	flags.StringArrayVar(&req.Set, "spec", nil, "another key below spec and its value in YAML, such as drift.schedule=6h; an empty value removes it")
}

// proposalLine is what a command line has without a document: whether that makes a new one, or
// changes one, and what to say if not.
type proposalLine struct {
	makes, changes       bool
	notMade, nothingElse string
}

func clusterLine(req v1.ClusterProposal, variables []string) proposalLine {
	return proposalLine{
		makes:       req.Template != "" || len(req.Set) > 0,
		changes:     len(variables)+len(req.Set) > 0 || req.Template+req.Version+req.Project+req.Environment+req.Provider+req.Region != "",
		notMade:     "a new cluster needs --template, or its document with -f",
		nothingElse: "there is nothing to change: give --set, --version or --spec, or the document with -f",
	}
}

// documentOf reads the document of a proposal, if a file is named, and finds fault with a
// command line that asks for nothing.
func documentOf(in io.Reader, change, file string, line proposalLine) (string, error) {
	switch {
	case file != "":
		return readDocument(in, file)
	case change == proposals.Create && !line.makes:
		return "", cli.UsageError("%s", line.notMade)
	case change == proposals.Update && !line.changes:
		return "", cli.UsageError("%s", line.nothingElse)
	}
	return "", nil
}

func readDocument(in io.Reader, file string) (string, error) {
	if file == "-" {
		data, err := io.ReadAll(io.LimitReader(in, 1<<20))
		if err != nil {
			return "", fmt.Errorf("read the standard input: %w", err)
		}
		return string(data), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read document: %w", err)
	}
	return string(data), nil
}

// variablesOf are keys below spec of variables, each "name=value". The value is YAML, and goes
// to the server as it is typed: 2026-01-01 is not a time, nor is 1.10 the number 1.1.
func variablesOf(settings []string) ([]string, error) {
	var set []string
	for _, setting := range settings {
		name, text, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return nil, cli.UsageError("--set %q: want NAME=VALUE", setting)
		}
		if err := yaml.Unmarshal([]byte(text), new(yaml.Node)); err != nil {
			return nil, cli.UsageError("--set %s: its value is not valid YAML: put a text in quotes", name)
		}
		set = append(set, "variables."+setting)
	}
	return set, nil
}

// proposalText says where the pull request is; of a dry run, what it would be.
func proposalText(req v1.ClusterProposal, made v1.ProposedCluster) string {
	if req.DryRun {
		var b strings.Builder
		b.WriteString(made.Document)
		if made.Document == "" {
			fmt.Fprintf(&b, "# %s of %s would no longer define %s\n", made.Path, made.Repo, req.Cluster)
		}
		for _, fault := range made.Faults {
			fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(fault.Error(), "\n", " "))
		}
		return b.String()
	}
	where := fmt.Sprintf("pull request %s", made.PullRequest)
	if made.URL != "" {
		where += " (" + made.URL + ")"
	}
	if made.State != string(holdfast.PullRequestOpen) {
		return fmt.Sprintf("the same was proposed before: %s is %s\n", where, made.State)
	}
	return fmt.Sprintf("proposed: %s changes %s of %s on branch %s; somebody else has to approve it\n", where, made.Path, made.Repo, made.Branch)
}
