package datastore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// What is stored and cannot be read: one record of that kind holds up no others.

// damagedError is why a record cannot be read. It is a holdfast.ErrDamaged.
type damagedError struct{ error }

func (e damagedError) Is(target error) bool { return target == holdfast.ErrDamaged }
func (e damagedError) Unwrap() error        { return e.error }

// unseal decodes a record. If it is damaged, it logs that once.
func (s *records) unseal(ctx context.Context, kind, name string, doc []byte, into any) error {
	if err := s.keys.UnsealJSON(kind, name, doc, into); err != nil {
		s.tell(ctx, kind, name, err)
		return damagedError{err}
	}
	return nil
}

// readable returns want records, or all that can be read: read returns those among the first
// limit, and how many of these are damaged.
func readable[T any](what string, want int, read func(limit int) (found []T, damaged int, err error)) ([]T, error) {
	for limit := want; ; {
		found, damaged, err := read(limit)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		if len(found) >= want || len(found)+damaged < limit {
			return found[:min(len(found), want)], nil
		}
		limit = want + damaged
	}
}

// tell logs once that a record cannot be read.
func (s *records) tell(ctx context.Context, kind, name string, err error) {
	if _, logged := s.damagedLogged.LoadOrStore(kind+" "+name, true); !logged {
		s.log.WarnContext(ctx, "a record cannot be read", "kind", kind, "id", name, "err", err)
	}
}

// damagedPullRequest is what is known of a pull request whose record cannot be read. What is
// not known is taken for what allows least: it is of a fork, and nobody has seen a plan of it.
func damagedPullRequest(row pullRequestRow) holdfast.PullRequestRecord {
	return holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: row.ref, State: row.state, Fork: true},
		Damaged:     true, Unshown: []time.Time{time.Unix(0, 0).UTC()}, Version: row.version,
		Reason: holdfast.ReasonUnreadable,
		Detail: "what Holdfast has stored of it is damaged, and is replaced with the next look at it on the code host",
	}
}
