// What survives a power cut, and not only a killed agent.

package uplink

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/durable"
)

// Disk makes what was written survive a power cut. Each call waits for the disk. What an
// attempt writes before its apply begins is made again after a power cut, so that nothing
// waits for it then, except the file that names an attempt at an apply (writeClaimed).
type Disk interface {
	// SyncFile does it for the content of a file.
	SyncFile(f *os.File) error
	// SyncDir does it for the names in a folder, without which a file cannot be found.
	SyncDir(dir string) error
}

// MachineDisk is that of the machine.
type MachineDisk struct{}

// SyncFile is Disk's.
func (MachineDisk) SyncFile(f *os.File) error { return f.Sync() }

// SyncDir is Disk's.
func (MachineDisk) SyncDir(dir string) error { return durable.SyncDir(dir) }

// WriteFile replaces path with data in one step. It survives a power cut if there is a
// disk to wait for, nil if that does not matter.
func WriteFile(path string, data []byte, disk Disk) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), temporary(filepath.Base(path)))
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil && disk != nil {
		err = disk.SyncFile(tmp)
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	if disk != nil {
		return disk.SyncDir(filepath.Dir(path))
	}
	return nil
}

// temporary is the pattern of names for files that are not complete yet.
func temporary(name string) string { return temporaryPrefix + name + "-" }

const temporaryPrefix = "tmp-"
