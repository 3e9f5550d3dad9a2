package peers

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/replica"
)

// What leases are called.
const (
	lead    = "lead:"    // and a repository: who leads it
	ready   = "ready:"   // and a repository: its leader has read it
	member  = "member:"  // and a replica: it lives
	command = "command:" // and a command: who carries it out
)

// Former ends the leases of earlier processes of a replica: they are dead, as a data folder
// has one process at a time. Others learn from it that they have died.
func (p *Peers) Former(ctx context.Context, identity string) error {
	_, err := p.db.ExecContext(ctx, `UPDATE leases SET expires_at = 0 WHERE starts_with(owner, $1 || '/') AND expires_at > 0
		AND name LIKE ANY ($2::text[])`, identity, []string{lead + "%", ready + "%", member + "%"})
	if err != nil {
		return fmt.Errorf("end the leases of former processes: %w", err)
	}
	return nil
}

// Renew extends those leases of an owner that have not ended to ttl from now, and returns
// all leases of replicas and of what they lead, also some that have ended.
func (p *Peers) Renew(ctx context.Context, owner string, ttl time.Duration) ([]replica.Lease, error) {
	kinds := []string{lead + "%", ready + "%", member + "%"}
	_, err := p.db.ExecContext(ctx, `UPDATE leases SET expires_at = `+clock+` + $2::bigint
		WHERE owner = $1 AND expires_at > `+clock+` AND name LIKE ANY ($3::text[])`, owner, int64(ttl), kinds)
	if err != nil {
		return nil, fmt.Errorf("renew the leases of %s: %w", owner, err)
	}
	var leases []replica.Lease
	err = p.each(ctx, func(rows *sql.Rows) error {
		var l replica.Lease
		var left int64
		err := rows.Scan(&l.Name, &l.Owner, &left)
		l.Left = time.Duration(left)
		leases = append(leases, l)
		return err
	}, `SELECT name, owner, expires_at - `+clock+` FROM leases WHERE name LIKE ANY ($1::text[]) ORDER BY name`, kinds)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return leases, nil
}

// Take makes owner the holder of a lease for ttl from now, if nobody is, and reports whether
// it does. A lease that owner holds already is held by somebody.
func (p *Peers) Take(ctx context.Context, name, owner string, ttl time.Duration) (bool, error) {
	result, err := p.db.ExecContext(ctx, `INSERT INTO leases (name, owner, expires_at) VALUES ($1, $2, `+clock+` + $3::bigint)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE leases.expires_at <= `+clock,
		name, owner, int64(ttl))
	if err != nil {
		return false, fmt.Errorf("take lease %q: %w", name, err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Give gives leases back that owner holds; without names, all of them but those of commands:
// owner may still be carrying one out, and nobody else is to do it again.
func (p *Peers) Give(ctx context.Context, owner string, names ...string) error {
	_, err := p.db.ExecContext(ctx, `DELETE FROM leases WHERE owner = $1 AND (name = ANY ($2::text[])
		OR cardinality($2::text[]) = 0 AND name NOT LIKE $3)`, owner, append([]string{}, names...), command+"%")
	if err != nil {
		return fmt.Errorf("give back the leases of %s: %w", owner, err)
	}
	return nil
}

// Led is what replicas lead now, by their identity: repositories in their order, and the empty
// name for what belongs to none.
func (p *Peers) Led(ctx context.Context) (map[string][]string, error) {
	led := make(map[string][]string)
	err := p.each(ctx, func(rows *sql.Rows) error {
		var name, owner string
		err := rows.Scan(&name, &owner)
		identity := owner[:max(strings.LastIndexByte(owner, '/'), 0)] // the process follows it
		led[identity] = append(led[identity], strings.TrimPrefix(name, lead))
		return err
	}, `SELECT name, owner FROM leases WHERE name LIKE $1 AND expires_at > `+clock+` ORDER BY name`, lead+"%")
	if err != nil {
		return nil, fmt.Errorf("list what replicas lead: %w", err)
	}
	return led, nil
}

// commandKept is longer than anybody asks for the result of a command.
const commandKept = time.Hour

// TakeCommand reports whether owner carries out a command: the first one to ask does, and
// no other ever.
func (p *Peers) TakeCommand(ctx context.Context, id, owner string) (bool, error) {
	return p.Take(ctx, command+id, owner, commandKept)
}
