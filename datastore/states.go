package datastore

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
)

// StateStore is Holdfast's own state backend: versions of states, their locks, and
// states that an engine could not save.
type StateStore struct {
	*records
	artefacts  *ArtefactStore // has states that reached nobody else
	keep       int            // versions of each state
	quarantine int64          // bytes of each attempt
}

// putStateTimeout bounds what a bucket that hangs can hold up.
const putStateTimeout = 5 * time.Minute

const versionColumns = `location, version, serial, lineage, size, run, created_at, quarantined, blob, inline, origin`

func scanVersion(row scanner) (holdfast.StateVersion, content, error) {
	var v holdfast.StateVersion
	var c content
	var created int64
	err := row.Scan(&v.Location, &v.Version, &v.Serial, &v.Lineage, &v.Size, &v.Run, &created, &v.Quarantined, &c.key, &c.inline, &c.origin)
	v.CreatedAt = fromNanos(created)
	return v, c, err
}

// State returns the newest version; ErrNotFound if there is none.
func (s *StateStore) State(ctx context.Context, location string) ([]byte, holdfast.StateVersion, error) {
	return s.readState(ctx, location, `SELECT `+versionColumns+` FROM state_versions
		WHERE location = ? AND quarantined = 0 ORDER BY version DESC LIMIT 1`, location)
}

// StateAt returns one version, quarantined or not.
func (s *StateStore) StateAt(ctx context.Context, location string, version int64) ([]byte, holdfast.StateVersion, error) {
	return s.readState(ctx, location, `SELECT `+versionColumns+` FROM state_versions
		WHERE location = ? AND version = ?`, location, version)
}

func (s *StateStore) readState(ctx context.Context, location, query string, args ...any) ([]byte, holdfast.StateVersion, error) {
	v, c, err := scanVersion(s.db.reader().row(ctx, query, args...))
	if err := notFound(err, "state", location); err != nil {
		return nil, holdfast.StateVersion{}, err
	}
	sealed, err := s.sealedFor(location, c)
	if err != nil {
		return nil, holdfast.StateVersion{}, fmt.Errorf("read state %q version %d: %w", location, v.Version, err)
	}
	data, err := s.getAll(ctx, "state", sealed, c)
	if err != nil {
		return nil, holdfast.StateVersion{}, fmt.Errorf("read state %q version %d: %w", location, v.Version, err)
	}
	return data, v, nil
}

// StateVersions returns the versions that are kept of a state, newest first,
// quarantined ones included.
func (s *StateStore) StateVersions(ctx context.Context, location string) ([]holdfast.StateVersion, error) {
	var versions []holdfast.StateVersion
	err := s.db.reader().each(ctx, func(row scanner) error {
		v, _, err := scanVersion(row)
		versions = append(versions, v)
		return err
	}, `SELECT `+versionColumns+` FROM state_versions WHERE location = ? ORDER BY version DESC`, location)
	if err != nil {
		return nil, fmt.Errorf("list versions of state %q: %w", location, err)
	}
	return versions, nil
}

// stateHeader is what a state says of itself, in plain text even where the
// engine encrypts the rest.
type stateHeader struct {
	Serial  *int64 `json:"serial"`
	Lineage string `json:"lineage"`
}

func parseState(data []byte) (serial int64, lineage string, err error) {
	var header stateHeader
	if err := json.Unmarshal(data, &header); err != nil {
		return 0, "", errors.New("it is not JSON")
	}
	if header.Serial == nil {
		return 0, header.Lineage, errors.New("it has no serial")
	}
	return *header.Serial, header.Lineage, nil
}

// stateDigest tells whether two states are the same without telling what is in them.
func (s *StateStore) stateDigest(data []byte) string {
	mac := hmac.New(sha256.New, s.keys.Derive("state digest"))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// PutState stores a version, or returns the newest one if it is the same: an upload
// whose answer was lost may be sent again. What is refused is kept in quarantine all
// the same: an upload by an attempt that is over (ErrFenced), under another lock than
// the state's (*statelock.StateLockedError), of an older serial than the newest
// (ErrConflict), or that is not a state. Only a location that is not the run's own is
// refused outright (ErrForbidden). The oldest of what an attempt has in quarantine is
// removed beyond 20 states or 64 MiB.
//
// It continues when ctx is done: the data is here, and who sent it may be gone.
func (s *StateStore) PutState(ctx context.Context, write holdfast.StateWrite) (holdfast.StateVersion, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), putStateTimeout)
	defer stop()
	serial, lineage, invalid := parseState(write.Data)
	c, err := s.put(ctx, "state", write.Location, bytes.NewReader(write.Data))
	if err != nil {
		return holdfast.StateVersion{}, fmt.Errorf("store state %q: %w", write.Location, err)
	}
	v := holdfast.StateVersion{
		Location: write.Location, Serial: serial, Lineage: lineage, Size: int64(len(write.Data)),
		Run: write.By.Run, CreatedAt: s.now(),
	}
	var refused error
	var unused []content
	digest, read := s.stateDigest(write.Data), v
	err = s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		v = read
		if err := holdState(ctx, q, write.By.Run); err != nil {
			return err
		}
		if err := q.alone(ctx, ofState(write.Location)); err != nil {
			return err
		}
		refused, err = refuseState(ctx, q, write, v)
		if err != nil {
			return err
		}
		if refused == nil {
			refused = invalid
		}
		v.Quarantined = refused != nil
		same, err := s.sameState(ctx, q, &v, digest)
		if err != nil {
			return err
		}
		if same {
			unused = []content{c}
			return nil
		}
		if unused, err = s.insertState(ctx, q, &v, write.By, digest, c); err != nil || invalid != nil || !v.Quarantined {
			return err
		}
		return noteRefused(ctx, q, v, write.By)
	})
	if errors.Is(err, holdfast.ErrForbidden) {
		s.drop(ctx, c)
	}
	if err != nil {
		return holdfast.StateVersion{}, fmt.Errorf("store state %q: %w", write.Location, err)
	}
	s.drop(ctx, unused...)
	if refused != nil {
		s.log.WarnContext(ctx, "quarantined a state", "run", write.By.Run, "attempt", write.By.Attempt, "err", refused)
		return v, fmt.Errorf("store state %q: kept in quarantine as version %d: %w", write.Location, v.Version, refused)
	}
	return v, nil
}

