package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
)

// taskEnvironment is what an agent finds in its environment where nothing else can be handed
// to it: a task of ECS has neither files nor an input of its own.
type taskEnvironment struct{ ticket, ca string }

func (e *taskEnvironment) addFlags(c *cobra.Command, f *agentFlags) {
	flags := c.Flags()
	flags.StringVar(&e.ticket, "ticket-env", "", "with --run: variable with the ticket, instead of --ticket-file")
	flags.StringVar(&e.ca, "ca-env", "", "variable with the certificate authority of the server, instead of --ca-file")
	flags.StringArrayVar(&f.executor.Engines.Pass, "engine-env", nil, "additional variable of this process to pass to engines")
	flags.StringArrayVar(&f.executor.Engines.Secret, "engine-secret", nil, "the same, with a value that is masked in logs and plans")
}

// take puts what the variables have into files below the agent's folder, which engines do not
// see, and removes them from the environment: what the agent starts would inherit them. A
// ticket is spent before an engine starts.
func (e *taskEnvironment) take(f *agentFlags) error {
	for _, one := range []struct {
		flag, variable, name string
		file                 *string
	}{{"ticket", e.ticket, "ticket", &f.ticketFile}, {"ca", e.ca, "ca.crt", &f.caFile}} {
		if one.variable == "" {
			continue
		}
		if *one.file != "" {
			return cli.UsageError("--%s-env and --%[1]s-file: name one", one.flag)
		}
		text := os.Getenv(one.variable)
		if text == "" {
			return cli.UsageError("--%s-env: variable %s is empty", one.flag, one.variable)
		}
		*one.file = filepath.Join(f.dir, one.name)
		err := errors.Join(os.MkdirAll(f.dir, 0o700), os.WriteFile(*one.file, []byte(text), 0o600), os.Unsetenv(one.variable))
		if err != nil {
			return fmt.Errorf("keep what variable %s has: %w", one.variable, err)
		}
	}
	return nil
}
