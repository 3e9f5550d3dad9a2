package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LogStore keeps the logs of runs, and gives them to whoever follows them.
type LogStore struct{ *records }

const (
	// maxLog is how much of an attempt's log is kept, in bytes.
	maxLog = 64 << 20
	// maxChunk is the most that one row holds.
	maxChunk = 64 << 10
	// maxLogRange is the most that one Log returns.
	maxLogRange = 1 << 20
	// maxAppend bounds one AppendLog.
	maxAppend = 8 << 20
	// logPoll is how long Log waits at most before it looks again: another replica may have
	// written, unless there is none.
	logPoll, logPollAlone = 400 * time.Millisecond, time.Second

	logCapped = "\n[the log is larger than 64 MiB: the rest is not kept]\n"
)

// AppendLog stores data at offset and returns the offset that it expects next: less
// than offset+len(data) if something before is missing, and what is stored already is
// not stored twice. The first 64 MiB of each attempt are kept; the rest is accepted and
// dropped, which the log's last line says. ErrFenced if ref is not the run's running
// attempt. The log is durable from the attempt's end on; until then a power failure can
// cost its last lines.
func (s *LogStore) AppendLog(ctx context.Context, ref holdfast.AttemptRef, offset int64, data []byte) (int64, error) {
	if offset < 0 || len(data) > maxAppend {
		return 0, fmt.Errorf("append %d bytes to the log of run %q at %d: want a positive offset and at most %d bytes", len(data), ref.Run, offset, maxAppend)
	}
	var next int64
	err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) (err error) {
		if _, err := running(ctx, q, ref, q.forUpdate); err != nil {
			return err
		}
		next, err = s.appendLog(ctx, q, ref, offset, data)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("append to the log of run %q: %w", ref.Run, err)
	}
	s.wakers.wake(ref.Run)
	return next, nil
}

func (s *LogStore) appendLog(ctx context.Context, q querier, ref holdfast.AttemptRef, offset int64, data []byte) (int64, error) {
	var size, received int64
	var capped bool
	err := q.row(ctx, `SELECT log_size, log_received, log_capped FROM attempts WHERE run = ? AND attempt = ?`,
		ref.Run, ref.Attempt).Scan(&size, &received, &capped)
	if err != nil {
		return 0, err
	}
	if offset > received || offset+int64(len(data)) <= received {
		return received, nil
	}
	data = data[received-offset:]
	received += int64(len(data))
	if room := maxLog - size; int64(len(data)) > room && !capped {
		data = append(data[:room:room], logCapped...)
		capped = true
	} else if capped {
		data = nil
	}
	for len(data) > 0 {
		n := min(len(data), maxChunk)
		size += int64(n)
		sealed, err := s.keys.Seal("log", chunkName(ref.Run, ref.Attempt, size), data[:n])
		if err != nil {
			return 0, fmt.Errorf("encrypt: %w", err)
		}
		if _, err := q.exec(ctx, `INSERT INTO log_chunks (run, attempt, end_at, data) VALUES (?, ?, ?, ?)`,
			ref.Run, ref.Attempt, size, sealed); err != nil {
			return 0, err
		}
		data = data[n:]
	}
	_, err = q.exec(ctx, `UPDATE attempts SET log_size = ?, log_received = ?, log_capped = ? WHERE run = ? AND attempt = ?`,
		size, received, boolInt(capped), ref.Run, ref.Attempt)
	return received, err
}

// chunkName says which part of which log a chunk is: it decrypts as no other.
func chunkName(run string, attempt int, end int64) string {
	return fmt.Sprintf("%s/%d/%d", run, attempt, end)
}

