package uplink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// outbox keeps things on disk until the server has them, one file each, and
// delivers them in the order in which they were put. It is safe for concurrent
// use.
type outbox struct {
	dir  string
	disk Disk
	// brief is the name of parcels that need not survive a power cut, whatever the
	// others do; empty: there are no such.
	brief string
	// send delivers one file. An error that is final refuses it for good.
	send func(ctx context.Context, name, path string) error
	// refused hears of each file that was; nil tells nobody.
	refused func(name string, err error)
	// trouble hears of each try that is made again; nil tells nobody.
	trouble func(err error)

	mu      sync.Mutex
	next    int
	parcels []*parcel // not yet delivered, oldest first
	failing bool      // the last try failed and is made again
	lasting bool      // parcels survive a power cut, not only a killed process
	closed  bool
	wake    chan struct{} // of one

	onDisk sync.Once // makeLasting has done it
	unsure error     // what came of that; read it after onDisk
}

// parcel is one file of an outbox.
type parcel struct {
	name string
	path string

	// settled is closed when it is known what becomes of the parcel for now:
	// delivered, refused, or held because the server is out of reach.
	settled chan struct{}
	once    sync.Once
	done    chan struct{} // closed when it is delivered or refused
	err     error         // why it was refused; read it after done
}

func (i *parcel) settle() { i.once.Do(func() { close(i.settled) }) }

// localPatience is how long the reading of a file is tried again when the disk fails.
const localPatience = 10 * time.Minute

const refusedPrefix = "refused-"

// What an outbox keeps of one name that was refused: so many files, of so many bytes.
const (
	maxRefused      = 20
	maxRefusedBytes = 64 << 20
)

// open makes the folder and takes up what an earlier process left in it.
func (o *outbox) open() error {
	o.wake = make(chan struct{}, 1)
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("open outbox: %w", err)
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return fmt.Errorf("open outbox: %w", err)
	}
	for _, entry := range entries { // sorted by name, and so by number
		number, name, ok := strings.Cut(entry.Name(), "-")
		seq, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // refused, or never complete
		}
		o.next = max(o.next, seq+1)
		o.parcels = append(o.parcels, &parcel{
			name: name, path: filepath.Join(o.dir, entry.Name()),
			settled: make(chan struct{}), done: make(chan struct{}),
		})
	}
	slices.SortFunc(o.parcels, func(a, b *parcel) int { return cmp.Compare(a.path, b.path) })
	return nil
}

// put keeps data under name. When it returns, the parcel is in the folder and will be
// delivered, if need be by a later process.
func (o *outbox) put(name string, data io.Reader) (*parcel, error) {
	tmp, err := os.CreateTemp(o.dir, temporary(name))
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = io.Copy(tmp, data)

	o.mu.Lock()
	defer o.mu.Unlock()
	lasting := o.lasting && name != o.brief
	if err == nil && lasting { // before it has its name: what is there is whole
		err = o.disk.SyncFile(tmp)
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return nil, fmt.Errorf("hold %s: %w", name, err)
	}
	if o.closed {
		return nil, fmt.Errorf("hold %s: %w", name, os.ErrClosed)
	}
	i := &parcel{
		name: name, path: filepath.Join(o.dir, fmt.Sprintf("%06d-%s", o.next, name)),
		settled: make(chan struct{}), done: make(chan struct{}),
	}
	if err := os.Rename(tmp.Name(), i.path); err != nil {
		return nil, fmt.Errorf("hold %s: %w", name, err)
	}
	if lasting {
		if err := o.disk.SyncDir(o.dir); err != nil {
			_ = os.Remove(i.path)
			return nil, fmt.Errorf("hold %s: %w", name, err)
		}
	}
	o.next++
	o.parcels = append(o.parcels, i)
	if o.failing {
		i.settle()
	}
	o.signal()
	return i, nil
}

// makeLasting makes all that is in the folder survive a power cut, and what is put from
// now on. An error stays: of what a disk has once failed to write, a second try says
// nothing.
func (o *outbox) makeLasting() error {
	o.onDisk.Do(func() {
		o.mu.Lock()
		o.lasting = true // first: what gets its name after the folder was read is synced by put
		o.mu.Unlock()
		o.unsure = o.syncAll()
	})
	return o.unsure
}

