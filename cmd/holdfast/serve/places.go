package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/runner/cliconfig"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/local"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// hintExposed says what to do about what code in plans could read.
const hintExposed = "move it to where engines do not look, such as /var/lib/holdfast or /etc/holdfast (docs/security.md, " +
	"\"What engines see\"), or run the server as root, whose engines are other users"

// place is what only the server and its agents may read.
type place struct{ key, path string }

// privateKeys are the keys that name such files and folders, apart from secrets.
var privateKeys = []string{"dataDir", "keyFile", "oldKeyFiles", "privateKeyFile", "sshKeyFile", "secretDirs"}

// privatePlaces are those of a configuration that this user can read: what it cannot, engines
// that have the same user cannot either.
func privatePlaces(cfg *config.Config) []place {
	var places []place
	eachSetting(reflect.ValueOf(cfg).Elem(), "", "", func(at, key string, v reflect.Value) {
		path := ""
		if secret, ok := v.Interface().(config.Secret); ok {
			path = secret.File
		} else if slices.Contains(privateKeys, key) {
			path = v.String()
		}
		if path == "" {
			return
		}
		err := unix.Access(path, unix.R_OK)
		if errors.Is(err, fs.ErrPermission) || err != nil && key == "secretDirs" { // which can be of other machines
			return
		}
		places = append(places, place{at, path})
	})
	return places
}

// exposedPlaces returns an error for each of the places that engines of a mode can read as
// they have the server's user. They find shown in addition to what every engine finds.
func exposedPlaces(places []place, mode sandbox.Mode, shown []string) (faults []error) {
	var named []string
	for _, p := range places {
		dir := mode.Exposes(p.path, shown...)
		// A file that is named itself is meant for engines, and one of a folder goes with it.
		if dir == "" || dir == p.path && !isFolder(p.path) || slices.ContainsFunc(named, func(f string) bool { return folders.Below(f, p.path) != "" }) {
			continue
		}
		named = append(named, p.path)
		faults = append(faults, fmt.Errorf("%s: %s is in %s, which the code of every plan can read: in mode %s engines run as the server's user",
			p.key, p.path, dir, mode))
	}
	return faults
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// exposed returns an error for each place of the server that code in plans could read, which
// is so where the server is not root and its agent cannot give engines users of their own.
func (s *services) exposed(ctx context.Context) []error {
	if os.Getuid() == 0 || s.cfg.Agent.Off || !isolates(s.cfg) {
		return nil
	}
	env := s.agentEnv()
	places, shown := privatePlaces(s.cfg), shownPaths(s.cfg, env)
	if exposedPlaces(places, sandbox.ModeUserNamespace, shown) == nil && exposedPlaces(places, sandbox.ModeLandlock, shown) == nil {
		return nil
	}
	agent := agentsBeside(nil)[0]
	mode := probedMode(ctx, local.Options{Dir: s.path(agent.name), Command: local.Command{
		Args: append([]string{"agent", "probe"}, s.isolationArgs(agent)...), Env: env,
	}})
	return exposedPlaces(places, mode, shown)
}

// probedMode is how an agent isolates engines; ModeNone if nothing works, as it starts none then.
func probedMode(ctx context.Context, probe local.Options) sandbox.Mode {
	var err error
	if probe.Command.Binary, err = os.Executable(); err != nil {
		return sandbox.ModeNone
	}
	mode, err := local.Try(ctx, probe)
	if err != nil {
		return sandbox.ModeNone
	}
	return sandbox.Mode(mode)
}

// shownPaths are the files and folders of this machine that engines of an agent with that
// environment find besides those that every engine does.
func shownPaths(cfg *config.Config, env map[string]string) []string {
	shown := slices.Concat(cfg.Sandbox.Paths.Writable, cfg.Sandbox.Paths.ReadOnly)
	shown = append(append(shown, filepath.SplitList(env["SSL_CERT_DIR"])...), env["SSL_CERT_FILE"])
	// What is wrong with the file is for the agent to say.
	engines, _ := cliconfig.Read(cliconfig.Options{
		File: cfg.Engines.CLIConfigFile, Home: os.Getenv("HOME"), Seen: shown, Logger: slog.New(slog.DiscardHandler),
	})
	return append(shown, engines.Mirrors...)
}
