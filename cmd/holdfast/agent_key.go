package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
)

// newAgentKeyCommand returns the command that makes keys of agents, and shows their public
// ones.
func newAgentKeyCommand(a *app) *cobra.Command {
	var show bool
	c := &cobra.Command{
		Use:   "key FILE",
		Short: "Make a key for an agent, and print its public key",
		Long: `Make an Ed25519 key for an agent: the private key is written to a new file, which only
you can read, and the public key is printed. Add the public key to spec.keys of the
runner's document.`,
		Example: "  holdfast agent key eu-1.key\n  holdfast agent key --show eu-1.key",
		Args:    cli.Exactly(1, "a file"),
		RunE: func(_ *cobra.Command, args []string) error {
			read := newKeyFile
			if show {
				read = readKeyFile
			}
			key, err := read(args[0])
			if err != nil {
				return err
			}
			public, err := key.PublicPEM()
			if err != nil {
				return err
			}
			id, err := key.ID()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "key %s\n", id)
			_, err = fmt.Fprint(a.Out, public)
			return err
		},
	}
	c.Flags().BoolVar(&show, "show", false, "print the public key of an existing file")
	return c
}

// newKeyFile makes a key, and writes it to a file that does not exist yet.
func newKeyFile(path string) (agentkey.Key, error) {
	key, err := agentkey.Generate()
	if err != nil {
		return key, err
	}
	text, err := key.PEM()
	if err != nil {
		return key, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return key, hint.New(fmt.Errorf("write key: %s exists already", path), "name a file that does not exist: a key is never overwritten")
	} else if err != nil {
		return key, fmt.Errorf("write key: %w", err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(path) // a part of a key is of no use
		return key, fmt.Errorf("write key: %w", err)
	}
	return key, nil
}

func readKeyFile(path string) (agentkey.Key, error) {
	text, err := client.ReadSecret(path)
	if err != nil {
		return agentkey.Key{}, fmt.Errorf("read key: %w", err)
	}
	key, err := agentkey.ParseKey([]byte(text))
	if err != nil {
		return key, fmt.Errorf("read key %s: %w", path, err)
	}
	return key, nil
}
