package gitsource

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/holdfast-dev/holdfast/internal/durable"
)

const (
	// Each fetch adds a pack, and each pack costs every reader a little. From
	// this many on, those below smallPack are made one, as long as what goes
	// into it stays below maxRepack. A pack that is more than repackRatio times
	// as large as all smaller ones is left alone: what is fetched once is not
	// written again and again for the sake of a few objects.
	maxPacks  = 20
	smallPack = 4 << 20
	maxRepack = 64 << 20

	repackRatio = 2

	// keepSuffix is of a file that says that a pack is left alone.
	keepSuffix = ".keep"
)

func packDir(dir string) string { return filepath.Join(dir, "objects", "pack") }

// storePack writes a pack and its index so that a crash leaves both or neither
// in sight. An empty one is nothing. It fails with errOversized for one that must not be
// indexed.
func storePack(dir string, r io.Reader, index indexer) error {
	f, err := createTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	n, err := io.Copy(f, io.LimitReader(r, maxPack+1))
	if err != nil || n == 0 {
		return err
	}
	if n > maxPack {
		return fmt.Errorf("%w: a pack of more than %d GiB", errOversized, maxPack>>30)
	}
	checksum, err := index(dir, f)
	if err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(packDir(dir), "pack-"+checksum.String()+".pack")); err != nil {
		return err
	}
	return durable.SyncDir(packDir(dir))
}

// indexer writes the index of a pack, which is f, and returns the pack's checksum: readers
// look for packs, then for their indexes, so those come first.
type indexer func(dir string, f *os.File) (checksum plumbing.Hash, err error)

// indexForeign indexes what a remote has sent, and fails with errOversized if that must not
// be held in memory by anybody.
func indexForeign(ctx context.Context) indexer {
	return func(dir string, f *os.File) (checksum plumbing.Hash, err error) {
		found, err := surveyPack(ctx, io.NewSectionReader(f, 0, maxPack))
		if err != nil {
			return checksum, err
		}
		if found.largest > maxLoaded {
			return indexLargePack(ctx, dir, f)
		}
		return indexPack(dir, f)
	}
}

// indexPack indexes a pack whose objects can be held in memory, one at a time.
func indexPack(dir string, f *os.File) (checksum plumbing.Hash, err error) {
	writer := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(io.NewSectionReader(f, 0, maxPack)), writer)
	if err != nil {
		return checksum, err
	}
	if checksum, err = parser.Parse(); err != nil {
		return checksum, err
	}
	index, err := writer.Index()
	if err != nil {
		return checksum, err
	}
	var encoded bytes.Buffer
	if _, err := idxfile.NewEncoder(&encoded).Encode(index); err != nil {
		return checksum, err
	}
	return checksum, writeFile(dir, "objects/pack/pack-"+checksum.String()+".idx", encoded.Bytes())
}

// indexLargePack does so for a pack with a large file, and marks it by a file next to
// it, as Git does, so that it is not repacked.
func indexLargePack(ctx context.Context, dir string, f *os.File) (checksum plumbing.Hash, err error) {
	temp := f.Name() + ".idx"
	defer os.Remove(temp)
	if err := indexByGit(ctx, f.Name(), temp); err != nil {
		return checksum, err
	}
	if _, err := f.Seek(-int64(len(checksum)), io.SeekEnd); err != nil {
		return checksum, err
	}
	if _, err := io.ReadFull(f, checksum[:]); err != nil { // which has been verified
		return checksum, err
	}
	index, err := os.ReadFile(temp)
	if err != nil {
		return checksum, err
	}
	name := "objects/pack/pack-" + checksum.String()
	if err := writeFile(dir, name+keepSuffix, nil); err != nil {
		return checksum, err
	}
	return checksum, writeFile(dir, name+".idx", index)
}

