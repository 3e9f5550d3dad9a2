package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// system are the folders of programs that every sandbox sees, read-only.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}

// settings are what of /etc every sandbox sees, read-only: what name
// resolution, TLS, the loader, git and ssh need. The rest may hold secrets.
var settings = []string{
	"ssl", "pki", "ca-certificates", "alternatives",
	"resolv.conf", "hosts", "nsswitch.conf", "services", "protocols",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "gitconfig",
	"ssh/ssh_config", "ssh/ssh_config.d", "ssh/ssh_known_hosts",
}

// devices are those of /dev that every sandbox has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// shown are the files and folders of the machine that every sandbox of a mode finds.
func (m Mode) shown() []string {
	spec := &stage.Spec{Root: m.OwnRoot()}
	base(spec)
	var paths []string
	for _, mount := range spec.Mount {
		if mount.Kind != stage.Device && mount.Source != "/proc" { // neither has files of anybody
			paths = append(paths, mount.Source)
		}
	}
	return paths
}

// base adds what every sandbox sees that holds files at all.
func base(spec *stage.Spec) {
	for _, dir := range system {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 && spec.Root { // such as /bin to usr/bin
			if target, err := os.Readlink(dir); err == nil {
				spec.Link = append(spec.Link, stage.Link{Path: dir, Target: target})
			}
			continue
		}
		spec.Mount = append(spec.Mount, stage.Mount{Source: dir, Target: dir, Optional: true})
	}
	for _, name := range settings {
		path := filepath.Join("/etc", name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		spec.Mount = append(spec.Mount, stage.Mount{Source: path, Target: path, Optional: true})
	}
	for _, name := range devices {
		path := filepath.Join("/dev", name)
		spec.Mount = append(spec.Mount, stage.Mount{Source: path, Target: path, Kind: stage.Device})
	}
	if !spec.Root {
		for _, path := range []string{"/proc", "/etc/passwd", "/etc/group"} {
			spec.Mount = append(spec.Mount, stage.Mount{Source: path, Target: path, Optional: true})
		}
		return
	}
	spec.Link = append(spec.Link,
		stage.Link{Path: "/dev/fd", Target: "/proc/self/fd"},
		stage.Link{Path: "/dev/stdin", Target: "/proc/self/fd/0"},
		stage.Link{Path: "/dev/stdout", Target: "/proc/self/fd/1"},
		stage.Link{Path: "/dev/stderr", Target: "/proc/self/fd/2"},
		stage.Link{Path: "/dev/shm", Target: "/tmp"},
	)
	home := "/tmp"
	for _, v := range spec.Env {
		if dir, ok := strings.CutPrefix(v, "HOME="); ok && !strings.ContainsAny(dir, ":\n") {
			home = dir
		}
	}
	// ssh and git want a name for the user.
	spec.File = append(spec.File,
		stage.File{Path: "/etc/passwd", Content: "root:x:0:0:root:/:/bin/false\n" +
			fmt.Sprintf("holdfast:x:%d:%d:holdfast:%s:/bin/sh\n", spec.UID, spec.GID, home)},
		stage.File{Path: "/etc/group", Content: "root:x:0:\n" + fmt.Sprintf("holdfast:x:%d:\n", spec.GID)},
	)
}
