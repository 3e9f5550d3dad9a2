package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/datastore/home"
	"github.com/holdfast-dev/holdfast/datastore/kept"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/datastore/walindex"
)

// Options are what a Store needs. All are required unless noted.
type Options struct {
	// Path is the SQLite file. It is created if it is missing, as is its
	// folder, both for their owner only. With Postgres there is no such file, but what is
	// next to it stays: the lock of the folder, which database its records are in, the blobs.
	Path string
	// Postgres is where the records are instead; zero: in SQLite.
	Postgres postgres.Address
	// Blobs is where that is which is too large for SQL. Its zero value means the folder "blobs"
	// next to Path. A bucket belongs to one database: another's is refused.
	Blobs objects.Options

	// Keys encrypt what is stored. A database that was written with other keys is refused.
	Keys *seal.Keyring

	// Retention is how much of the past a Sweep leaves. The zero value is meant for most.
	Retention Retention

	// Replica is what the server is among others that have the same database.
	Replica Replica

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means the database's clock, or of SQLite time.Now
}

// Store is everything that must survive, a part for each kind of record over one
// database. It is safe for concurrent use. Records that do not exist are a
// holdfast.ErrNotFound, writes with an old version a holdfast.ErrConflict.
type Store struct {
	*ClusterStore
	*RunStore
	*StateStore
	*PullRequestStore
	*PostStore
	*LocalStore
	*TemplateStore
	*RepositoryStore
	*IssuerStore
	*AccessStore
	*PlaceStore
	*RunnerStore
	*NotificationStore
	*ArtefactStore
	*LogStore
	*ReplicaStore
	*sweeper

	*records
	home    *home.Home
	closing sync.Once
}

// records are what all parts of a Store share.
type records struct {
	keys          *seal.Keyring
	log           *slog.Logger
	now           func() time.Time
	db            *database
	blobs         *objects.Bucket
	prefix        string       // of the keys of blobs: several databases may share a folder
	wakers        *broadcaster // who waits for log lines
	free          func(dir string) (bytes int64, known bool)
	decoded       kept.PullRequests
	damagedLogged sync.Map // names of records that cannot be read, of which that was logged

	beforeBoot int64 // the highest fence before the machine's start; see noteBoot
}

// time is the database's, as far as that has its own clock.
func (s *records) time() time.Time {
	if s.db != nil && s.db.server != nil {
		return s.db.server.Now()
	}
	return time.Now().UTC()
}

// newStore returns the parts of a Store, none of which can be used before open.
func newStore(opts Options) *Store {
	r := &records{
		keys:   opts.Keys,
		log:    opts.Logger,
		wakers: newBroadcaster(),
		free:   freeBytes,
	}
	r.now = r.time
	if opts.Now != nil {
		r.now = func() time.Time { return opts.Now().UTC() }
	}
	artefacts := &ArtefactStore{r}
	return &Store{
		ClusterStore:      &ClusterStore{r},
		RunStore:          &RunStore{r},
		StateStore:        &StateStore{records: r, artefacts: artefacts, keep: opts.Retention.States, quarantine: maxQuarantinedBytes},
		PullRequestStore:  &PullRequestStore{r},
		PostStore:         &PostStore{r},
		LocalStore:        newLocalStore(r, opts.Retention.Ended),
		TemplateStore:     &TemplateStore{r},
		RepositoryStore:   &RepositoryStore{r},
		IssuerStore:       &IssuerStore{r},
		AccessStore:       &AccessStore{r},
		PlaceStore:        &PlaceStore{placing{r}},
		RunnerStore:       &RunnerStore{r},
		NotificationStore: &NotificationStore{r},
		ArtefactStore:     artefacts,
		LogStore:          &LogStore{r},
		ReplicaStore:      &ReplicaStore{records: r},
		sweeper:           &sweeper{records: r, retention: opts.Retention},
		records:           r,
	}
}

// Open opens the database, brings its tables up to date and checks the keys. It
// is an ErrLocked if another server has the database open.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("datastore: %w", err)
	}
	s := newStore(opts)
	if err := s.open(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", opts.database(), err), s.Close())
	}
	return s, nil
}

func (o *Options) complete() error {
	if o.Path == "" {
		return errors.New("no path")
	}
	if o.Keys.Empty() {
		return errors.New("no keys")
	}
	if o.Blobs.URL == "" && o.Blobs.Dir == "" {
		o.Blobs.Dir = filepath.Join(filepath.Dir(o.Path), "blobs")
	}
	o.Retention.complete()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Blobs.Logger = o.Logger
	return nil
}

// database is where the records are, for people.
func (o *Options) database() string {
	if o.Postgres.URL == "" {
		return o.Path
	}
	u, err := url.Parse(o.Postgres.URL)
	if err != nil {
		return "of PostgreSQL"
	}
	u.RawQuery = ""
	return u.Redacted()
}

