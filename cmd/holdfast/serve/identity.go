package serve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// loadOrCreateIdentity names a server among replicas by what is in a file of its data
// folder. The host's name is not usable: it differs after each start in a container,
// and the leases of the former one would still hold.
func loadOrCreateIdentity(path string) (string, error) {
	data, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read identity: %w", err)
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "holdfast"
	}
	name := host + "-" + strings.ToLower(rand.Text()[:6])
	if err := keep(path, name); err != nil {
		return "", fmt.Errorf("write identity: %w", err)
	}
	return name, nil
}

// keep writes a line to a file that only we can read: all of it or nothing.
func keep(path, line string) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(line+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
