package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// errNoInstallation: the installation that we knew no longer exists.
var errNoInstallation = errors.New("the App is no longer installed there")

// tokens are where an account's tokens come from.
type tokens interface {
	token(ctx context.Context) (string, error)
	// refused says that GitHub did not accept a token: the next one should be
	// another, if there is one.
	refused(token string)
}

type tokenFunc func(ctx context.Context) (string, error)

func (f tokenFunc) token(ctx context.Context) (string, error) {
	token, err := f(ctx)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if token == "" {
		return "", fmt.Errorf("the token is empty: %w", holdfast.ErrUnauthorized)
	}
	return token, nil
}

func (tokenFunc) refused(string) {}

// installationTokens issues the tokens of an App's installation and keeps one
// until shortly before it ends.
type installationTokens struct {
	apps *github.AppsService
	id   int64
	now  func() time.Time

	busy    chan struct{} // holds one element while somebody uses the fields below
	current string
	renewAt time.Time
}

// tokenMargin is how long before its end a token is no longer used: a clone
// that starts with it must be able to end.
const tokenMargin = 5 * time.Minute

func (t *installationTokens) token(ctx context.Context) (string, error) {
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-t.busy }()
	if t.current != "" && t.now().Before(t.renewAt) {
		return t.current, nil
	}
	asked := t.now()
	issued, _, err := t.apps.CreateInstallationToken(ctx, t.id, nil)
	if err != nil {
		err = translate(ctx, err)
		if errors.Is(err, holdfast.ErrNotFound) {
			err = fmt.Errorf("%w: %w", errNoInstallation, err)
		}
		return "", fmt.Errorf("issue a token of installation %d: %w", t.id, err)
	}
	t.current = issued.GetToken()
	// A token that lives shorter than the margin is used for half its life.
	life := issued.GetExpiresAt().Sub(asked)
	t.renewAt = asked.Add(max(life-tokenMargin, life/2))
	return t.current, nil
}

func (t *installationTokens) refused(token string) {
	t.busy <- struct{}{}
	defer func() { <-t.busy }()
	if t.current == token {
		t.current = ""
	}
}