func (o *outbox) syncAll() error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue
		}
		if err := o.syncFile(entry.Name()); err != nil {
			return err
		}
	}
	// Also if it is empty: a parcel that was delivered must not be back after a power cut,
	// without its content, and be delivered again.
	return o.disk.SyncDir(o.dir)
}

// syncFile does it for a parcel's file, which may be delivered or refused meanwhile.
func (o *outbox) syncFile(name string) error {
	file, err := os.Open(filepath.Join(o.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		file, err = os.Open(filepath.Join(o.dir, refusedPrefix+name))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(o.disk.SyncFile(file), file.Close())
}

// close says that nothing more is put: run ends when all is delivered.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// held returns the newest parcel of that name which is not delivered yet, nil if
// there is none.
func (o *outbox) held(name string) *parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range slices.Backward(o.parcels) {
		if i.name == name {
			return i
		}
	}
	return nil
}

// last returns the newest parcel that is not delivered yet, nil if there is none.
func (o *outbox) last() *parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.parcels) == 0 {
		return nil
	}
	return o.parcels[len(o.parcels)-1]
}

// run delivers until the outbox is closed and empty, or ctx is done: what is
// left then stays on disk.
func (o *outbox) run(ctx context.Context) {
	for {
		o.mu.Lock()
		var head *parcel
		if len(o.parcels) > 0 {
			head = o.parcels[0]
		}
		closed := o.closed
		o.mu.Unlock()

		switch {
		case head != nil:
			if !o.deliver(ctx, head) {
				return
			}
		case closed:
			return
		default:
			select {
			case <-o.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// deliver sends one parcel until it is gone, and reports false if ctx ended
// first.
func (o *outbox) deliver(ctx context.Context, i *parcel) bool {
	garbled := 0
	patience := time.Now().Add(localPatience)
	_, err := Retry(ctx, o.postpone, func() (struct{}, error) {
		err := o.send(ctx, i.name, i.path)
		var answer *AnswerError
		var local *LocalError
		if errors.As(err, &local) && failure.LocalFault(err) && time.Now().Before(patience) {
			err = fmt.Errorf("%w: %s", holdfast.ErrUnavailable, local.Error()) // the file is there, and our disk does not give it
		}
		if errors.As(err, &answer) && answer.Status == http.StatusBadRequest && garbled < 3 {
			garbled++ // it may have suffered on its way
			err = fmt.Errorf("%w: %s", holdfast.ErrUnavailable, answer.text)
		}
		return struct{}{}, err
	})
	if err != nil && !Final(err) {
		return false
	}
	if err == nil {
		_ = os.Remove(i.path)
	} else {
		_ = os.Rename(i.path, filepath.Join(o.dir, refusedPrefix+filepath.Base(i.path)))
		o.pruneRefused(i.name)
		if o.refused != nil {
			o.refused(i.name, err)
		}
	}
	o.mu.Lock()
	o.parcels = o.parcels[1:]
	o.failing = false
	o.mu.Unlock()
	i.err = err
	close(i.done)
	i.settle()
	return true
}

// pruneRefused removes the oldest files of that name which were refused, beyond those
// that are kept. The newest stays whatever its size.
func (o *outbox) pruneRefused(name string) {
	paths, _ := filepath.Glob(filepath.Join(o.dir, refusedPrefix+"[0-9]*-"+name)) // sorted by number
	var size int64
	for n, path := range slices.Backward(paths) {
		if info, err := os.Lstat(path); err == nil {
			size += info.Size()
		}
		if newer := len(paths) - 1 - n; newer > 0 && (newer >= maxRefused || size > maxRefusedBytes) {
			_ = os.Remove(path)
		}
	}
}

// postpone notes that the server is out of reach: nobody needs to wait for
// what is in the outbox.
func (o *outbox) postpone(err error) {
	o.mu.Lock()
	o.failing = true
	for _, i := range o.parcels {
		i.settle()
	}
	o.mu.Unlock()
	if o.trouble != nil {
		o.trouble(err)
	}
}
