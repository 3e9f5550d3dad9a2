package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const (
	// leaseTime is how long a server that has died keeps others away, and renewEvery how
	// often one that lives says so: two of them may get lost.
	leaseTime  = 15 * time.Second
	renewEvery = 4 * time.Second

	leaseName = "server"
	// clock is the database's: the clocks of servers are not compared.
	clock = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`
)

// Holder has a database for one server. It is a row with a time, and no lock of a session: a
// session may end while its server lives, and PgBouncer shares sessions.
type Holder struct {
	pool  *sql.DB
	owner string
	log   *slog.Logger

	stop context.CancelFunc
	done chan struct{}
	lost chan struct{}

	mu      sync.Mutex
	renewed time.Time // by the monotonic clock; guarded
	over    bool      // another server has it; guarded
}

// Server says who wants a database.
type Server struct {
	// Place is a name of the data folder on this machine that no other folder has while the
	// machine is up, and that one server at most has at a time. Empty: unknown. Who had the
	// database at our own place is dead.
	Place string
	// Process and Name are for people: which process of which machine.
	Name string
	// Nonce is new with each start.
	Nonce string
}

func (s Server) String() string { return strings.Join([]string{s.Place, s.Nonce, s.Name}, " ") }

// Hold makes us the one server of a database. It waits for the end of the lease of a server
// that has died, and is an ErrLocked if one lives.
func (p *Pools) Hold(ctx context.Context, server Server, log *slog.Logger) error {
	h := &Holder{pool: p.lease, owner: server.String(), log: log, done: make(chan struct{}), lost: make(chan struct{})}
	for first, waited := int64(0), false; ; waited = true {
		began := time.Now()
		owner, expires, err := h.take(ctx, server.Place)
		switch {
		case err != nil:
			return err
		case owner == h.owner:
			h.renewed = began
			ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
			h.stop, p.holder = stop, h
			go h.keep(ctx)
			return nil
		case !waited:
			first = expires
			log.InfoContext(ctx, "another server has the database, or has died without giving it back: waiting for its next sign of life", "owner", nameOf(owner))
		case expires != first:
			return fmt.Errorf("the server on %s has it, and only one server may use a database: stop it, or give this one another database: %w",
				nameOf(owner), holdfast.ErrLocked)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func nameOf(owner string) string {
	parts := strings.SplitN(owner, " ", 3)
	return parts[len(parts)-1]
}

// take makes us the owner if nobody else is, and returns who is.
func (h *Holder) take(ctx context.Context, place string) (owner string, expires int64, err error) {
	const until = clock + ` + $2::bigint`
	_, err = h.pool.ExecContext(ctx, `INSERT INTO leases (name, owner, expires_at) VALUES ('`+leaseName+`', $1, `+until+`)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
		WHERE leases.owner = excluded.owner OR leases.expires_at <= `+clock+` OR ($3 <> '' AND split_part(leases.owner, ' ', 1) = $3)`,
		h.owner, int64(leaseTime), place)
	if err == nil {
		err = h.pool.QueryRowContext(ctx, `SELECT owner, expires_at FROM leases WHERE name = '`+leaseName+`'`).Scan(&owner, &expires)
	}
	if err != nil {
		return "", 0, fmt.Errorf("take the database's lease: %w", Explained(err))
	}
	return owner, expires, nil
}

// keep renews the lease until it is released, or another server has it.
func (h *Holder) keep(ctx context.Context) {
	defer close(h.done)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.renew(ctx); errors.Is(err, holdfast.ErrLocked) {
			return
		} else if err != nil && ctx.Err() == nil {
			h.log.WarnContext(ctx, "the database's lease is not renewed", "err", err)
		}
	}
}

func (h *Holder) renew(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, leaseTime)
	defer stop()
	began := time.Now()
	result, err := h.pool.ExecContext(ctx, `UPDATE leases SET expires_at = `+clock+` + $2::bigint WHERE name = '`+leaseName+`' AND owner = $1`,
		h.owner, int64(leaseTime))
	if err != nil {
		return Explained(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > 0 {
		h.renewed = began
		return nil
	}
	if !h.over {
		h.over = true
		close(h.lost)
		h.log.ErrorContext(ctx, "another server has taken the database: this one stores nothing more, and ends")
	}
	return holdfast.ErrLocked
}

// check is an ErrLocked if another server has the database. Of a server that could not renew
// its lease in time it asks before anything is written.
func (h *Holder) check(ctx context.Context) error {
	h.mu.Lock()
	over, late := h.over, time.Since(h.renewed) > leaseTime-renewEvery
	h.mu.Unlock()
	switch {
	case over:
		return fmt.Errorf("another server has taken the database: %w", holdfast.ErrLocked)
	case late:
		return h.renew(context.WithoutCancel(ctx))
	}
	return nil
}

// Silent reports whether the lease could not be renewed for as long as it lasts: the database does not
// answer, though no query may have failed yet.
func (p *Pools) Silent() bool {
	h := p.holder
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over && time.Since(h.renewed) > leaseTime
}

// Lost is closed when another server has the database.
func (p *Pools) Lost() <-chan struct{} {
	if p.holder == nil {
		return nil
	}
	return p.holder.lost
}

// release gives the database to whoever wants it.
func (h *Holder) release() {
	h.stop()
	<-h.done
	ctx, stop := context.WithTimeout(context.Background(), connectTimeout)
	defer stop()
	_, err := h.pool.ExecContext(ctx, `DELETE FROM leases WHERE name = '`+leaseName+`' AND owner = $1`, h.owner)
	if err != nil {
		h.log.WarnContext(ctx, "the database's lease was not given back: the next server waits until it ends", "err", err)
	}
}
