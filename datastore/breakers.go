package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Breakers returns what is on record of providers that need a break, or have had one, by name.
func (s *RunStore) Breakers(ctx context.Context) ([]holdfast.Breaker, error) {
	var found []holdfast.Breaker
	err := s.eachDocument(ctx, s.db.reader(), "breaker", `SELECT provider, doc FROM breakers ORDER BY provider`, func(read func(into any) error) error {
		var b holdfast.Breaker
		err := read(&b)
		if errors.Is(err, holdfast.ErrDamaged) {
			return nil // as if there was none: it keeps nobody waiting
		}
		found = append(found, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list breakers: %w", err)
	}
	return found, nil
}

// ChangeBreaker replaces the record of a provider by what change makes of it; false leaves it.
// change may be called more than once, each time with the record of that moment. Nobody else
// changes it meanwhile.
func (s *RunStore) ChangeBreaker(ctx context.Context, provider string, change func(*holdfast.Breaker) bool) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofBreaker(provider)); err != nil {
			return err
		}
		b := holdfast.Breaker{Provider: provider}
		var doc []byte
		err := q.row(ctx, `SELECT doc FROM breakers WHERE provider = ?`, provider).Scan(&doc)
		if err == nil {
			if err = s.unseal(ctx, "breaker", provider, doc, &b); errors.Is(err, holdfast.ErrDamaged) {
				b, err = holdfast.Breaker{Provider: provider}, nil // it is replaced
			}
		} else if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err != nil || !change(&b) {
			return err
		}
		if doc, err = s.keys.SealJSON("breaker", provider, b); err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO breakers (provider, doc) VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET doc = excluded.doc`, provider, doc)
		return err
	})
	if err != nil {
		return fmt.Errorf("change breaker %q: %w", provider, err)
	}
	return nil
}
