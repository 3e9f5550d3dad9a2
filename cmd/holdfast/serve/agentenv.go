package serve

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// agentEnv is what an agent on this machine gets of the server's environment: through which
// proxies hosts are reached, and which certificates are trusted.
func (s *services) agentEnv() map[string]string {
	others := os.Getuid() == 0 && (s.accounts != nil || s.cfg.Isolation != string(sandbox.ModeNone))
	return networkEnv(os.LookupEnv, others, s.logger)
}

// networkEnv takes the variables for the network from an environment. Paths of certificates
// become absolute, as an agent works in its own folder. With others, agents or engines are
// other users than the server: a path that not everybody can read would leave them without any
// certificate, so that it is left out.
func networkEnv(lookup func(string) (string, bool), others bool, logger *slog.Logger) map[string]string {
	env := make(map[string]string)
	for _, name := range engine.NetworkVariables() {
		value, ok := lookup(name)
		if !ok {
			continue
		}
		if strings.HasPrefix(name, "SSL_CERT_") {
			value = certificatePaths(name, value, others, logger)
		}
		if value != "" {
			env[name] = value
		}
	}
	return env
}

// certificatePaths are those of a variable's value that agents and engines can use.
func certificatePaths(name, value string, others bool, logger *slog.Logger) string {
	paths := []string{value}
	if name == "SSL_CERT_DIR" {
		paths = filepath.SplitList(value)
	}
	var usable []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		path, err := filepath.Abs(path)
		if err == nil && others {
			err = readableByAll(path)
		}
		if err != nil {
			logger.Warn("certificates are not used by agents and engines", "variable", name, "err", err)
			continue
		}
		usable = append(usable, path)
	}
	return strings.Join(usable, string(filepath.ListSeparator))
}

// readableByAll checks that every user can read a file, or list a folder, and pass through
// all folders above it.
func readableByAll(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	need := fs.FileMode(0o004)
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if info.IsDir() {
			need |= 0o001
		}
		if info.Mode().Perm()&need != need {
			return fmt.Errorf("not every user can read %s: permissions of %s are %v", path, at, info.Mode().Perm())
		}
		if at == filepath.Dir(at) {
			return nil
		}
		need = 0o001
	}
}
