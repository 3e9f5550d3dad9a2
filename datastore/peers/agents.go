package peers

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// claim is a ClaimRequest with what its message does not have.
type claim struct {
	protocol.ClaimRequest
	Tenants []string           `json:"tenants,omitempty"`
	Tied    []holdfast.RunKind `json:"tied,omitempty"`
}

// HearAgent records a sign of life of an agent's process, if the id is free: the process that
// has it was silent for as long as silence, or is was, whose place the new one takes. It
// reports whether it did.
func (p *Peers) HearAgent(ctx context.Context, req protocol.ClaimRequest, was string, silence time.Duration) (bool, error) {
	req.Executing = nil
	doc, err := json.Marshal(claim{req, req.Projects, req.Bound})
	if err != nil {
		return false, fmt.Errorf("encode the claim of agent %q: %w", req.Agent, err)
	}
	result, err := p.db.ExecContext(ctx, `INSERT INTO agents (id, process, claim, since, seen_at) VALUES ($1, $2, $3, `+clock+`, `+clock+`)
		ON CONFLICT (id) DO UPDATE SET process = excluded.process, claim = excluded.claim, seen_at = excluded.seen_at,
			since = CASE WHEN agents.process = excluded.process THEN agents.since ELSE excluded.since END
		WHERE agents.process = excluded.process OR agents.process = $4 OR agents.seen_at <= `+clock+` - $5::bigint`,
		req.Agent, req.Process, string(doc), was, int64(silence))
	if err != nil {
		return false, fmt.Errorf("record agent %q: %w", req.Agent, err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// HeardAgents returns the agents that replicas have heard of, by id; with an id that one only.
func (p *Peers) HeardAgents(ctx context.Context, id string) ([]replica.AgentSign, error) {
	var signs []replica.AgentSign
	err := p.each(ctx, func(rows *sql.Rows) error {
		var doc string
		var since, ago int64
		if err := rows.Scan(&doc, &since, &ago); err != nil {
			return err
		}
		var c claim
		if err := json.Unmarshal([]byte(doc), &c); err != nil {
			return err
		}
		c.Projects, c.Bound = c.Tenants, c.Tied
		signs = append(signs, replica.AgentSign{Claim: c.ClaimRequest, Since: time.Duration(since), Ago: max(time.Duration(ago), 0)})
		return nil
	}, `SELECT claim, `+clock+` - since, `+clock+` - seen_at FROM agents WHERE id = $1 OR $1 = '' ORDER BY id`, id)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return signs, nil
}
