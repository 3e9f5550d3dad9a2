package idtoken

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// Source is where tokens come from; *uplink.Session is one.
type Source interface {
	// IdentityToken returns a new token for an audience. It waits while the server is
	// unreachable, until ctx is done.
	IdentityToken(ctx context.Context, audience string) (protocol.IdentityToken, error)
	// ServeTokens makes a loopback address answer the attempt's engine with what answer
	// returns, and returns the address with its credential.
	ServeTokens(answer func(audience string) (token string, err error)) (url, credential string)
}

// Options are what a Keeper needs. All are required unless noted.
type Options struct {
	Identities protocol.Identities
	Source     Source
	Files      Files
	// Redact searches the log, and whatever else leaves the attempt, for secrets.
	Redact func(secrets ...string)
	// VaultCA is a file with the authorities (PEM) of Vault's certificate. Empty means those
	// of the machine.
	VaultCA string
	// Say writes a line into the attempt's log.
	Say    func(format string, args ...any)
	Logger *slog.Logger
}

// Files are the folder that the engine sees.
type Files struct {
	Dir  string                    // there already, of the attempt alone, and not the engine's
	Show func(file *os.File) error // lets the engine, and no other one, read a file
	Seen func(path string) string  // how the engine sees a path in Dir
}

// Keeper keeps the tokens of an attempt. It is safe for concurrent use.
type Keeper struct {
	opts  Options
	env   []variable
	files map[string]string // names of files of tokens, by audience

	mu     sync.Mutex
	tokens map[string]held // by audience
	vault  *vaultLogin     // nil: there is none

	stop    context.CancelFunc
	renewed sync.WaitGroup
}

// held is a token and until when it is valid.
type held struct {
	token string
	ends  time.Time // by the monotonic clock
}

// variable is one of the engine's environment. A file is a path in Files.Dir, which the
// engine may see elsewhere.
type variable struct{ name, value, file string }

func (k *Keeper) path(file string) string { return filepath.Join(k.opts.Files.Dir, file) }

// Open gets the tokens of all identities, writes what engines read, and renews it until Close.
// An error is a *failure.Error, or that of ctx.
func Open(ctx context.Context, opts Options) (*Keeper, error) {
	k := &Keeper{opts: opts, files: make(map[string]string), tokens: make(map[string]held)}
	if err := k.open(ctx); err != nil {
		k.Close(ctx)
		return nil, err
	}
	return k, nil
}

func (k *Keeper) open(ctx context.Context) error {
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	for _, audience := range k.layOut() {
		token, err := k.fetch(ctx, audience)
		if err != nil {
			return unavailable(ctx, err)
		}
		k.renewed.Go(func() { k.renew(keep, audience, token.Lifetime) })
	}
	if err := k.writeSettings(); err != nil {
		return err
	}
	if k.opts.Identities.Azure != nil {
		url, credential := k.opts.Source.ServeTokens(k.answerAzure)
		k.opts.Redact(credential)
		k.setAzureRequest(url, credential)
	}
	if k.opts.Identities.Vault != nil {
		return k.openVault(ctx, keep)
	}
	return nil
}

// unavailable is the failure of an attempt that gets no token.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &failure.Error{
		Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("get a token of this run: %w", err),
		Hint:      "the server's log says why it signs none; have its server.issuer or credentials changed since the run was handed out?",
		Transient: !errors.Is(err, holdfast.ErrForbidden) && !errors.Is(err, holdfast.ErrNotFound),
	}
}

// fetch gets a token and puts it where the engine reads it. The log is searched for it before
// it can be there.
func (k *Keeper) fetch(ctx context.Context, audience string) (protocol.IdentityToken, error) {
	asked := time.Now()
	token, err := k.opts.Source.IdentityToken(ctx, audience)
	if err != nil {
		return token, err
	}
	k.opts.Redact(token.Token)
	if name := k.files[audience]; name != "" {
		if err := k.write(name, token.Token); err != nil {
			return token, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens[audience] = held{token.Token, asked.Add(token.Lifetime)}
	return token, nil
}

const (
	// leastPause keeps a server with a short lifetime from being asked all the time.
	leastPause = time.Second
	// retryPause is between two tries at a renewal that failed for another reason than that the
	// server is unavailable: a disk may have been full, or a server started without its issuer.
	retryPause = 15 * time.Second
)

// renew gets another token whenever half the lifetime of the last one has passed.
func (k *Keeper) renew(ctx context.Context, audience string, lifetime time.Duration) {
	failed := false
	for pause := lifetime / 2; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause, leastPause)):
		}
		token, err := k.fetch(ctx, audience)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, holdfast.ErrFenced):
			return // the run is no longer ours: its engine is about to be stopped
		case err != nil:
			pause = min(pause, retryPause)
			if !failed {
				k.opts.Logger.ErrorContext(ctx, "token of a run was not renewed", "object", audience, "err", err)
				k.opts.Say("the token for %s was not renewed and is asked for again: %v", audience, err)
			}
		default:
			pause = token.Lifetime / 2
			if failed {
				k.opts.Say("the token for %s was renewed", audience)
			}
		}
		failed = err != nil
	}
}

// current is the token for an audience, if it is still valid.
func (k *Keeper) current(audience string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	token := k.tokens[audience]
	if token.token == "" || !time.Now().Before(token.ends) {
		return "", fmt.Errorf("the token has ended, and the server is out of reach: %w", holdfast.ErrUnavailable)
	}
	return token.token, nil
}

// write replaces a file of the engine's folder as a whole.
func (k *Keeper) write(name, text string) error {
	file, err := os.CreateTemp(k.opts.Files.Dir, ".new-")
	if err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	defer os.Remove(file.Name()) // does nothing once it was renamed
	_, err = file.WriteString(text)
	if err == nil {
		err = k.opts.Files.Show(file)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), k.path(name))
	}
	if err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	return nil
}

// Environment adds to env what SDKs read. seen is how who gets it sees a file of the folder.
// A nil Keeper adds nothing.
func (k *Keeper) Environment(env map[string]string, seen func(path string) string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range k.env {
		env[v.name] = v.value
		if v.file != "" {
			env[v.name] = seen(k.path(v.file))
		}
	}
}

// closeTime is how long Vault may take to revoke its token.
const closeTime = 5 * time.Second

// Close ends the renewal, gives Vault's token back and removes the files. The engine has
// ended before. A nil Keeper has nothing to close.
func (k *Keeper) Close(ctx context.Context) {
	if k == nil {
		return
	}
	k.stop()
	k.renewed.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if k.vault != nil {
		k.vault.revoke(ctx)
	}
	if entries, err := os.ReadDir(k.opts.Files.Dir); err == nil {
		for _, entry := range entries {
			_ = os.Remove(k.path(entry.Name()))
		}
	}
}

// layOut notes which files and variables there will be, and returns the audiences in order.
func (k *Keeper) layOut() []string {
	i := k.opts.Identities
	if i.AWS != nil {
		k.layOutAWS(*i.AWS)
	}
	if i.GCP != nil {
		k.layOutGCP(*i.GCP)
	}
	if i.Azure != nil {
		k.layOutAzure(*i.Azure)
	}
	var audiences []string
	for _, audience := range i.Audiences() {
		if !slices.Contains(audiences, audience) {
			audiences = append(audiences, audience)
		}
	}
	slices.Sort(audiences)
	return audiences
}