// refuseState returns why a state must not become the newest version; err is
// our own trouble, or a writer that has no business here.
func refuseState(ctx context.Context, q querier, write holdfast.StateWrite, v holdfast.StateVersion) (refused, err error) {
	location, err := running(ctx, q, write.By, q.forUpdate)
	switch {
	case errors.Is(err, holdfast.ErrFenced):
		return err, ownLocation(ctx, q, write)
	case err != nil:
		return nil, err
	case location != write.Location:
		return nil, fmt.Errorf("it is not the state of run %q: %w", write.By.Run, holdfast.ErrForbidden)
	}
	lock, err := readLock(ctx, q, write.Location)
	switch {
	case errors.Is(err, holdfast.ErrNotFound): // nobody else can have it while the attempt runs
	case err != nil:
		return nil, err
	case lock.ID != write.LockID && (write.LockID != "" || lock.By != write.By):
		return &statelock.StateLockedError{Lock: lock}, nil
	}
	var serial int64
	var lineage string
	err = q.row(ctx, `SELECT serial, lineage FROM state_versions WHERE location = ? AND quarantined = 0
		ORDER BY version DESC LIMIT 1`, write.Location).Scan(&serial, &lineage)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if lineage == v.Lineage && v.Serial < serial {
		return fmt.Errorf("its serial %d is older than %d: %w", v.Serial, serial, holdfast.ErrConflict), nil
	}
	return nil, nil
}

// ownLocation is an ErrForbidden if the run of a fenced write is known and has
// its state elsewhere.
func ownLocation(ctx context.Context, q querier, write holdfast.StateWrite) error {
	var location string
	err := q.row(ctx, `SELECT state_location FROM runs WHERE id = ?`, write.By.Run).Scan(&location)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && location != write.Location {
		return fmt.Errorf("it is not the state of run %q: %w", write.By.Run, holdfast.ErrForbidden)
	}
	return err
}

// sameState reports whether the newest version (of the quarantined, if v is)
// is the same state, and makes v that version.
func (s *StateStore) sameState(ctx context.Context, q querier, v *holdfast.StateVersion, digest string) (bool, error) {
	var version int64
	var stored string
	err := q.row(ctx, `SELECT version, digest FROM state_versions WHERE location = ? AND quarantined = ?
		ORDER BY version DESC LIMIT 1`, v.Location, boolInt(v.Quarantined)).Scan(&version, &stored)
	if errors.Is(err, sql.ErrNoRows) || err == nil && stored != digest {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*v, _, err = scanVersion(q.row(ctx, `SELECT `+versionColumns+` FROM state_versions WHERE location = ? AND version = ?`, v.Location, version))
	return true, err
}

// insertState stores a version under the location's next number and returns
// the contents of the versions that are no longer kept.
func (s *StateStore) insertState(ctx context.Context, q querier, v *holdfast.StateVersion, by holdfast.AttemptRef, digest string, c content) ([]content, error) {
	err := q.row(ctx, `INSERT INTO states (location, last_version, current, serial) VALUES (?, 1, 0, 0)
		ON CONFLICT (location) DO UPDATE SET last_version = states.last_version + 1 RETURNING last_version`, v.Location).Scan(&v.Version)
	if err != nil {
		return nil, err
	}
	_, err = q.exec(ctx, `INSERT INTO state_versions (location, version, serial, lineage, size, run, attempt, created_at, quarantined, digest, blob, inline)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.Location, v.Version, v.Serial, v.Lineage, v.Size, v.Run, by.Attempt, nanos(v.CreatedAt), boolInt(v.Quarantined), digest, c.key, c.inline)
	if err != nil {
		return nil, err
	}
	if v.Quarantined {
		return s.pruneQuarantine(ctx, q, v.Location, by)
	}
	if _, err := q.exec(ctx, `UPDATE states SET current = ?, serial = ? WHERE location = ?`, v.Version, v.Serial, v.Location); err != nil {
		return nil, err
	}
	return s.pruneStates(ctx, q, v.Location)
}

// pruneStates removes the versions beyond those that are kept. Quarantined ones
// are not among them: people decide about them, and pruneQuarantine bounds them.
func (s *StateStore) pruneStates(ctx context.Context, q querier, location string) ([]content, error) {
	var oldest int64 // that is kept
	err := q.row(ctx, `SELECT version FROM state_versions WHERE location = ? AND quarantined = 0
		ORDER BY version DESC LIMIT 1 OFFSET ? + 0`, location, s.keep-1).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var pruned []content
	const old = ` FROM state_versions WHERE location = ? AND quarantined = 0 AND version < ?`
	err = q.each(ctx, func(row scanner) error {
		_, c, err := scanVersion(row)
		pruned = append(pruned, c)
		return err
	}, `SELECT `+versionColumns+old, location, oldest)
	if err != nil || len(pruned) == 0 {
		return nil, err
	}
	_, err = q.exec(ctx, `DELETE`+old, location, oldest)
	return pruned, err
}
