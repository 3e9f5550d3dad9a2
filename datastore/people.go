package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// AccessStore keeps people, their sessions and their tokens.
type AccessStore struct{ *records }

// SavePerson records who has logged in. Links are AddLink's.
func (s *AccessStore) SavePerson(ctx context.Context, p access.Person) error {
	p.Links = nil
	id := p.ID.String()
	doc, err := s.keys.SealJSON("person", id, p)
	if err != nil {
		return fmt.Errorf("record person: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO people (id, seen_at, doc) VALUES (?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, doc = excluded.doc`, id, nanos(p.SeenAt), doc)
		return err
	})
	if err != nil {
		return fmt.Errorf("record person: %w", err)
	}
	return nil
}

// Person returns a person, with the accounts that belong to the same person; ErrNotFound if
// they have never logged in.
func (s *AccessStore) Person(ctx context.Context, id access.PersonID) (p access.Person, err error) {
	err = s.db.read(ctx, func(ctx context.Context, q querier) error {
		p = access.Person{}
		var doc []byte
		if err := q.row(ctx, `SELECT doc FROM people WHERE id = ?`, id.String()).Scan(&doc); err != nil {
			return notFound(err, "person", id.String())
		}
		if err := s.keys.UnsealJSON("person", id.String(), doc, &p); err != nil {
			return err
		}
		accounts, err := texts(ctx, q, `SELECT account FROM person_links WHERE person = ? ORDER BY account`, id.String())
		for _, account := range accounts {
			p.Links = append(p.Links, access.ParsePersonID(account))
		}
		return err
	})
	if err != nil {
		return access.Person{}, fmt.Errorf("read person: %w", err)
	}
	return p, nil
}

// AddLink records that an account of a code host is somebody's, and no longer anybody else's.
func (s *AccessStore) AddLink(ctx context.Context, person, account access.PersonID) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO person_links (account, person) VALUES (?, ?)
			ON CONFLICT (account) DO UPDATE SET person = excluded.person`, account.String(), person.String())
		return err
	})
	if err != nil {
		return fmt.Errorf("link %s: %w", account, err)
	}
	return nil
}

// maxSessions is how many sessions of one person are kept.
const maxSessions = 50

// AddSession records a login, and forgets sessions that are over, and those of one person
// beyond the newest 50.
func (s *AccessStore) AddSession(ctx context.Context, session access.Session) error {
	doc, err := s.keys.SealJSON("session", session.ID, session)
	if err != nil {
		return fmt.Errorf("record session: %w", err)
	}
	owner := sessionOwner(session)
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `DELETE FROM sessions WHERE expires_at <= ?`, nanos(s.now())); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `INSERT INTO sessions (id, hash, former, person, created_at, rotated_at, seen_at, expires_at, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, session.ID, session.Hash[:], session.Former[:], owner, nanos(session.CreatedAt),
			nanos(session.RotatedAt), nanos(session.SeenAt), nanos(session.ExpiresAt), doc); err != nil {
			return err
		}
		_, err := q.exec(ctx, `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE person = ?
			ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET ? + 0)`, owner, maxSessions)
		return err
	})
	if err != nil {
		return fmt.Errorf("record session: %w", err)
	}
	return nil
}

// sessionOwner is the owner of a session, for the bound on sessions per owner.
func sessionOwner(session access.Session) string {
	if session.Person.IsZero() {
		return "token " + session.Token
	}
	return session.Person.String()
}

const sessionColumns = `id, hash, former, created_at, rotated_at, seen_at, expires_at, doc`

// Session returns the session with an id or, without one, the session whose current or
// previous cookie has the hash; ErrNotFound if there is none. It may be over.
func (s *AccessStore) Session(ctx context.Context, id string, hash access.Hash) (access.Session, error) {
	if id == "" && hash == (access.Hash{}) {
		return access.Session{}, fmt.Errorf("read session: %w", holdfast.ErrNotFound) // sessions that were never rotated have no former hash
	}
	var row scanner
	if id != "" {
		row = s.db.reader().row(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id)
	} else {
		row = s.db.reader().row(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE hash = ? OR former = ?`, hash[:], hash[:])
	}
	session, err := s.scanSession(row)
	if err != nil {
		return access.Session{}, fmt.Errorf("read session: %w", notFound(err, "session", ""))
	}
	return session, nil
}

// Sessions lists those of a person, the newest first; of nobody, all, at most 1,000.
func (s *AccessStore) Sessions(ctx context.Context, person access.PersonID) ([]access.Session, error) {
	var c conditions
	if !person.IsZero() {
		c.Add(`person = ?`, person.String())
	}
	var list []access.Session
	err := s.db.reader().each(ctx, func(row scanner) error {
		session, err := s.scanSession(row)
		list = append(list, session)
		return err
	}, `SELECT `+sessionColumns+` FROM sessions`+c.Where()+` ORDER BY created_at DESC, id LIMIT 1000`, c.Args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return list, nil
}

func (s *AccessStore) scanSession(row scanner) (session access.Session, err error) {
	var id string
	var hash, former, doc []byte
	var created, rotated, seen, expires int64
	if err := row.Scan(&id, &hash, &former, &created, &rotated, &seen, &expires, &doc); err != nil {
		return session, err
	}
	if err := s.keys.UnsealJSON("session", id, doc, &session); err != nil {
		return session, err
	}
	if len(hash) != len(session.Hash) || len(former) != len(session.Former) {
		return session, errors.New("hash has another length")
	}
	copy(session.Hash[:], hash)
	copy(session.Former[:], former)
	session.CreatedAt, session.RotatedAt = fromNanos(created), fromNanos(rotated)
	session.SeenAt, session.ExpiresAt = fromNanos(seen), fromNanos(expires)
	return session, nil
}

// SaveSession records what the cookie has now and when it was seen; ErrConflict if the hash
// is no longer what it was: somebody else has rotated it, or it has ended.
func (s *AccessStore) SaveSession(ctx context.Context, session access.Session, was access.Hash) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, `UPDATE sessions SET hash = ?, former = ?, rotated_at = ?, seen_at = ? WHERE id = ? AND hash = ?`,
			session.Hash[:], session.Former[:], nanos(session.RotatedAt), nanos(session.SeenAt), session.ID, was[:])
		if err == nil && n == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record session %s: %w", session.ID, err)
	}
	return nil
}

// EndSession forgets a session. One that is gone is not an error.
func (s *AccessStore) EndSession(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `DELETE FROM sessions WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}

// AddRequester records that somebody, by Owner.Key, has asked through Holdfast for what a pull
// request proposes.
func (s *AccessStore) AddRequester(ctx context.Context, ref holdfast.PullRequestRef, owner string) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO requesters (repo, number, owner) VALUES (?, ?, ?) ON CONFLICT (repo, number, owner) DO NOTHING`,
			ref.Repo, ref.Number, owner)
		return err
	})
	if err != nil {
		return fmt.Errorf("record who asked for %s: %w", ref, err)
	}
	return nil
}

// Requesters are those who have asked through Holdfast for what a pull request proposes.
func (s *AccessStore) Requesters(ctx context.Context, ref holdfast.PullRequestRef) ([]string, error) {
	owners, err := texts(ctx, s.db.reader(), `SELECT owner FROM requesters WHERE repo = ? AND number = ? ORDER BY owner`, ref.Repo, ref.Number)
	if err != nil {
		return nil, fmt.Errorf("read who asked for %s: %w", ref, err)
	}
	return owners, nil
}
