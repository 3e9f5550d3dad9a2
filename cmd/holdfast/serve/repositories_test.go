package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/forge/github"
)

// A repository that is archived, or not found for a while, is looked at each minute,
// and what was given up there is posted when it is back.
func TestRepositoriesThatComeBack(t *testing.T) {
	t.Parallel()
	var (
		log     bytes.Buffer
		found   = github.Repository{ID: 7, FullName: "acme/fleet"}
		err     error
		retried []string
		failing error
		ids     []int64
	)
	w := &repositories{
		watched: []config.Repository{{Name: "acme/fleet", Forge: "hub"}},
		read: func(context.Context, config.Repository) (github.Repository, error) {
			if err != nil {
				return github.Repository{}, err
			}
			return found, nil
		},
		identify: func(_ string, id int64) { ids = append(ids, id) },
		retry: func(_ context.Context, repo string) error {
			retried = append(retried, repo)
			return failing
		},
		logger:  slog.New(slog.NewTextHandler(&log, nil)),
		trouble: make(map[string]trouble),
	}
	hidden := fmt.Errorf("GitHub answered 404: %w", holdfast.ErrNotFound)
	for i, step := range []struct {
		archived bool
		err      error
		failing  error
		retried  int // so far
		soon     bool
		says     string
	}{
		{},
		{archived: true, soon: true, says: "repository is archived"},
		{archived: true, soon: true},
		{err: holdfast.ErrUnavailable, soon: true, says: "not identified"},
		{retried: 1, says: "can be written again"},
		{retried: 1},
		{err: hidden, retried: 1, soon: true, says: "the credential no longer reaches it"},
		{err: hidden, retried: 1, soon: true},
		{archived: true, retried: 1, soon: true, says: "repository is archived"},
		{failing: errors.New("no database"), retried: 2, soon: true, says: "no database"},
		{retried: 3, says: "can be written again"},
		{err: holdfast.ErrUnavailable, retried: 3, soon: true, says: "not identified"},
		{retried: 3},
	} {
		log.Reset()
		found.Archived, err, failing = step.archived, step.err, step.failing
		wait := w.look(t.Context())
		if soon := wait == identifyRetry; soon != step.soon || len(retried) != step.retried {
			t.Errorf("step %d: next look in %s, posted again %d times; want soon %t, %d", i, wait, len(retried), step.soon, step.retried)
		}
		if !strings.Contains(log.String(), step.says) || step.says == "" && log.Len() > 0 {
			t.Errorf("step %d: the log says %q, want %q", i, log.String(), step.says)
		}
	}
	if len(ids) == 0 || slices.ContainsFunc(ids, func(id int64) bool { return id != 7 }) {
		t.Errorf("identified as %v", ids)
	}
}
