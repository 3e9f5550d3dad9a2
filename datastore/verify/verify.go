package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// Options say what is checked. All are required unless noted.
type Options struct {
	Path     string           // the SQLite file
	Postgres postgres.Address // where the records are instead; zero: in SQLite
	Blobs    objects.Options
	Keys     *seal.Keyring
	Deep     bool // everything is decrypted, and not only looked for
	// Progress is called now and then. Nil: nobody wants to know.
	Progress func(doing string, done, total int64)
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // nil means time.Now
}

// What can be wrong with a blob.
const (
	Missing    = "missing"    // a record refers to it, and it is not there
	Damaged    = "damaged"    // it is not what was written
	Unreadable = "unreadable" // it was encrypted with a key that is not configured
	Orphaned   = "orphaned"   // no record refers to it: the server removes it within a day or two
)

// Problem is something wrong with one blob.
type Problem struct {
	Problem string `json:"problem"`
	Blob    string `json:"blob"`
	Record  string `json:"record,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Result is what was found.
type Result struct {
	Deep      bool           `json:"deep"`
	Records   int64          `json:"records"` // that refer to blobs
	Inline    int64          `json:"inline"`  // contents without a blob that were decrypted
	Blobs     int64          `json:"blobs"`
	Bytes     int64          `json:"bytes"`     // of the blobs
	Decrypted int64          `json:"decrypted"` // bytes
	Counts    map[string]int `json:"counts"`    // of problems
	// Problems are the first MaxProblems of them: what is orphaned comes last.
	Problems []Problem `json:"problems"`

	orphaned []Problem // the first ones
}

// MaxProblems is how many are listed.
const MaxProblems = 1000

// OK reports whether everything that records refer to is there.
func (r Result) OK() bool { return r.Counts[Missing]+r.Counts[Damaged]+r.Counts[Unreadable] == 0 }

func (r *Result) add(problem, blob, record, detail string) {
	r.Counts[problem]++
	list := &r.Problems
	if problem == Orphaned { // there may be many, which must not keep others from being shown
		list = &r.orphaned
	}
	if len(*list) < MaxProblems {
		*list = append(*list, Problem{problem, blob, record, detail})
	}
}

// listed has the problems listed that are to be shown.
func (r Result) listed() Result {
	r.Problems = append(r.Problems, r.orphaned[:min(len(r.orphaned), MaxProblems-len(r.Problems))]...)
	r.orphaned = nil
	return r
}

// orphanAge is how old a blob has to be that no record refers to: a blob is written before its
// record.
const orphanAge = time.Hour

// Check compares records with blobs, a folder of blobs after the other: of these alone there are
// lists in memory. A server can run meanwhile.
func Check(ctx context.Context, opts Options) (Result, error) {
	if opts.Progress == nil {
		opts.Progress = func(string, int64, int64) {}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Blobs.Logger = opts.Logger
	records, err := openRecords(ctx, opts)
	if err != nil {
		return Result{}, fmt.Errorf("check blobs: %w", err)
	}
	c := &checker{opts: opts, records: records, result: Result{Deep: opts.Deep, Counts: make(map[string]int), Problems: []Problem{}}}
	if c.blobs, err = objects.Open(ctx, opts.Blobs); err == nil {
		err = errors.Join(c.check(ctx), c.blobs.Close())
	}
	if err = errors.Join(err, records.close()); err != nil {
		return Result{}, fmt.Errorf("check blobs: %w", err)
	}
	return c.result.listed(), nil
}

type checker struct {
	opts    Options
	records *records
	blobs   *objects.Bucket
	result  Result
}

func (c *checker) check(ctx context.Context) error {
	const folders = 256
	for _, k := range kinds() {
		for i := range int64(folders) {
			if err := c.checkFolder(ctx, k, fmt.Sprintf("%s/%s/%02x/", c.records.identity, k.purpose, i)); err != nil {
				return err
			}
			c.opts.Progress("check folders of "+k.purpose+" blobs", i+1, folders)
		}
		if !c.opts.Deep {
			continue
		}
		err := c.records.inRows(ctx, k, func(one content) error {
			c.result.Inline++
			_, err := c.opts.Keys.Unseal(k.purpose, c.nameOf(one), one.inline)
			return c.judge(err, "", one)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFolder lists the blobs first: what the records, which are read later, refer to and is not
// in the list was written since, or is missing.
func (c *checker) checkFolder(ctx context.Context, k kind, folder string) error {
	listed, err := c.list(ctx, folder)
	if err != nil {
		return err
	}
	found, err := c.records.inFolder(ctx, k, folder)
	if err != nil {
		return err
	}
	used := make(map[string]bool, len(found))
	for _, one := range found {
		used[one.key] = true
		c.result.Records++
		object, has := listed[one.key]
		switch {
		case !has:
			err = c.checkUnlisted(ctx, k, one)
		case object.Size != seal.Size(one.size):
			c.result.add(Damaged, one.key, one.record, fmt.Sprintf("it has %d bytes instead of %d", object.Size, seal.Size(one.size)))
		case c.opts.Deep:
			err = c.decrypt(ctx, k, one)
		}
		if err != nil {
			return err
		}
	}
	for key, object := range listed {
		c.result.Blobs++
		c.result.Bytes += object.Size
		if age := c.opts.Now().Sub(object.ModTime); !used[key] && age > orphanAge {
			c.result.add(Orphaned, key, "", fmt.Sprintf("it has %d bytes, and is %s old", object.Size, age.Round(time.Minute)))
		}
	}
	return nil
}

// listTries is how often a folder is listed: a list of files fails when one of them goes
// meanwhile.
const listTries = 10

func (c *checker) list(ctx context.Context, folder string) (listed map[string]objects.Object, err error) {
	for range listTries {
		listed = make(map[string]objects.Object)
		err = c.blobs.List(ctx, folder, func(page []objects.Object) error {
			for _, object := range page {
				listed[object.Key] = object
			}
			return nil
		})
		if !errors.Is(err, holdfast.ErrNotFound) {
			break
		}
	}
	return listed, err
}

// checkUnlisted looks again for what was not in a list: a blob may have been written since, and one that
// is gone may have gone with its record.
func (c *checker) checkUnlisted(ctx context.Context, k kind, one content) error {
	has, err := c.blobs.Exists(ctx, one.key)
	if err != nil {
		return err
	}
	if has {
		if c.opts.Deep {
			return c.decrypt(ctx, k, one)
		}
		return nil
	}
	return c.missing(ctx, k, one)
}

// missing reports a blob that is not there, if a record still refers to it.
func (c *checker) missing(ctx context.Context, k kind, one content) error {
	refers, err := c.records.refers(ctx, k, one.key)
	if err == nil && refers {
		c.result.add(Missing, one.key, one.record, "")
	}
	return err
}

func (c *checker) decrypt(ctx context.Context, k kind, one content) error {
	sealed, err := c.blobs.Read(ctx, one.key)
	if errors.Is(err, holdfast.ErrNotFound) {
		return c.missing(ctx, k, one)
	} else if err != nil {
		return err
	}
	defer sealed.Close()
	plain, err := seal.NewReader(sealed, c.opts.Keys, seal.Label(k.purpose, c.nameOf(one)))
	var n int64
	if err == nil {
		n, err = io.Copy(io.Discard, plain)
	}
	c.result.Decrypted += n
	if err == nil && n != one.size {
		err = fmt.Errorf("it has %d bytes instead of %d: %w", n, one.size, seal.ErrTampered)
	}
	return c.judge(err, one.key, one)
}

// judge puts on record what is wrong with a content. What is wrong with the store is returned.
func (c *checker) judge(err error, blob string, one content) error {
	switch {
	case errors.Is(err, seal.ErrTampered):
		c.result.add(Damaged, blob, one.record, err.Error())
	case errors.Is(err, seal.ErrNoKey):
		c.result.add(Unreadable, blob, one.record, err.Error())
	default:
		return err
	}
	return nil
}

// nameOf is what the datastore has encrypted a content for: its thing, and its place. A state that
// has moved says where it was.
func (c *checker) nameOf(one content) string {
	name := one.record
	if one.origin != nil {
		if origin, err := c.opts.Keys.Unseal("state origin", one.record+"\x00"+one.key, one.origin); err == nil {
			name = string(origin)
		}
	}
	return name + "\x00" + one.key
}
