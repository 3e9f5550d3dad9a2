// Command composeconfig prints a Compose file as Compose understands it, in JSON, or what is
// wrong with it: what `docker compose config` does, where there is no Docker. It is a module
// apart, so that nothing else depends on it.
//
// Usage: composeconfig FILE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "composeconfig:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: composeconfig FILE")
	}
	options, err := cli.NewProjectOptions(args, cli.WithInterpolation(true), cli.WithResolvedPaths(true), cli.WithNormalization(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(project)
}
