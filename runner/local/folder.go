package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// prepareDir makes dir and gives it to who. A folder that was root's is given
// away with all that is in it; one that is a third user's is refused.
func prepareDir(dir string, who *account) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the agent's user must be able to enter
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a folder")
	}
	if who == nil {
		return nil
	}
	stat, ok := infoSys(info)
	switch {
	case !ok:
		return errors.New("its owner is unknown")
	case stat.Uid == who.uid:
		return nil
	case int(stat.Uid) != os.Getuid():
		return fmt.Errorf("it belongs to uid %d, not to %d", stat.Uid, who.uid)
	}
	// Children first: as long as the folder is ours nobody can meddle with it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return root.Lchown(name, int(who.uid), int(who.gid))
	})
	if err != nil {
		return err
	}
	return os.Lchown(dir, int(who.uid), int(who.gid))
}

// openLog opens a log in the agent's folder for appending. The folder may be
// another user's, so it must be a plain file with one name: a link could lead
// root to a file of somebody else.
func (p *Process) openLog(name string) (*os.File, error) {
	file, err := p.root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = plain(info)
	}
	if err == nil && p.who != nil {
		err = file.Chown(int(p.who.uid), int(p.who.gid))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func plain(info fs.FileInfo) error {
	stat, ok := infoSys(info)
	if !info.Mode().IsRegular() || !ok || stat.Nlink != 1 {
		return fmt.Errorf("%s: not a plain file", info.Name())
	}
	return nil
}

// rotate empties a log that has become too large, after copying it. The agent
// continues writing to the same file; what it writes in between may be lost.
func (p *Process) rotate() {
	info, err := p.root.Lstat(logFile)
	if err != nil || info.Size() < maxLogSize {
		return
	}
	if err := p.copyLog(); err != nil {
		p.opts.Logger.Warn("agent's log was not rotated", "err", err)
	}
}

func (p *Process) copyLog() error {
	file, err := p.openLog(logFile)
	if err != nil {
		return err
	}
	defer file.Close()
	old := logFile + ".1"
	if err := p.root.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, err := p.root.OpenFile(old, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(kept, io.LimitReader(file, 4*maxLogSize))
	if err == nil && p.who != nil {
		err = kept.Chown(int(p.who.uid), int(p.who.gid))
	}
	if err := errors.Join(err, kept.Close()); err != nil {
		return err
	}
	return file.Truncate(0)
}
