package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// IssuerStore keeps the URL and the keys of the issuer of tokens.
type IssuerStore struct{ *records }

// Issuer returns what is on record, the keys in their order, and the database's time.
func (s *IssuerStore) Issuer(ctx context.Context) (issuer holdfast.Issuer, err error) {
	err = s.db.read(ctx, func(ctx context.Context, q querier) error {
		issuer = holdfast.Issuer{Now: s.now()}
		var issued int64
		err := q.row(ctx, `SELECT url, issued_at FROM issuer WHERE id = 1`).Scan(&issuer.URL, &issued)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		issuer.IssuedAt = fromNanos(issued)
		return q.each(ctx, func(row scanner) error {
			var key holdfast.IssuerKey
			var created, signs int64
			var doc []byte
			if err := row.Scan(&key.Number, &key.ID, &created, &signs, &doc); err != nil {
				return err
			}
			key.CreatedAt, key.SignsFrom = fromNanos(created), fromNanos(signs)
			key.Private, err = s.keys.Unseal("issuer key", key.ID, doc)
			issuer.Keys = append(issuer.Keys, key)
			return err
		}, `SELECT number, name, created_at, signs_from, doc FROM issuer_keys ORDER BY number`)
	})
	if err != nil {
		return holdfast.Issuer{}, fmt.Errorf("read issuer: %w", err)
	}
	return issuer, nil
}

// AddIssuerKey stores a key; an ErrConflict if one with its number was stored before.
func (s *IssuerStore) AddIssuerKey(ctx context.Context, key holdfast.IssuerKey) error {
	doc, err := s.keys.Seal("issuer key", key.ID, key.Private)
	if err != nil {
		return fmt.Errorf("add issuer's key: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `INSERT INTO issuer_keys (number, name, created_at, signs_from, doc) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (number) DO NOTHING`, key.Number, key.ID, nanos(key.CreatedAt), nanos(key.SignsFrom), doc)
		if err == nil && n == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add issuer's key: %w", err)
	}
	return nil
}

// RemoveIssuerKey removes a key for good. One that is gone is not an error.
func (s *IssuerStore) RemoveIssuerKey(ctx context.Context, number int64) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `DELETE FROM issuer_keys WHERE number = ?`, number)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove issuer's key: %w", err)
	}
	return nil
}

// SaveIssuer records the URL of the issuer, and when its first token was issued, if the
// record is still what it was; otherwise it is an ErrConflict.
func (s *IssuerStore) SaveIssuer(ctx context.Context, was, is holdfast.Issuer) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		var n int64
		if was.URL == "" {
			n, err = q.exec(ctx, `INSERT INTO issuer (id, url, issued_at) VALUES (1, ?, ?) ON CONFLICT (id) DO NOTHING`,
				is.URL, nanos(is.IssuedAt))
		} else {
			n, err = q.exec(ctx, `UPDATE issuer SET url = ?, issued_at = ? WHERE id = 1 AND url = ? AND issued_at = ?`,
				is.URL, nanos(is.IssuedAt), was.URL, nanos(was.IssuedAt))
		}
		if err == nil && n == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record issuer %s: %w", is.URL, err)
	}
	return nil
}
