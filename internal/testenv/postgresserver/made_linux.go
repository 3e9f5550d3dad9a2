package postgresserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// guardedPassword is the superuser's on each server that asks for one: initdb writes it. The
// servers are on loopback, for as long as a test.
const guardedPassword = "nobody-guesses-4f1c7d0b" //nolint:gosec // see above

// fill makes the server's data, with what initdb makes of the arguments. Its work, which
// takes as long as many a test, is kept in the user's cache for each version of PostgreSQL.
func (s *Server) fill(args []string) error {
	args = append(args, "--username=postgres", "--no-locale", "--encoding=UTF8", "--no-sync")
	made, err := s.madeBefore(args)
	if err != nil {
		return s.initdb(args)
	}
	if _, err := os.Stat(made); err == nil {
		return copyTree(made, s.data())
	}
	if err := s.initdb(args); err != nil {
		return err
	}
	s.keep(made)
	return nil
}

// madeBefore is where the data of such servers of this user are kept.
func (s *Server) madeBefore(args []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := exec.Command(filepath.Join(s.programs, "postgres"), "--version").Output()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(append(args, string(version), s.password, strconv.Itoa(os.Getuid())), "\n")))
	return filepath.Join(cache, "holdfast-test", "postgres-"+hex.EncodeToString(sum[:8])), nil
}

func (s *Server) initdb(args []string) error {
	if s.password != "" {
		file := filepath.Join(s.dir, "password")
		if err := os.WriteFile(file, []byte(s.password+"\n"), 0o644); err != nil { // the folder is its user's alone
			return err
		}
		args = append(args, "--pwfile="+file)
	}
	if out, err := s.command("initdb", append(args, "--pgdata="+s.data())...).CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// keep puts the data into the cache, whole or not at all. Without it the next server takes
// longer, no more.
func (s *Server) keep(made string) {
	if os.MkdirAll(filepath.Dir(made), 0o755) != nil {
		return
	}
	temp, err := os.MkdirTemp(filepath.Dir(made), "tmp-postgres-")
	if err != nil {
		return
	}
	defer os.RemoveAll(temp)
	if copyTree(s.data(), filepath.Join(temp, "data")) == nil {
		_ = os.Rename(filepath.Join(temp, "data"), made) // an error: another process was first
	}
}

// copyTree copies a folder with the owners and modes of its files.
func copyTree(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("copy %s: %w: %s", from, err, out), os.RemoveAll(to))
	}
	return nil
}
