package policies

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/confined"
	"github.com/holdfast-dev/holdfast/policy/library"
)

// app is what commands share.
type app struct{ *cli.App }

// NewPolicyCommand returns the command policy.
func NewPolicyCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	return cli.NewGroup("policy", "Test policies, and evaluate them for stored plans", a.newEvalCommand(), a.newTestCommand())
}

// NewEvaluatorCommand returns the hidden command by which the program starts itself, to
// evaluate policies in its own process.
func NewEvaluatorCommand(base *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: confined.CommandName, Short: "Evaluate policies for the process that starts this", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return confined.Serve(base.In, base.Out) },
	}
}

// maxSource bounds a file with policies or data for them.
const maxSource = 8 << 20

// fixturesDir is the folder of a folder with policies that has plans for their tests.
const fixturesDir = "fixtures"

// readSources reads the policies of folders and files. Paths are those in the folder.
func readSources(paths []string, shipped bool) (all []policy.Source, err error) {
	for _, root := range paths {
		found, err := readFolder(root)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, hint.New(fmt.Errorf("%s has no policy", root), "policies are files that end in .rego")
		}
		all = append(all, found...)
	}
	if shipped {
		all = append(all, library.WithTests()...)
	}
	return all, nil
}

func readFolder(root string) (all []policy.Source, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (entry.Name() == fixturesDir || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || !policy.IsSource(entry.Name()):
			return nil
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.Size() > maxSource {
			return fmt.Errorf("%s has more than %d MiB", name, maxSource>>20)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil || inside == "." {
			inside = filepath.Base(name)
		}
		all = append(all, policy.Source{Path: filepath.ToSlash(inside), Text: string(text)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	return all, nil
}