// packs returns the checksums of a mirror's packs and their sizes in bytes.
func packs(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(packDir(dir))
	if err != nil {
		return nil, err
	}
	result := map[string]int64{}
	for _, entry := range entries {
		sum, ok := strings.CutPrefix(entry.Name(), "pack-")
		sum, isPack := strings.CutSuffix(sum, ".pack")
		if !ok || !isPack {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		result[sum] = info.Size()
	}
	return result, nil
}

// verifyPacks checks that every pack has an index and ends as it should.
func verifyPacks(dir string) error {
	all, err := packs(dir)
	if err != nil {
		return err
	}
	for sum, size := range all {
		base := filepath.Join(packDir(dir), "pack-"+sum)
		if _, err := os.Stat(base + ".idx"); err != nil {
			return err
		}
		f, err := os.Open(base + ".pack")
		if err != nil {
			return err
		}
		trailer := make([]byte, 20)
		_, err = f.ReadAt(trailer, max(0, size-20))
		f.Close()
		if err != nil || plumbing.NewHash(sum) != plumbing.Hash(trailer) {
			return fmt.Errorf("pack %s is cut off", sum)
		}
	}
	return nil
}

// repack makes one pack of many small ones. Every object in them is kept,
// whether a ref leads to it or not.
func (m *mirror) repack() error {
	all, err := packs(m.path)
	if err != nil || len(all) <= maxPacks {
		return err
	}
	before := len(all)
	maps.DeleteFunc(all, func(sum string, _ int64) bool {
		_, err := os.Stat(filepath.Join(packDir(m.path), "pack-"+sum+keepSuffix))
		return err == nil
	})
	small := toRepack(all)
	if len(small) < 2 {
		return nil
	}
	hashes, err := packedObjects(m.path, small)
	if err != nil {
		return err
	}
	if err := storeObjects(m.path, openStore(m.path), hashes); err != nil {
		return err
	}
	if all, err = packs(m.path); err != nil {
		return err
	}
	if len(all) != before+1 {
		return errors.New("the new pack is not there")
	}

	m.swap.Lock()
	defer m.swap.Unlock()
	m.generation.Add(1)
	for _, sum := range small {
		base := filepath.Join(packDir(m.path), "pack-"+sum)
		if err := errors.Join(os.Remove(base+".pack"), os.Remove(base+".idx")); err != nil {
			return err
		}
	}
	return nil
}

// toRepack chooses the packs that are made one.
func toRepack(all map[string]int64) []string {
	sums := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[a], all[b]), strings.Compare(a, b))
	})
	var small []string
	var total int64
	for _, sum := range sums {
		size := all[sum]
		tooLarge := size >= smallPack || total+size > maxRepack
		if tooLarge || len(small) >= maxPacks/2 && size > repackRatio*total {
			break
		}
		small = append(small, sum)
		total += size
	}
	return small
}

func packedObjects(dir string, sums []string) ([]plumbing.Hash, error) {
	seen := map[plumbing.Hash]struct{}{}
	var hashes []plumbing.Hash
	for _, sum := range sums {
		f, err := os.Open(filepath.Join(packDir(dir), "pack-"+sum+".idx"))
		if err != nil {
			return nil, err
		}
		index := idxfile.NewMemoryIndex()
		err = idxfile.NewDecoder(f).Decode(index)
		f.Close()
		if err != nil {
			return nil, err
		}
		entries, err := index.Entries()
		if err != nil {
			return nil, err
		}
		for {
			entry, err := entries.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if _, ok := seen[entry.Hash]; !ok {
				seen[entry.Hash] = struct{}{}
				hashes = append(hashes, entry.Hash)
			}
		}
	}
	plumbing.HashesSort(hashes)
	return hashes, nil
}

// storeObjects writes a pack of objects, none of them as a difference.
func storeObjects(dir string, from *filesystem.Storage, hashes []plumbing.Hash) error {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := packfile.NewEncoder(w, from, false).Encode(hashes, 0)
		_ = w.CloseWithError(err)
	}()
	err := storePack(dir, r, indexPack)
	_ = r.Close() // ends the encoder if storePack gave up before
	<-done
	return err
}
