package datastore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// maxPersonalTokens is how many tokens one owner may have.
const maxPersonalTokens = 50

// AddPersonalToken records a token, and forgets those that are over. ErrConflict if its owner
// has very many.
func (s *AccessStore) AddPersonalToken(ctx context.Context, t access.PersonalToken) error {
	doc, err := s.keys.SealJSON("personal token", t.ID, t)
	if err != nil {
		return fmt.Errorf("record token: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error { return addPersonalToken(ctx, q, s.now(), t, doc) })
	if err != nil {
		return fmt.Errorf("record token: %w", err)
	}
	return nil
}

func addPersonalToken(ctx context.Context, q querier, now time.Time, t access.PersonalToken, doc []byte) error {
	if _, err := q.exec(ctx, `DELETE FROM personal_tokens WHERE expires_at <= ?`, nanos(now)); err != nil {
		return err
	}
	var has int
	if err := q.row(ctx, `SELECT COUNT(*) FROM personal_tokens WHERE owner = ?`, t.Owner.Key()).Scan(&has); err != nil {
		return err
	}
	if has >= maxPersonalTokens {
		return holdfast.ErrorOf(holdfast.ErrConflict, "there are %d tokens already: delete one", has)
	}
	_, err := q.exec(ctx, `INSERT INTO personal_tokens (id, hash, owner, created_at, expires_at, seen_at, doc) VALUES (?, ?, ?, ?, ?, 0, ?)`,
		t.ID, t.Hash[:], t.Owner.Key(), nanos(t.CreatedAt), nanos(t.ExpiresAt), doc)
	return err
}

const tokenColumns = `id, hash, created_at, expires_at, seen_at, doc`

// PersonalToken returns the token that a hash is of; ErrNotFound if there is none. It may be
// over.
func (s *AccessStore) PersonalToken(ctx context.Context, hash access.Hash) (access.PersonalToken, error) {
	t, err := s.scanToken(s.db.reader().row(ctx, `SELECT `+tokenColumns+` FROM personal_tokens WHERE hash = ?`, hash[:]))
	if err != nil {
		return access.PersonalToken{}, fmt.Errorf("read token: %w", notFound(err, "token", ""))
	}
	return t, nil
}

// PersonalTokens lists those of an owner, by Owner.Key, the newest first; of nobody, all, at
// most 1,000.
func (s *AccessStore) PersonalTokens(ctx context.Context, owner string) ([]access.PersonalToken, error) {
	var c conditions
	c.Add(`expires_at > ?`, nanos(s.now()))
	if owner != "" {
		c.Add(`owner = ?`, owner)
	}
	var list []access.PersonalToken
	err := s.db.reader().each(ctx, func(row scanner) error {
		t, err := s.scanToken(row)
		list = append(list, t)
		return err
	}, `SELECT `+tokenColumns+` FROM personal_tokens`+c.Where()+` ORDER BY created_at DESC, id LIMIT 1000`, c.Args...)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return list, nil
}

func (s *AccessStore) scanToken(row scanner) (t access.PersonalToken, err error) {
	var id string
	var hash, doc []byte
	var created, expires, seen int64
	if err := row.Scan(&id, &hash, &created, &expires, &seen, &doc); err != nil {
		return t, err
	}
	if err := s.keys.UnsealJSON("personal token", id, doc, &t); err != nil {
		return t, err
	}
	if copy(t.Hash[:], hash) != len(t.Hash) {
		return t, errors.New("hash has another length")
	}
	t.CreatedAt, t.ExpiresAt, t.SeenAt = fromNanos(created), fromNanos(expires), fromNanos(seen)
	return t, nil
}

// SeePersonalToken records when a token was used.
func (s *AccessStore) SeePersonalToken(ctx context.Context, id string, at time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE personal_tokens SET seen_at = ? WHERE id = ? AND seen_at < ?`, nanos(at), id, nanos(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("record use of token %s: %w", id, err)
	}
	return nil
}

// DeletePersonalToken forgets a token of an owner, by Owner.Key; with an empty one, whosever
// it is. ErrNotFound if there is none.
func (s *AccessStore) DeletePersonalToken(ctx context.Context, id, owner string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `DELETE FROM personal_tokens WHERE id = ? AND (owner = ? OR ? = '')`, id, owner, owner)
		if err == nil && n == 0 {
			err = holdfast.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete token %q: %w", id, err)
	}
	return nil
}

// maxLoginRequests is how many command lines may wait to be logged in at once.
const maxLoginRequests = 1000

// AddLoginRequest records that a command line asks to be logged in, and forgets those that are
// over. ErrUnavailable if very many wait.
func (s *AccessStore) AddLoginRequest(ctx context.Context, r access.LoginRequest) error {
	doc, err := s.keys.SealJSON("login request", r.Secret.String(), r)
	if err != nil {
		return fmt.Errorf("record login request: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `DELETE FROM login_requests WHERE expires_at <= ?`, nanos(s.now())); err != nil {
			return err
		}
		var waiting int
		if err := q.row(ctx, `SELECT COUNT(*) FROM login_requests`).Scan(&waiting); err != nil {
			return err
		}
		if waiting >= maxLoginRequests {
			return holdfast.ErrorOf(holdfast.ErrUnavailable, "%d logins are waiting", waiting)
		}
		_, err := q.exec(ctx, `INSERT INTO login_requests (secret, code, expires_at, version, doc) VALUES (?, ?, ?, 1, ?)`,
			r.Secret[:], r.Code[:], nanos(r.ExpiresAt), doc)
		return err
	})
	if err != nil {
		return fmt.Errorf("record login request: %w", err)
	}
	return nil
}

// LoginRequest returns the one whose secret, or whose code, a hash is of; ErrNotFound if there
// is none, or it is over.
func (s *AccessStore) LoginRequest(ctx context.Context, hash access.Hash) (access.LoginRequest, error) {
	if hash == (access.Hash{}) {
		return access.LoginRequest{}, fmt.Errorf("read login request: %w", holdfast.ErrNotFound)
	}
	r, err := s.scanLogin(s.db.reader().row(ctx, `SELECT `+loginColumns+` FROM login_requests WHERE secret = ? OR code = ?`, hash[:], hash[:]))
	if err == nil && !s.now().Before(r.ExpiresAt) {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return access.LoginRequest{}, fmt.Errorf("read login request: %w", cmpNotFound(err))
	}
	return r, nil
}

func cmpNotFound(err error) error {
	if errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	return notFound(err, "login request", "")
}

const loginColumns = `secret, code, expires_at, version, doc`

func (s *AccessStore) scanLogin(row scanner) (r access.LoginRequest, err error) {
	var secret, code, doc []byte
	var expires, version int64
	if err := row.Scan(&secret, &code, &expires, &version, &doc); err != nil {
		return r, err
	}
	copy(r.Secret[:], secret)
	if err := s.keys.UnsealJSON("login request", r.Secret.String(), doc, &r); err != nil {
		return r, err
	}
	copy(r.Secret[:], secret)
	copy(r.Code[:], code)
	r.ExpiresAt, r.Version = fromNanos(expires), version
	return r, nil
}

// AnswerLogin records who has allowed, or denied, what a command line asks for. ErrConflict if
// somebody has answered before.
func (s *AccessStore) AnswerLogin(ctx context.Context, r access.LoginRequest) error {
	doc, err := s.keys.SealJSON("login request", r.Secret.String(), r)
	if err != nil {
		return fmt.Errorf("record answer to a login: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `UPDATE login_requests SET version = version + 1, doc = ? WHERE secret = ? AND version = ?`, doc, r.Secret[:], r.Version)
		if err == nil && n == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record answer to a login: %w", err)
	}
	return nil
}

// FinishLogin exchanges a request that was allowed for a token, once: ErrNotFound if it is gone.
func (s *AccessStore) FinishLogin(ctx context.Context, r access.LoginRequest, t access.PersonalToken) error {
	doc, err := s.keys.SealJSON("personal token", t.ID, t)
	if err != nil {
		return fmt.Errorf("finish login: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `DELETE FROM login_requests WHERE secret = ? AND version = ?`, r.Secret[:], r.Version)
		if err == nil && n == 0 {
			err = holdfast.ErrNotFound
		}
		if err != nil {
			return err
		}
		return addPersonalToken(ctx, q, s.now(), t, doc)
	})
	if err != nil {
		return fmt.Errorf("finish login: %w", err)
	}
	return nil
}
