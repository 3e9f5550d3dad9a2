package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// What a remote may send. A pack of some megabytes can hold objects of terabytes, and
// whoever may push a branch decides what is in it.
const (
	// maxLoaded is the size in bytes from which an object is not held in memory by us:
	// Git's own program indexes such packs, piece by piece.
	maxLoaded = 32 << 20
	// maxDelta is the largest object that is stored as a difference, or that another is a
	// difference to: core.bigFileThreshold, beyond which Git makes none. Nothing can
	// read these piece by piece.
	maxDelta = 512 << 20
	// maxNamed is the largest tree, commit or tag: a tree of a million entries.
	maxNamed = 64 << 20
	// maxInflated bounds what a whole pack becomes, which is the time that indexing
	// it takes; the whole history of Linux is about a third of it.
	maxInflated = 512 << 30
	// maxPack is the largest pack that is taken from a remote, in bytes.
	maxPack = 32 << 30
)

// errOversized is about a pack with something that no honest repository has.
var errOversized = errors.New("the remote sent an object that is too large")

// survey is what a pack holds, as far as it matters to how it is indexed.
type survey struct {
	largest  int64 // object, in bytes
	inflated int64 // of all objects

	huge map[int64]bool // where objects are that are too large to be the base of a difference
	refs bool           // there are differences to objects that are named by their ids
}

// surveyPack reads a pack from its beginning to its end, and holds nothing of it. It
// fails with errOversized for what must not be indexed.
func surveyPack(ctx context.Context, pack io.ReadSeeker) (*survey, error) {
	s := &survey{huge: make(map[int64]bool)}
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return nil, err
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return nil, err
		}
		if err := s.admit(header.Length); err != nil {
			return nil, err
		}
		content := &prefix{ctx: ctx}
		if _, _, err := scanner.NextObject(content); err != nil {
			return nil, err
		}
		if err := s.add(header, content.bytes); err != nil {
			return nil, err
		}
	}
	if s.refs && len(s.huge) > 0 {
		return nil, fmt.Errorf("%w: something of more than %d bytes may be the base of a difference", errOversized, maxDelta)
	}
	return s, nil
}

// admit counts bytes that are made in memory or read piece by piece.
func (s *survey) admit(size int64) error {
	if s.inflated += max(size, 0); size < 0 || s.inflated > maxInflated {
		return fmt.Errorf("%w: the pack becomes more than %d bytes", errOversized, int64(maxInflated))
	}
	return nil
}

// add counts an object. begins are its first bytes.
func (s *survey) add(header *packfile.ObjectHeader, begins []byte) error {
	size := header.Length
	switch header.Type {
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		base, rest := deltaSize(begins)
		target, _ := deltaSize(rest)
		if err := s.admit(target); err != nil {
			return err
		}
		if max(size, base, target) > maxDelta || s.huge[header.OffsetReference] {
			return fmt.Errorf("%w: a difference that makes %d bytes of %d; Git makes none beyond %d", errOversized, target, base, maxDelta)
		}
		s.refs = s.refs || header.Type == plumbing.REFDeltaObject
		size = max(size, base, target)
	case plumbing.BlobObject:
		if size > maxDelta {
			s.huge[header.Offset] = true
		}
	default:
		if size > maxNamed {
			return fmt.Errorf("%w: a %s of %d bytes; at most %d are read", errOversized, header.Type, size, maxNamed)
		}
	}
	s.largest = max(s.largest, size)
	return nil
}

// prefix keeps the first bytes of what is written, and stops when its context ends.
type prefix struct {
	ctx   context.Context //nolint:containedctx // of one call
	bytes []byte
}

// maxSizes is where the two sizes in front of a difference have ended: each has at most
// ten bytes.
const maxSizes = 20

func (p *prefix) Write(data []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	p.bytes = append(p.bytes, data[:min(len(data), maxSizes-len(p.bytes))]...)
	return len(data), nil
}

// deltaSize is the first of the sizes in front of a difference, in bytes: of what it is
// made from, then of what it makes; -1 if it is not there. The rest comes after it.
func deltaSize(delta []byte) (size int64, rest []byte) {
	for i, b := range delta {
		if i == 9 { // 63 bits
			break
		}
		size |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return size, delta[i+1:]
		}
	}
	return -1, nil
}

// indexByGit has Git's own program write the index of a pack: it holds no large file in
// memory, and what it takes beyond that is not ours.
func indexByGit(ctx context.Context, pack, index string) error {
	cmd := exec.CommandContext(ctx, "git", "-c", fmt.Sprintf("core.bigFileThreshold=%d", maxLoaded), "-c", "pack.threads=1",
		"index-pack", "-o", index, pack)
	cmd.Dir, cmd.WaitDelay = "/", 5*time.Second // in no repository
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("index a pack with files of more than %d MiB by git index-pack: %w: %s", maxLoaded>>20, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
