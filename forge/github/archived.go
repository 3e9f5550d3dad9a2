package github

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// archivedPause is the time after which a write to an archived repository is tried
// again: it may have been unarchived.
const archivedPause = 5 * time.Minute

// archives remembers which repositories GitHub has said are archived: what is to be
// written there waits, and one call in a while finds out for all. It is safe for
// concurrent use.
type archives struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]time.Time // by the beginning of the path of a call
}

func newArchives(now func() time.Time) *archives {
	return &archives{now: now, until: make(map[string]time.Time)}
}

func refusal(now, until time.Time) error {
	return later(now, until, errors.New("GitHub accepts nothing: the repository is archived"))
}

// check returns an error if a write would be to a repository that was archived a
// moment ago.
func (a *archives) check(path string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.until[repositoryOf(path)]
	switch now := a.now(); {
	case !known:
		return nil
	case now.Before(until):
		return refusal(now, until)
	default:
		delete(a.until, repositoryOf(path))
		return nil
	}
}

// note returns an error if an answer to a write says that the repository is archived.
func (a *archives) note(path string, status int, body []byte) error {
	if status != http.StatusForbidden || !strings.Contains(messageOf(body), "archived so is read-only") {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	until := now.Add(archivedPause)
	a.until[repositoryOf(path)] = until
	return refusal(now, until)
}

// repositoryOf is the part of a call's path that is the repository's: up to its name,
// or its number for one that was renamed.
func repositoryOf(path string) string {
	for _, from := range []struct {
		prefix string
		parts  int
	}{{"/repos/", 2}, {"/repositories/", 1}} {
		at := strings.Index(path, from.prefix)
		if at < 0 {
			continue
		}
		parts := strings.SplitN(path[at+len(from.prefix):], "/", from.parts+1)
		return from.prefix + strings.ToLower(strings.Join(parts[:min(from.parts, len(parts))], "/"))
	}
	return path
}
