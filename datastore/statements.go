package datastore

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

// statements runs queries on one pool and keeps what they were compiled to:
// compiling takes SQLite longer than most queries do. It is safe for concurrent
// use.
type statements struct {
	pool *sql.DB
	mu   sync.RWMutex
	kept map[string]*sql.Stmt
}

func newStatements(pool *sql.DB) *statements {
	return &statements{pool: pool, kept: map[string]*sql.Stmt{}}
}

// find returns the statement of a query; nil if there is none yet.
func (s *statements) find(query string) *sql.Stmt {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kept[query]
}

// keep compiles a query, and keeps it if there is room. It needs a connection of
// the pool: never call it while holding one. It returns nil if the query is not
// worth it, or does not compile: running it says why.
func (s *statements) keep(ctx context.Context, query string) *sql.Stmt {
	if strings.Count(query, "?") > maxParameters {
		return nil
	}
	s.mu.RLock()
	full := len(s.kept) >= maxStatements
	s.mu.RUnlock()
	if full {
		return nil
	}
	statement, err := s.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.kept[query]; first != nil {
		_ = statement.Close()
		return first
	}
	s.kept[query] = statement
	return statement
}

func (s *statements) get(ctx context.Context, query string) *sql.Stmt {
	if statement := s.find(query); statement != nil {
		return statement
	}
	return s.keep(ctx, query)
}

// ExecContext, QueryContext and QueryRowContext are those of the pool.
func (s *statements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if statement := s.get(ctx, query); statement != nil {
		return statement.ExecContext(ctx, args...)
	}
	return s.pool.ExecContext(ctx, query, args...)
}

func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if statement := s.get(ctx, query); statement != nil {
		return statement.QueryContext(ctx, args...)
	}
	return s.pool.QueryContext(ctx, query, args...)
}

func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if statement := s.get(ctx, query); statement != nil {
		return statement.QueryRowContext(ctx, args...)
	}
	return s.pool.QueryRowContext(ctx, query, args...)
}

// within returns what runs queries in a transaction of the pool. Queries that
// are new are compiled for the next one by its settle, to be called when the
// transaction has ended and its connection is free.
func (s *statements) within(tx *sql.Tx) *statementsInTx {
	return &statementsInTx{statements: s, tx: tx}
}

type statementsInTx struct {
	statements *statements
	tx         *sql.Tx
	missed     []string
}

func (s *statementsInTx) find(ctx context.Context, query string) *sql.Stmt {
	statement := s.statements.find(query)
	if statement == nil {
		s.missed = append(s.missed, query)
		return nil
	}
	return s.tx.StmtContext(ctx, statement)
}

func (s *statementsInTx) settle(ctx context.Context) {
	for _, query := range s.missed {
		if s.statements.find(query) == nil {
			s.statements.keep(ctx, query)
		}
	}
}

func (s *statementsInTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if statement := s.find(ctx, query); statement != nil {
		return statement.ExecContext(ctx, args...)
	}
	return s.tx.ExecContext(ctx, query, args...)
}

func (s *statementsInTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if statement := s.find(ctx, query); statement != nil {
		return statement.QueryContext(ctx, args...)
	}
	return s.tx.QueryContext(ctx, query, args...)
}

func (s *statementsInTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if statement := s.find(ctx, query); statement != nil {
		return statement.QueryRowContext(ctx, args...)
	}
	return s.tx.QueryRowContext(ctx, query, args...)
}
