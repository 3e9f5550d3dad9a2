package statements

import (
	"context"
	"database/sql"
	"strings"
	"sync"
)

const (
	// maxStatements bounds the statements of one pool. There are some two hundred
	// queries; what is more are lists of another length.
	maxStatements = 400
	// maxParameters is how many a query has that is worth keeping: more are lists.
	maxParameters = 32
)

// Pool runs queries on one pool and keeps what they were compiled to:
// compiling takes SQLite longer than most queries do. It is safe for concurrent
// use.
type Pool struct {
	DB       *sql.DB
	numbered bool // parameters are "$1", and the driver keeps what it compiles
	mu       sync.RWMutex
	kept     map[string]*sql.Stmt
}

// New returns the statements of a pool of SQLite, none yet.
func New(pool *sql.DB) *Pool {
	return &Pool{DB: pool, kept: map[string]*sql.Stmt{}}
}

// NewNumbered returns what runs queries on a pool of PostgreSQL. It keeps none compiled: the
// driver does for each session, unless something shares sessions that has no place for it.
func NewNumbered(pool *sql.DB) *Pool {
	return &Pool{DB: pool, numbered: true}
}

// given is a query and its arguments as the database wants them.
func (p *Pool) given(query string, args []any) (string, []any) {
	if !p.numbered {
		return query, args
	}
	return numbered(query), storable(args)
}

// find returns the statement of a query; nil if there is none yet.
func (p *Pool) find(query string) *sql.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.kept[query]
}

// keep compiles a query, and keeps it if there is room. It needs a connection of
// the pool: never call it while holding one. It returns nil if the query is not
// worth it, or does not compile: running it says why.
func (p *Pool) keep(ctx context.Context, query string) *sql.Stmt {
	if p.numbered || strings.Count(query, "?") > maxParameters {
		return nil
	}
	p.mu.RLock()
	full := len(p.kept) >= maxStatements
	p.mu.RUnlock()
	if full {
		return nil
	}
	statement, err := p.DB.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.kept[query]; first != nil {
		_ = statement.Close()
		return first
	}
	p.kept[query] = statement
	return statement
}

func (p *Pool) get(ctx context.Context, query string) *sql.Stmt {
	if statement := p.find(query); statement != nil {
		return statement
	}
	return p.keep(ctx, query)
}

// ExecContext is that of the pool.
func (p *Pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if statement := p.get(ctx, query); statement != nil {
		return statement.ExecContext(ctx, args...)
	}
	query, args = p.given(query, args)
	return p.DB.ExecContext(ctx, query, args...)
}

// QueryContext is that of the pool.
func (p *Pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if statement := p.get(ctx, query); statement != nil {
		return statement.QueryContext(ctx, args...)
	}
	query, args = p.given(query, args)
	return p.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext is that of the pool.
func (p *Pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if statement := p.get(ctx, query); statement != nil {
		return statement.QueryRowContext(ctx, args...)
	}
	query, args = p.given(query, args)
	return p.DB.QueryRowContext(ctx, query, args...)
}

// Within returns what runs queries in a transaction of the pool. Queries that
// are new are compiled for the next one by its Settle, to be called when the
// transaction has ended and its connection is free.
func (p *Pool) Within(tx *sql.Tx) *Tx {
	return &Tx{pool: p, tx: tx}
}

// Tx runs queries in a transaction.
type Tx struct {
	pool   *Pool
	tx     *sql.Tx
	missed []string
}

func (t *Tx) find(ctx context.Context, query string) *sql.Stmt {
	if t.pool.numbered {
		return nil
	}
	statement := t.pool.find(query)
	if statement == nil {
		t.missed = append(t.missed, query)
		return nil
	}
	return t.tx.StmtContext(ctx, statement)
}

// Settle compiles what was new in the transaction, which has ended.
func (t *Tx) Settle(ctx context.Context) {
	for _, query := range t.missed {
		if t.pool.find(query) == nil {
			t.pool.keep(ctx, query)
		}
	}
}

// ExecContext is that of the transaction.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if statement := t.find(ctx, query); statement != nil {
		return statement.ExecContext(ctx, args...)
	}
	query, args = t.pool.given(query, args)
	return t.tx.ExecContext(ctx, query, args...)
}

// QueryContext is that of the transaction.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if statement := t.find(ctx, query); statement != nil {
		return statement.QueryContext(ctx, args...)
	}
	query, args = t.pool.given(query, args)
	return t.tx.QueryContext(ctx, query, args...)
}

// QueryRowContext is that of the transaction.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if statement := t.find(ctx, query); statement != nil {
		return statement.QueryRowContext(ctx, args...)
	}
	query, args = t.pool.given(query, args)
	return t.tx.QueryRowContext(ctx, query, args...)
}
