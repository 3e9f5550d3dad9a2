package datastore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

// TemplateStore keeps what changes of templates would do, and the upgrades that were proposed.
type TemplateStore struct{ *records }

// SaveImpacts replaces what is known of a pull request's changes of templates;
// none removes it. What is as it was costs no write: most looks at a pull request
// find nothing new, and of a large fleet it is megabytes.
func (s *TemplateStore) SaveImpacts(ctx context.Context, ref holdfast.PullRequestRef, impacts []rollout.Impact) error {
	if err := s.saveImpacts(ctx, ref, impacts); err != nil {
		return fmt.Errorf("save impacts of %q: %w", ref.String(), err)
	}
	return nil
}

func (s *TemplateStore) saveImpacts(ctx context.Context, ref holdfast.PullRequestRef, impacts []rollout.Impact) error {
	if ref.Repo == "" || ref.IsZero() {
		return errors.New("it needs a repository and a number")
	}
	stored, err := s.impactsOf(ctx, ref)
	if err != nil && stored == nil {
		return err
	}
	if len(impacts) == 0 {
		if stored == nil {
			return nil
		}
		return s.db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, `DELETE FROM impacts WHERE pr_repo = ? AND pr_number = ?`, ref.Repo, ref.Number)
			return err
		})
	}
	impacts = slices.Clone(impacts)
	slices.SortStableFunc(impacts, func(a, b rollout.Impact) int { return strings.Compare(a.Template, b.Template) })
	plain, err := json.Marshal(impacts)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if bytes.Equal(plain, stored) {
		return nil
	}
	doc, err := s.keys.Seal("impacts", ref.String(), plain)
	if err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO impacts (pr_repo, pr_number, open_at, doc) VALUES (?, ?, ?, ?)
			ON CONFLICT (pr_repo, pr_number) DO UPDATE SET open_at = excluded.open_at, doc = excluded.doc`,
			ref.Repo, ref.Number, nanos(s.now()), doc)
		return err
	})
}

// impactsOf returns what is stored of a pull request, as JSON: nil if nothing is, empty if it is damaged.
func (s *TemplateStore) impactsOf(ctx context.Context, ref holdfast.PullRequestRef) ([]byte, error) {
	var doc []byte
	err := s.db.reader().row(ctx, `SELECT doc FROM impacts WHERE pr_repo = ? AND pr_number = ?`, ref.Repo, ref.Number).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	plain, err := s.keys.Unseal("impacts", ref.String(), doc)
	if err != nil {
		return []byte{}, fmt.Errorf("decrypt: %w", err)
	}
	return plain, nil
}

// Impacts returns what was saved of a pull request, by the templates' names; none
// if there is nothing.
func (s *TemplateStore) Impacts(ctx context.Context, ref holdfast.PullRequestRef) ([]rollout.Impact, error) {
	plain, err := s.impactsOf(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read impacts of %q: %w", ref.String(), err)
	}
	if plain == nil {
		return nil, nil
	}
	var impacts []rollout.Impact
	if err := json.Unmarshal(plain, &impacts); err != nil {
		return nil, fmt.Errorf("decode impacts of %q: %w", ref.String(), err)
	}
	return impacts, nil
}

// Upgrades returns the upgrades of a repository (empty: of all), by repository and key.
func (s *TemplateStore) Upgrades(ctx context.Context, repo string) ([]rollout.Upgrade, error) {
	var c conditions
	if repo != "" {
		c.Add(`repo = ?`, repo)
	}
	var found []rollout.Upgrade
	err := s.db.reader().each(ctx, func(row scanner) error {
		var u rollout.Upgrade
		var of, key string
		var doc []byte
		if err := row.Scan(&of, &key, &doc); err != nil {
			return err
		}
		err := s.keys.UnsealJSON("upgrade", upgradeName(of, key), doc, &u)
		found = append(found, u)
		return err
	}, `SELECT repo, upgrade_key, doc FROM upgrades`+c.Where()+` ORDER BY repo, upgrade_key`, c.Args...)
	if err != nil {
		return nil, fmt.Errorf("list upgrades: %w", err)
	}
	return found, nil
}

func upgradeName(repo, key string) string { return repo + "\x00" + key }

// SaveUpgrade creates (Version 0) or replaces a record, by (Repo, Key), and
// returns it with the next Version. A zero UpdatedAt becomes now.
func (s *TemplateStore) SaveUpgrade(ctx context.Context, u rollout.Upgrade) (rollout.Upgrade, error) {
	if u.Repo == "" || u.Key == "" {
		return rollout.Upgrade{}, fmt.Errorf("save upgrade %q of %q: it needs a repository and a key", u.Key, u.Repo)
	}
	read := u.Version
	u.Version++
	if u.UpdatedAt.IsZero() {
		u.UpdatedAt = s.now()
	}
	doc, err := s.keys.SealJSON("upgrade", upgradeName(u.Repo, u.Key), u)
	if err != nil {
		return rollout.Upgrade{}, fmt.Errorf("save upgrade: %w", err)
	}
	values := []any{string(u.State), u.Version, doc, u.Repo, u.Key}
	query := `UPDATE upgrades SET state = ?, version = ?, doc = ? WHERE repo = ? AND upgrade_key = ? AND version = ?`
	if read == 0 {
		query = `INSERT INTO upgrades (state, version, doc, repo, upgrade_key) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (repo, upgrade_key) DO NOTHING`
	} else {
		values = append(values, read)
	}
	if err := s.save(ctx, query, values, nil); err != nil {
		return rollout.Upgrade{}, fmt.Errorf("save upgrade %q of %q at version %d: %w", u.Key, u.Repo, read, err)
	}
	return u, nil
}

// TagPins returns the commits that a repository's tags were recorded with.
func (s *TemplateStore) TagPins(ctx context.Context, repo string) (map[string]holdfast.Revision, error) {
	pins := map[string]holdfast.Revision{}
	err := s.db.reader().each(ctx, func(row scanner) error {
		var tag string
		var rev holdfast.Revision
		err := row.Scan(&tag, &rev)
		pins[tag] = rev
		return err
	}, `SELECT tag, revision FROM tags WHERE repo = ?`, repo)
	if err != nil {
		return nil, fmt.Errorf("list tags of %q: %w", repo, err)
	}
	return pins, nil
}

// impactsKept is how long the impacts of a pull request are kept that is no
// longer open: what it shows is written again for some time after its merge.
const impactsKept = 30 * 24 * time.Hour

// pruneImpacts removes the impacts of pull requests that have been closed or
// merged for long. Open ones are noted once a day.
func (s *sweeper) pruneImpacts(ctx context.Context) error {
	const open = `EXISTS (SELECT 1 FROM pull_requests AS p
		WHERE p.repo = impacts.pr_repo AND p.number = impacts.pr_number AND p.state = 'open')`
	now := s.now()
	var stale int
	err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM impacts WHERE open_at < ?`, nanos(now.Add(-24*time.Hour))).Scan(&stale)
	if err != nil || stale == 0 {
		return err
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `UPDATE impacts SET open_at = ? WHERE open_at < ? AND `+open,
			nanos(now), nanos(now.Add(-24*time.Hour))); err != nil {
			return err
		}
		_, err := q.exec(ctx, `DELETE FROM impacts WHERE open_at < ? AND NOT `+open, nanos(now.Add(-impactsKept)))
		return err
	})
}
