package transfer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/holdfast-dev/holdfast/datastore/home"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// Options are what a copy needs. All are required unless noted.
type Options struct {
	Path string           // the SQLite file, in its data folder
	To   postgres.Address // the database, in which there must be nothing
	Keys *seal.Keyring    // those of the installation
	// Progress is called now and then: how many rows of a table were copied or compared.
	// Nil: nobody wants to know.
	Progress func(doing string, done, total int64)
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // nil means time.Now
}

// Table is what was copied of one, the same in both databases.
type Table struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"`
}

// Result says what was copied.
type Result struct {
	Identity string  `json:"identity"`
	Tables   []Table `json:"tables"`
	// Kept is the SQLite file under its new name, under which no server finds it.
	Kept string `json:"kept"`
	// Resumed: an earlier copy had written everything, and this one compared and finished it.
	Resumed bool `json:"resumed"`
}

// ErrNotEmpty says that the target has something else in it.
var ErrNotEmpty = errors.New("the target is not empty")

// ErrOldSource says that a server has to run on the source first.
var ErrOldSource = errors.New("the source has to be brought up to date first")

// Copy copies all records of a SQLite file to PostgreSQL. After it the data folder belongs to
// the new database, and the file has another name. It is a holdfast.ErrLocked if a server has
// one of the databases. After an interrupted copy the target has nothing, or everything: then
// the next one compares both, and finishes it.
func Copy(ctx context.Context, opts Options) (Result, error) {
	opts.complete()
	c := &copier{opts: opts}
	result, err := c.copy(ctx)
	if err = errors.Join(err, c.close()); err != nil {
		return Result{}, fmt.Errorf("copy the records of %s: %w", opts.Path, err)
	}
	return result, nil
}

func (o *Options) complete() {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

type copier struct {
	opts   Options
	home   *home.Home
	source *sql.DB
	target *postgres.Pools
	plan   []table
}

func (c *copier) copy(ctx context.Context) (Result, error) {
	if err := c.openSource(ctx); err != nil {
		return Result{}, err
	}
	if err := c.openTarget(ctx); err != nil {
		return Result{}, fmt.Errorf("target: %w", err)
	}
	result := Result{}
	var err error
	if result.Identity, err = c.identity(ctx, c.source); err != nil {
		return Result{}, err
	}
	if c.plan, err = planTables(ctx, c.source, c.target.Writers); err != nil {
		return Result{}, err
	}
	if result.Resumed, err = c.begunBefore(ctx, result.Identity); err != nil {
		return Result{}, err
	}
	if result.Resumed {
		result.Tables, err = c.compareAgain(ctx)
	} else {
		result.Tables, err = c.transfer(ctx)
	}
	if err != nil {
		return Result{}, err
	}
	// From here on the records are in the new database. A file of SQLite that is in use has
	// a journal, which the last connection takes along.
	if err := c.source.Close(); err != nil {
		return Result{}, err
	}
	result.Kept, err = c.home.HandOver(result.Identity, c.opts.Now())
	return result, err
}

func (c *copier) close() error {
	var errs []error
	if c.source != nil {
		errs = append(errs, c.source.Close())
	}
	if c.target != nil {
		errs = append(errs, c.target.Close())
	}
	if c.home != nil {
		errs = append(errs, c.home.Close())
	}
	return errors.Join(errs...)
}

// openSource takes the data folder, and refuses what a server would change before it used it.
func (c *copier) openSource(ctx context.Context) error {
	if info, err := os.Stat(c.opts.Path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return errors.New("there are no records in SQLite")
	} else if err != nil {
		return err
	}
	var err error
	if c.home, err = home.OpenSQLite(c.opts.Path, c.opts.Now()); err != nil {
		return err
	}
	dsn := url.URL{Scheme: "file", Path: c.home.Path(), RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": {"busy_timeout(10000)", "query_only(1)"},
	}.Encode()}
	if c.source, err = sql.Open("sqlite", dsn.String()); err != nil {
		return err
	}
	current, err := migrations.Version(ctx, c.source)
	if err != nil {
		return err
	}
	latest, err := migrations.SQLite.Latest()
	if err != nil {
		return err
	}
	switch {
	case current > latest:
		return fmt.Errorf("its schema is version %d, this holdfast knows %d: use the version that wrote it, or a newer one", current, latest)
	case current < latest:
		return fmt.Errorf("its schema is version %d, and %d is needed: %w", current, latest, ErrOldSource)
	}
	return c.settled(ctx)
}

// openTarget takes the database, after it has made the tables.
func (c *copier) openTarget(ctx context.Context) (err error) {
	if c.target, err = postgres.Open(ctx, c.opts.To); err != nil {
		return err
	}
	if err := onlyOurs(ctx, c.target.Writers); err != nil {
		return err
	}
	checkKeys := func(ctx context.Context) error {
		_, err := c.identity(ctx, c.target.Writers)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	if err := migrations.Postgres.Run(ctx, c.target.Writers, c.opts.Logger, migrations.Owner{Check: checkKeys}); err != nil {
		return postgres.Refused(err)
	}
	name := rand.Text()
	return c.target.Join(ctx, postgres.Server{
		Identity: "copy-" + name, Place: c.home.Place(), Nonce: name, Name: fmt.Sprintf("a copy of records (process %d)", os.Getpid()),
		Alone: "records are being copied into it",
	}, c.opts.Logger)
}

// identity is the name of an installation. It is an error if the keys are another one's.
func (c *copier) identity(ctx context.Context, db *sql.DB) (string, error) {
	var store string
	var sealed []byte
	err := db.QueryRowContext(ctx, `SELECT store, doc FROM identity WHERE id = 1`).Scan(&store, &sealed)
	if err != nil {
		return "", fmt.Errorf("read the identity: %w", err)
	}
	if _, err := c.opts.Keys.Unseal("identity", store, sealed); err != nil {
		return "", fmt.Errorf("it was written with another key: %w", err)
	}
	return store, nil
}

// begunBefore reports whether an earlier copy has written everything. Anything else in the
// target is an ErrNotEmpty.
func (c *copier) begunBefore(ctx context.Context, identity string) (bool, error) {
	var store string
	err := c.target.Writers.QueryRowContext(ctx, `SELECT store FROM identity WHERE id = 1`).Scan(&store)
	switch {
	case err == nil && store == identity:
		return true, nil
	case err == nil:
		return false, fmt.Errorf("it has the records of another installation, with the identity %s: %w", store, ErrNotEmpty)
	case !errors.Is(err, sql.ErrNoRows):
		return false, fmt.Errorf("read the identity of the target: %w", err)
	}
	for _, t := range c.plan {
		var some bool
		err := c.target.Writers.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+t.name+t.ours()+`)`).Scan(&some)
		if err != nil {
			return false, fmt.Errorf("look into %s: %w", t.name, err)
		}
		if some {
			return false, fmt.Errorf("there are rows in %s: %w", t.name, ErrNotEmpty)
		}
	}
	return false, nil
}