func (s *Store) open(ctx context.Context, opts Options) error {
	var err error
	var store string
	if opts.Postgres.URL != "" {
		store, err = s.openPostgres(ctx, opts)
	} else {
		store, err = s.openSQLite(ctx, opts)
	}
	if err != nil {
		return err
	}
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	if err := (&rebuilder{s.records}).rebuild(ctx); err != nil {
		return err
	}
	if err := s.holdRestored(ctx); err != nil {
		return err
	}
	if opts.Postgres.URL == "" {
		if err := (&rebuilder{s.records}).wipe(ctx, s.home.Path()); err != nil {
			return err
		}
	}
	s.endPauses(ctx)
	return s.openBlobs(ctx, opts.Blobs, store)
}

// takeOver ends what a former process of ours, and servers that are dead, had begun. What is
// another's that lives stays.
func (s *Store) takeOver(ctx context.Context) error {
	if err := s.db.write(ctx, func(ctx context.Context, q querier) error { return endClaims(ctx, q, s.me.Identity) }); err != nil {
		return err
	}
	return s.releaseDeadLocks(ctx)
}

// openSQLite returns the name of the database, as openPostgres does.
func (s *Store) openSQLite(ctx context.Context, opts Options) (store string, err error) {
	if s.home, err = home.OpenSQLite(opts.Path, s.now()); err != nil {
		return "", err
	}
	if s.db, err = openSQLite(ctx, s.home.Path()); err != nil {
		return "", err
	}
	if err := s.db.migrations.Run(ctx, s.db.durable.DB, s.log, migrations.Owner{Check: s.checkKeys}); err != nil {
		return "", err
	}
	if s.db.index, err = walindex.Reserve(s.home.Path()); err != nil {
		return "", err
	}
	me, err := s.whoWeAre(opts)
	if err != nil {
		return "", err
	}
	s.me = replicaOf(postgres.Peer{Server: me, StartedAt: s.now(), Living: true})
	if err := s.db.write(ctx, s.noteBoot); err != nil {
		return "", err
	}
	return s.identify(ctx)
}

func (s *Store) openPostgres(ctx context.Context, opts Options) (store string, err error) {
	if s.home, err = home.OpenElsewhere(opts.Path, s.now()); err != nil {
		return "", err
	}
	opts.Postgres.Memory = s.home
	if s.db, err = openPostgres(ctx, opts.Postgres); err != nil {
		return "", err
	}
	me, err := s.whoWeAre(opts)
	if err != nil {
		return "", err
	}
	owner := migrations.Owner{
		Check: s.checkKeys,
		May: func(ctx context.Context, current, oldest int64) error {
			return s.db.server.Vacant(ctx, me, current, oldest, s.log)
		},
	}
	if err := s.db.migrations.Run(ctx, s.db.durable.DB, s.log, owner); err != nil {
		return "", postgres.Refused(err)
	}
	if store, err = s.identify(ctx); err != nil {
		return "", err
	}
	if err := s.remember(ctx, store, me); err != nil {
		return "", err
	}
	if err := s.db.server.Join(ctx, me, s.log); err != nil {
		return "", err
	}
	s.me, s.alone = replicaOf(postgres.Peer{Server: me, StartedAt: s.db.server.Member().Began(), Living: true}), me.Alone != ""
	return store, nil
}

// Close waits for writes in progress and lets the database go. After it every
// method is an error; a second Close is not.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.close())
	}
	if s.blobs != nil {
		errs = append(errs, s.blobs.Close())
	}
	if s.home != nil {
		errs = append(errs, s.home.Close())
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.db.reader().row(ctx, `SELECT 1`).Scan(&one); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}

// identify returns the name that was chosen for the database at its first start. When
// servers start at once for the first time, one of them chooses it, and the keys.
func (s *Store) identify(ctx context.Context) (string, error) {
	var store string
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, "identity"); err != nil {
			return err
		}
		err := q.row(ctx, `SELECT store FROM identity WHERE id = 1`).Scan(&store)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		store = randomHex(8)
		sealed, err := s.keys.Seal("identity", store, nil)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO identity (id, store, doc) VALUES (1, ?, ?)`, store, sealed)
		return err
	})
	if err == nil {
		err = s.checkKeys(ctx)
	}
	return store, err
}

// checkKeys compares the keys with those of the first start: better no start
// than records that cannot be read, or a plan that is compared under another
// key.
func (s *Store) checkKeys(ctx context.Context) error {
	var store string
	var sealed []byte
	err := s.db.reader().row(ctx, `SELECT store, doc FROM identity WHERE id = 1`).Scan(&store, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // killed in its first start
	}
	if err != nil {
		return fmt.Errorf("read identity: %w", err)
	}
	if _, err := s.keys.Unseal("identity", store, sealed); err != nil {
		return fmt.Errorf("it was written with another key: %w", err)
	}
	return nil
}
