package postgresserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Query returns what a query answers, a line for each row, its columns parted by bars.
func (s *Server) Query(query string) (string, error) { return s.query(s.URL(), query) }

// query begins a session, which tests may count, for one query.
func (s *Server) query(address, query string) (string, error) {
	session, err := s.connect(address)
	if err != nil {
		return "", err
	}
	answer, err := execute(session, query)
	_ = disconnect(session)
	return answer, err
}

// connect begins a session of the superuser.
func (s *Server) connect(address string) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	config.Password = s.password
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return pgconn.ConnectConfig(ctx, config)
}

func disconnect(session *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return session.Close(ctx)
}

// execute returns the rows that statements answer with.
func execute(session *pgconn.PgConn, statements string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results, err := session.Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	var lines []string
	for _, result := range results {
		for _, row := range result.Rows {
			lines = append(lines, string(bytes.Join(row, []byte("|"))))
		}
	}
	return strings.Join(lines, "\n"), nil
}
