package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// MaskLog overwrites parts of what an attempt's log has by now, each with as many bytes,
// so that who follows it reads on where they were. ErrFenced if ref is not the run's
// running attempt.
func (s *LogStore) MaskLog(ctx context.Context, ref holdfast.AttemptRef, spans []protocol.LogSpan) error {
	all := spans
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		spans := all
		if _, err := running(ctx, q, ref, q.forUpdate); err != nil {
			return err
		}
		var size int64
		err := q.row(ctx, `SELECT log_size FROM attempts WHERE run = ? AND attempt = ?`, ref.Run, ref.Attempt).Scan(&size)
		if err != nil {
			return err
		}
		for end := int64(0); end < size && len(spans) > 0; {
			if end, err = s.maskChunk(ctx, q, ref, max(end, spans[0].From), spans); err != nil || end == 0 {
				return err
			}
			for len(spans) > 0 && spans[0].To <= end {
				spans = spans[1:]
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("mask the log of run %q: %w", ref.Run, err)
	}
	return nil
}

// maskChunk masks spans in the chunk that has the byte at an offset, and returns where
// that chunk ends; zero if there is none.
func (s *LogStore) maskChunk(ctx context.Context, q querier, ref holdfast.AttemptRef, at int64, spans []protocol.LogSpan) (end int64, err error) {
	var sealed []byte
	err = q.each(ctx, func(row scanner) error { return row.Scan(&end, &sealed) },
		`SELECT end_at, data FROM log_chunks WHERE run = ? AND attempt = ? AND end_at > ? ORDER BY end_at LIMIT 1`, ref.Run, ref.Attempt, at)
	if err != nil || end == 0 {
		return 0, err
	}
	name := chunkName(ref.Run, ref.Attempt, end)
	data, err := s.keys.Unseal("log", name, sealed)
	if err != nil {
		return 0, fmt.Errorf("decrypt: %w", err)
	}
	begin := end - int64(len(data))
	for _, span := range spans {
		if span.From >= end {
			break
		}
		for i := max(span.From, begin); i < min(span.To, end); i++ {
			if c := &data[i-begin]; *c != '\n' {
				*c = masking(i-span.From, span.To-span.From)
			}
		}
	}
	if sealed, err = s.keys.Seal("log", name, data); err != nil {
		return 0, fmt.Errorf("encrypt: %w", err)
	}
	_, err = q.exec(ctx, `UPDATE log_chunks SET data = ? WHERE run = ? AND attempt = ? AND end_at = ?`, sealed, ref.Run, ref.Attempt, end)
	return end, err
}

// masking is what replaces a part of n bytes: the words for a sensitive value, if they
// fit, and stars.
func masking(at, n int64) byte {
	const words = holdfast.SensitiveValue
	if n >= int64(len(words)) && at < int64(len(words)) {
		return words[at]
	}
	return '*'
}
