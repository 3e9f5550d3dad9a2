package template

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// NewSchemaCommand returns the command schema.
func NewSchemaCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	var folders []string
	var out string
	c := &cobra.Command{
		Use:   "schema",
		Short: "Write a JSON Schema of cluster documents, for completion and checks in editors",
		Long: `Write a JSON Schema of cluster documents, for completion and checks in editors: all
keys, and with --template the providers, regions and variables of the templates in a
checkout.

The YAML language server (VS Code, Neovim, Helix, JetBrains) finds it by a line at the
top of a file:

  # yaml-language-server: $schema=../holdfast.schema.json

What a schema cannot express, such as a rule between two variables, is reported
by holdfast validate and on pull requests.`,
		Example: `  holdfast schema --out holdfast.schema.json
  holdfast schema --template ../templates/kubernetes --out holdfast.schema.json`,
		Args: cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.schema(c.Context(), folders, out)
		},
	}
	c.Flags().StringArrayVar(&folders, "template", nil, "folder with one or more templates; may be repeated")
	c.Flags().StringVar(&out, "out", "", "the file (default: print it)")
	return c
}

func (a *app) schema(ctx context.Context, folders []string, out string) error {
	var all []*authoring.Draft
	for _, folder := range folders {
		_, drafts, err := validDrafts(ctx, []string{folder})
		if err != nil {
			return err
		}
		all = append(all, drafts...)
	}
	for i, d := range all {
		for _, other := range all[:i] {
			if other.Blueprint.Name == d.Blueprint.Name {
				return hint.New(
					fmt.Errorf("template %s is defined twice: in %s and in %s", d.Blueprint.Name, other.Dir, d.Dir),
					"name the folder of one of them with --template",
				)
			}
		}
	}
	data, err := authoring.EditorSchema(all)
	if err != nil {
		return err
	}
	if err := a.writeTo(out, data); err != nil {
		return err
	}
	name := out
	if name == "" {
		name = "holdfast.schema.json"
	}
	fmt.Fprintf(a.Err, "At the top of a cluster's file, with the path from it to the schema:\n\n  # yaml-language-server: $schema=%s\n", filepath.ToSlash(name))
	return nil
}
