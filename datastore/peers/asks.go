package peers

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast-dev/holdfast/replica"
)

// Ask stores what is asked of the leader of a repository, until the leader confirms it.
// Asking again for the same is recorded.
func (p *Peers) Ask(ctx context.Context, ask replica.Ask) error {
	_, err := p.db.ExecContext(ctx, `INSERT INTO asks (repo, kind, what, note) VALUES ($1, $2, $3, $4)
		ON CONFLICT (repo, kind, what) DO UPDATE SET seq = nextval(pg_get_serial_sequence('asks', 'seq')), note = excluded.note`,
		ask.Repo, string(ask.Kind), ask.What, ask.Note)
	if err != nil {
		return fmt.Errorf("ask the leader of %q for %s %s: %w", ask.Repo, ask.Kind, ask.What, err)
	}
	return nil
}

// Asked returns what is asked of the leaders of some repositories, oldest first.
func (p *Peers) Asked(ctx context.Context, repos []string, limit int) ([]replica.Ask, error) {
	var asks []replica.Ask
	err := p.each(ctx, func(rows *sql.Rows) error {
		var a replica.Ask
		err := rows.Scan(&a.Repo, &a.Kind, &a.What, &a.Note, &a.Seq)
		asks = append(asks, a)
		return err
	}, `SELECT repo, kind, what, note, seq FROM asks WHERE repo = ANY ($1::text[]) ORDER BY seq LIMIT $2`, append([]string{}, repos...), limit)
	if err != nil {
		return nil, fmt.Errorf("read what is asked of leaders: %w", err)
	}
	return asks, nil
}

// Answered forgets what was taken in, unless it was asked for again since it was read.
func (p *Peers) Answered(ctx context.Context, asks []replica.Ask) error {
	seqs := make([]int64, 0, len(asks))
	for _, a := range asks {
		seqs = append(seqs, a.Seq)
	}
	if _, err := p.db.ExecContext(ctx, `DELETE FROM asks WHERE seq = ANY ($1::bigint[])`, seqs); err != nil {
		return fmt.Errorf("forget what was asked of leaders: %w", err)
	}
	return nil
}