// Log reads an attempt's log from offset (attempt 0: the last one), at most 1
// MiB at once. With wait it returns only when there is something, the attempt
// has ended, or ctx is done; that last is not an error.
func (s *LogStore) Log(ctx context.Context, run string, attempt int, offset int64, wait bool) (holdfast.LogRange, error) {
	if offset < 0 {
		return holdfast.LogRange{}, fmt.Errorf("read log of run %q: offset %d is negative", run, offset)
	}
	for {
		// Before reading: what comes after must not be missed.
		woken, stop := s.wakers.wait(run)
		part, err := s.readLog(ctx, run, attempt, offset)
		switch {
		case err != nil && ctx.Err() != nil && wait:
			stop()
			return holdfast.LogRange{Next: offset}, nil
		case err != nil:
			stop()
			return holdfast.LogRange{}, fmt.Errorf("read log of run %q: %w", run, err)
		case !wait || part.Done || len(part.Data) > 0:
			stop()
			return part, nil
		}
		poll := time.NewTimer(s.logPoll())
		select {
		case <-woken:
		case <-poll.C:
		case <-ctx.Done():
			poll.Stop()
			stop()
			return part, nil
		}
		poll.Stop()
		stop()
	}
}

func (s *LogStore) logPoll() time.Duration {
	if s.db.server == nil {
		return logPollAlone
	}
	return logPoll
}

func (s *LogStore) readLog(ctx context.Context, run string, attempt int, offset int64) (holdfast.LogRange, error) {
	part := holdfast.LogRange{Next: offset}
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		var status holdfast.RunStatus
		var last int
		err := q.row(ctx, `SELECT status, attempt FROM runs WHERE id = ?`, run).Scan(&status, &last)
		if err := notFound(err, "run", run); err != nil {
			return err
		}
		if attempt == 0 {
			attempt = last
		}
		if attempt == 0 { // not begun, perhaps never to begin
			part.Done = status.Done()
			return nil
		}
		var size, ended int64
		err = q.row(ctx, `SELECT log_size, ended_at FROM attempts WHERE run = ? AND attempt = ?`, run, attempt).Scan(&size, &ended)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("attempt %d: %w", attempt, holdfast.ErrNotFound)
		} else if err != nil {
			return err
		}
		if err := s.readChunks(ctx, q, run, attempt, &part); err != nil {
			return err
		}
		part.Done = ended != 0 && part.Next >= size
		return nil
	})
	return part, err
}

// readChunks fills part from part.Next on.
func (s *LogStore) readChunks(ctx context.Context, q querier, run string, attempt int, part *holdfast.LogRange) error {
	err := q.each(ctx, func(row scanner) error {
		var end int64
		var sealed []byte
		if err := row.Scan(&end, &sealed); err != nil {
			return err
		}
		data, err := s.keys.Unseal("log", chunkName(run, attempt, end), sealed)
		if err != nil {
			return fmt.Errorf("decrypt: %w", err)
		}
		begin := end - int64(len(data))
		part.Data = append(part.Data, data[max(part.Next-begin, 0):]...)
		part.Next = end
		if len(part.Data) >= maxLogRange {
			return errStop
		}
		return nil
	}, `SELECT end_at, data FROM log_chunks WHERE run = ? AND attempt = ? AND end_at > ? AND end_at <= ? ORDER BY end_at`,
		run, attempt, part.Next, part.Next+maxLogRange+maxChunk) // more would be sent in vain
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// broadcaster wakes all who wait for a topic. Wakes are hints: who is woken looks for itself.
type broadcaster struct {
	mu     sync.Mutex
	topics map[string]*topic
}

type topic struct {
	woken   chan struct{} // closed by the next wake
	waiting int
}

func newBroadcaster() *broadcaster { return &broadcaster{topics: map[string]*topic{}} }

// wait returns a channel that the next wake closes. stop must be called.
func (b *broadcaster) wait(name string) (woken <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[name]
	if t == nil {
		t = &topic{woken: make(chan struct{})}
		b.topics[name] = t
	}
	t.waiting++
	return t.woken, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t.waiting--; t.waiting == 0 && b.topics[name] == t {
			delete(b.topics, name)
		}
	}
}

func (b *broadcaster) wake(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[name]; t != nil {
		close(t.woken)
		delete(b.topics, name)
	}
}
