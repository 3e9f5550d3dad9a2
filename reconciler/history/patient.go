package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// patience is how long what a run has left may not be readable before it counts as not
// kept: a disk may recover.
const patience = 10 * time.Minute

// maxUnread bounds what is remembered of what cannot be read.
const maxUnread = 4096

// Patient reads what runs leave behind, and does not wait forever for it. What could not be
// read for ten minutes counts as not kept until it can be read: a blob that is damaged or
// gone stays so. A store that is unavailable (ErrUnavailable) says nothing of what it keeps,
// however long that takes. It is safe for concurrent use.
type Patient struct {
	from   Artefacts
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	since map[string]time.Time // when it could not be read for the first time
}

// NewPatient returns a Patient.
func NewPatient(from Artefacts, logger *slog.Logger, now func() time.Time) *Patient {
	return &Patient{from: from, logger: logger, now: now, since: make(map[string]time.Time)}
}

// Artefact opens what a run's last attempt that stored it under name left. It, or its
// reader, is an ErrNotFound if that was not kept, or counts as such.
func (p *Patient) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	what := name + " of run " + run
	file, err := p.from.Artefact(ctx, run, name)
	if err != nil {
		return nil, p.failed(ctx, what, err)
	}
	return &patientFile{
		ReadCloser: file,
		read:       func() { p.forget(what) },
		failed:     func(err error) error { return p.failed(ctx, what, err) },
	}, nil
}

// failed notes that something could not be read, and says what that counts as.
func (p *Patient) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil || errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrUnavailable) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, known := p.since[what]
	if !known {
		if len(p.since) >= maxUnread {
			clear(p.since) // at worst the wait is longer
		}
		p.since[what] = p.now()
	}
	if !known || p.now().Sub(since) <= patience {
		return err
	}
	p.logger.WarnContext(ctx, "an artefact cannot be read and counts as not kept", "artefact", what, "err", err)
	return fmt.Errorf("%w: it could not be read since %s: %w", holdfast.ErrNotFound, since.UTC().Format(time.RFC3339), err)
}

func (p *Patient) forget(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, what)
}

// patientFile reports how reading it ends.
type patientFile struct {
	io.ReadCloser
	read   func()
	failed func(err error) error
}

func (f *patientFile) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		f.read()
	} else if err != nil {
		err = f.failed(err)
	}
	return n, err
}
