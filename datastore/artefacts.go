package datastore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// ArtefactStore keeps what runs start from and leave behind: bundles, plan documents, artefacts.
type ArtefactStore struct{ *records }

// PutArtefact stores what a run's attempt leaves behind under name, over what it left
// before. ErrFenced if the attempt is over; only ArtefactErrored, the state that an engine
// could not upload, is also accepted from a former attempt that may not have sent
// everything, and counts as unsaved from then on, if it is new. At most 1 GiB.
// ArtefactPlan, and what a run leaves that does not write, is durable with the outcome of
// the attempt.
func (s *ArtefactStore) PutArtefact(ctx context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error {
	// Before data is read, and again when it is stored: an upload may take long.
	if err := mayLeave(ctx, s.db.reader(), ref, name, ""); err != nil {
		return fmt.Errorf("store artefact %q of run %q: %w", name, ref.Run, err)
	}
	c, err := s.put(ctx, "artefact", attemptName(ref, name), data)
	if err != nil {
		return fmt.Errorf("store artefact %q of run %q: %w", name, ref.Run, err)
	}
	old, write := content{}, s.db.write
	relaxed := name == protocol.ArtefactPlan || name != protocol.ArtefactErrored && s.mayRelax(ctx, ref.Run)
	if relaxed {
		write = s.db.writeRelaxed
	}
	err = write(ctx, func(ctx context.Context, q querier) error {
		if name == protocol.ArtefactErrored {
			if err := holdState(ctx, q, ref.Run); err != nil {
				return err
			}
		}
		if err := mayLeave(ctx, q, ref, name, q.forUpdate); err != nil {
			return err
		}
		old = content{}
		err := q.row(ctx, `SELECT blob, inline FROM artefacts WHERE run = ? AND name = ? AND attempt = ?`,
			ref.Run, name, ref.Attempt).Scan(&old.key, &old.inline)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if name == protocol.ArtefactErrored && errors.Is(err, sql.ErrNoRows) {
			if err := s.noteLate(ctx, q, ref); err != nil {
				return err
			}
		}
		_, err = q.exec(ctx, `INSERT INTO artefacts (run, attempt, name, size, created_at, blob, inline)
			VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (run, name, attempt) DO UPDATE SET size = excluded.size, created_at = excluded.created_at,
				blob = excluded.blob, inline = excluded.inline`,
			ref.Run, ref.Attempt, name, c.size, nanos(s.now()), c.key, c.inline)
		return err
	})
	if errors.Is(err, holdfast.ErrFenced) {
		s.drop(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("store artefact %q of run %q: %w", name, ref.Run, err)
	}
	if !relaxed { // otherwise a power cut could bring its row back: it is left to Sweep
		s.drop(ctx, old)
	}
	return nil
}

func mayLeave(ctx context.Context, q querier, ref holdfast.AttemptRef, name, suffix string) error {
	if name != protocol.ArtefactErrored {
		_, err := running(ctx, q, ref, suffix)
		return err
	}
	var one int
	err := q.row(ctx, `SELECT 1 FROM attempts AS e WHERE e.run = ? AND e.attempt = ? AND e.fence = ? AND NOT (`+saidAll+`)`,
		ref.Run, ref.Attempt, ref.Fence).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return holdfast.ErrFenced
	}
	return err
}

// Artefact opens what a run's last attempt that stored it under name left. The
// reader's end is reached without an error only if all was as it was stored.
func (s *ArtefactStore) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	ref := holdfast.AttemptRef{Run: run}
	var c content
	err := s.db.reader().row(ctx, `SELECT attempt, blob, inline FROM artefacts WHERE run = ? AND name = ?
		ORDER BY attempt DESC LIMIT 1`, run, name).Scan(&ref.Attempt, &c.key, &c.inline)
	if err := notFound(err, "artefact", run+"/"+name); err != nil {
		return nil, err
	}
	r, err := s.get(ctx, "artefact", attemptName(ref, name), c)
	if err != nil {
		return nil, fmt.Errorf("read artefact %q of run %q: %w", name, run, err)
	}
	return r, nil
}

// Plan returns what a run would change or has changed, as its last attempt that planned found it.
func (s *ArtefactStore) Plan(ctx context.Context, run string) (holdfast.Plan, error) {
	r, err := s.Artefact(ctx, run, protocol.ArtefactPlan)
	if err != nil {
		return holdfast.Plan{}, err
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return holdfast.Plan{}, fmt.Errorf("read plan of run %q: %w", run, err)
	}
	var plan holdfast.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return holdfast.Plan{}, fmt.Errorf("decode plan of run %q: %w", run, err)
	}
	return plan, nil
}

// PutBundle stores a bundle (tar, gzip) unless it is there and can be read: what is
// damaged or gone would be so for each run of the same content. What was there is left to
// Sweep. It is durable with the run that is made of it.
func (s *ArtefactStore) PutBundle(ctx context.Context, digest holdfast.Digest, data []byte) error {
	has, err := s.HasBundle(ctx, digest)
	if err != nil || has && s.readable(ctx, digest) {
		return err
	}
	now := nanos(s.now())
	c, err := s.put(ctx, "bundle", string(digest), bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("store bundle %s: %w", digest.Short(), err)
	}
	err = s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO bundles (digest, size, created_at, used_at, blob, inline) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (digest) DO UPDATE SET size = excluded.size, used_at = excluded.used_at, blob = excluded.blob, inline = excluded.inline`,
			string(digest), c.size, now, now, c.key, c.inline)
		return err
	})
	if err != nil {
		return fmt.Errorf("store bundle %s: %w", digest.Short(), err)
	}
	return nil
}

// readable reports whether a bundle can be read to its end.
func (s *ArtefactStore) readable(ctx context.Context, digest holdfast.Digest) bool {
	r, err := s.Bundle(ctx, digest)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close()) == nil
}

// HasBundle reports whether a bundle is stored. The caller may be about to make a run
// of it: for a day from then it is kept without one.
func (s *ArtefactStore) HasBundle(ctx context.Context, digest holdfast.Digest) (bool, error) {
	has, err := s.useBundle(ctx, digest)
	if err != nil {
		return false, fmt.Errorf("look for bundle %s: %w", digest.Short(), err)
	}
	return has, nil
}

// bundleGrace is how long a bundle that nothing refers to is kept after it was
// asked for, and usedWithin how exactly that time is known: most looks cost no
// write.
const (
	bundleGrace = 24 * time.Hour
	usedWithin  = time.Hour
)

func (s *ArtefactStore) useBundle(ctx context.Context, digest holdfast.Digest) (bool, error) {
	var used int64
	err := s.db.reader().row(ctx, `SELECT used_at FROM bundles WHERE digest = ?`, string(digest)).Scan(&used)
	switch now := s.now(); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case now.Sub(fromNanos(used)) < usedWithin:
		return true, nil
	}
	var n int64 // zero: it was pruned in between
	err = s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		n, err = q.exec(ctx, `UPDATE bundles SET used_at = ? WHERE digest = ?`, nanos(s.now()), string(digest))
		return err
	})
	return n > 0, err
}

// Bundle opens a bundle. The reader's end is reached without an error only if
// all was as it was stored.
func (s *ArtefactStore) Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error) {
	var c content
	err := s.db.reader().row(ctx, `SELECT blob, inline FROM bundles WHERE digest = ?`, string(digest)).Scan(&c.key, &c.inline)
	if err := notFound(err, "bundle", digest.Short()); err != nil {
		return nil, err
	}
	r, err := s.get(ctx, "bundle", string(digest), c)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", digest.Short(), err)
	}
	return r, nil
}
