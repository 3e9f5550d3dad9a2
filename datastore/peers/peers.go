package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// clock is the database's: the clocks of replicas are not compared.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`

// Peers is what one replica reads and writes for the others. It is safe for concurrent use.
type Peers struct {
	db *sql.DB
}

// New returns Peers of a database that has the tables.
func New(db *sql.DB) *Peers { return &Peers{db: db} }

// Owner is the repository that a cluster belongs to; ErrNotFound if there is no such cluster.
func (p *Peers) Owner(ctx context.Context, cluster string) (owner string, err error) {
	err = p.db.QueryRowContext(ctx, `SELECT owner FROM summaries WHERE name = $1`, cluster).Scan(&owner)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("cluster %q: %w", cluster, holdfast.ErrNotFound)
	} else if err != nil {
		return "", fmt.Errorf("read the owner of cluster %q: %w", cluster, err)
	}
	return owner, nil
}

// SaveRefs records a digest of the branches and tags that a repository has.
func (p *Peers) SaveRefs(ctx context.Context, repo string, refs holdfast.Digest) error {
	_, err := p.db.ExecContext(ctx, `INSERT INTO fetches (repo, refs) VALUES ($1, $2)
		ON CONFLICT (repo) DO UPDATE SET refs = excluded.refs WHERE fetches.refs <> excluded.refs`, repo, string(refs))
	if err != nil {
		return fmt.Errorf("record the refs of %q: %w", repo, err)
	}
	return nil
}

// Refs returns the digests that SaveRefs has recorded, by repository.
func (p *Peers) Refs(ctx context.Context) (map[string]holdfast.Digest, error) {
	refs := make(map[string]holdfast.Digest)
	err := p.each(ctx, func(rows *sql.Rows) error {
		var repo string
		var digest holdfast.Digest
		err := rows.Scan(&repo, &digest)
		refs[repo] = digest
		return err
	}, `SELECT repo, refs FROM fetches`)
	if err != nil {
		return nil, fmt.Errorf("read the refs of repositories: %w", err)
	}
	return refs, nil
}

// keptFor is how long a silent agent, and a lease that has ended, stay.
const keptFor = 24 * time.Hour

// Prune removes what nobody asks for any longer.
func (p *Peers) Prune(ctx context.Context) error {
	_, err := p.db.ExecContext(ctx, `WITH gone AS (DELETE FROM agents WHERE seen_at < `+clock+` - $1::bigint)
		DELETE FROM leases WHERE expires_at < `+clock+` - $1::bigint AND name LIKE ANY ($2::text[])`,
		int64(keptFor), []string{lead + "%", ready + "%", member + "%", command + "%"})
	if err != nil {
		return fmt.Errorf("remove what replicas have left: %w", err)
	}
	return nil
}

func (p *Peers) each(ctx context.Context, do func(*sql.Rows) error, query string, args ...any) error {
	rows, err := p.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
