package gitsource

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files of a mirror are written next to its other folders and renamed into their
// place: go-git takes a folder of packs for empty if a file in it goes away while
// it looks.
const tempFolder = "tmp"

// Prefixes of files that only exist while they are written: by whoever is busy
// with the mirror, and by merges, of which several write at once.
const (
	tempPrefix       = "fetch_"
	tempObjectPrefix = "object_"
)

// createTemp opens a new file in a mirror's folder for such.
func createTemp(dir, prefix string) (*os.File, error) {
	return os.CreateTemp(filepath.Join(dir, tempFolder), prefix)
}

// writeFile replaces a file of a mirror, named by its path there, by one that is
// wholly on disk.
func writeFile(dir, name string, data []byte) error {
	f, err := createTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, filepath.FromSlash(name)))
}

// removeLeftovers removes what a crash in the middle of a write left behind. A
// merge's may be written just now, unless they are old.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, tempFolder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || (!strings.HasPrefix(entry.Name(), tempPrefix) && time.Since(info.ModTime()) < time.Hour) {
			continue
		}
		err = os.Remove(filepath.Join(dir, tempFolder, entry.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
