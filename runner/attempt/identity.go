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
)

// identityDir is the folder of tokens, in the attempt's folder.
const identityDir = "identity"

// takeIdentities gets the tokens of the run, which are renewed until the attempt is closed.
func (t *attempt) takeIdentities(ctx context.Context) error {
	if t.a.Identities.IsZero() {
		return nil
	}
	source, ok := t.session.(idtoken.Source)
	if !ok {
		return errors.New("the run has identities, and nobody to get tokens from")
	}
	t.identities = filepath.Join(t.dir, identityDir)
	if err := os.Mkdir(t.identities, 0o700); err != nil {
		return fmt.Errorf("make folder of tokens: %w", err)
	}
	starter := t.exec.opts.Isolation.Starter
	if err := starter.ShowFolder(t.identities, t.slot); err != nil {
		return err
	}
	var err error
	t.tokens, err = idtoken.Open(ctx, idtoken.Options{
		Identities: t.a.Identities, Source: source, VaultCA: t.a.Env["VAULT_CACERT"],
		Files: idtoken.Files{
			Dir: t.identities, Seen: t.seen,
			Show: func(file *os.File) error { return starter.Show(file, t.slot) },
		},
		Redact: t.redact.Add, Say: t.say, Logger: t.logger,
	})
	return err
}

// storeEnv is the environment of commands of secret stores besides the run's credentials. The
// agent starts them, and sees files where they are.
func (t *attempt) storeEnv() map[string]string {
	env := maps.Clone(t.exec.opts.Engines.Env)
	t.tokens.Environment(env, func(path string) string { return path })
	return env
}
