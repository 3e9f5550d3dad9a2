// Whom the engines of an attempt can prove to be.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/runner/idtoken"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// takeIdentities gets the tokens of the run, which are renewed until the attempt is closed.
func (t *attempt) takeIdentities(ctx context.Context) error {
	source, ok := t.session.(idtoken.Source)
	if t.a.Identities.IsZero() {
		return nil
	} else if !ok {
		return errors.New("the run has identities, and nobody to get tokens from")
	}
	starter, dir := t.exec.opts.Isolation.Starter, t.tokenDir()
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = starter.ShowFolder(dir, t.slot)
	}
	if err != nil {
		return fmt.Errorf("make folder of tokens: %w", err)
	}
	t.tokens, err = idtoken.Open(ctx, idtoken.Options{
		Identities: t.a.Identities, Source: source, VaultCA: t.a.Env["VAULT_CACERT"],
		Files: idtoken.Files{
			Dir: dir, Seen: t.seenToken,
			Show: func(file *os.File) error { return starter.Show(file, t.slot) },
		},
		Redact: t.Redact.Add, Say: t.Say, Logger: t.logger,
	})
	return err
}

func (t *attempt) tokenDir() string { return filepath.Join(t.dir, "identity") }

// seenToken is how the engine sees a file of tokens.
func (t *attempt) seenToken(path string) string {
	if t.exec.mode().OwnRoot() {
		return filepath.Join(seenIdentity, filepath.Base(path))
	}
	return path
}

// identify adds to what an engine is started with what SDKs read.
func (t *attempt) identify(c sandbox.Command) sandbox.Command {
	if t.tokens == nil {
		return c
	}
	t.tokens.Environment(c.Env, t.seenToken)
	c.Mounts = append(c.Mounts, sandbox.Mount{Source: t.tokenDir()})
	if t.exec.mode().OwnRoot() {
		c.Mounts[len(c.Mounts)-1].Target = seenIdentity
	}
	return c
}

// storeEnv is the environment of commands of secret stores besides the run's credentials. The
// agent starts them, and sees files where they are.
func (t *attempt) storeEnv() map[string]string {
	env := maps.Clone(t.exec.opts.Engines.Env)
	t.tokens.Environment(env, filepath.Clean)
	return env
}
