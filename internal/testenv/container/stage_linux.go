package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Stage makes the container's file system from within, and becomes its program: the
// machine's own folders, with the volumes over them, and the image's programs first on PATH.
func Stage() error {
	var spec Spec
	if err := json.Unmarshal([]byte(os.Getenv("STAGE")), &spec); err != nil {
		return err
	}
	if err := build(spec); err != nil {
		return fmt.Errorf("make file system: %w", err)
	}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return err
	}
	if !slices.ContainsFunc(spec.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		spec.Env = append(spec.Env, "PATH="+imageDir+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	path := ""
	for _, e := range spec.Env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	if len(spec.Args) == 0 {
		return fmt.Errorf("no command")
	}
	program, err := exec.LookPath(spec.Args[0])
	if err != nil {
		return err
	}
	if err := giveUp(); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return unix.Exec(program, spec.Args, spec.Env)
}

// imageDir is where an image's programs are in a container.
const imageDir = "/image"

// build makes the root: an empty one, with the machine's top folders bound into it.
func build(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := spec.Root
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := "/"+e.Name(), filepath.Join(root, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(target, to)
			}
			if err != nil {
				return err
			}
		case e.Name() == "proc" || e.Name() == "run" || !e.IsDir(): // a container has its own
		default:
			if err := bind(from, to, false); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "proc"), 0o755), os.Mkdir(filepath.Join(root, "run"), 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := bind(spec.Programs, filepath.Join(root, imageDir), true); err != nil {
		return err
	}
	for _, m := range spec.Mounts {
		to, err := inside(root, m.To)
		if err == nil {
			err = bind(m.From, to, m.ReadOnly)
		}
		if err != nil {
			return err
		}
	}
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return nil
}

// inside is where a path of the container is below its root: links lead to places in there, such
// as /var/run to /run, which have to be followed before it is the root.
func inside(root, path string) (string, error) {
	at, rest := filepath.Clean(path), ""
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(root, real, rest), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}

func bind(from, to string, readOnly bool) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(to, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
		err = os.WriteFile(to, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, to, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make %s read-only: %w", to, err)
	}
	return nil
}

// giveUp leaves the program that follows without any capability, as restricted Pods are.
func giveUp() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
