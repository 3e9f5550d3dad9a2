package planfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	maxModuleList = 16 << 20 // bytes of the list of modules
	maxLock       = 16 << 20 // bytes of a lock file
)

// Module is a module of the code that was to be planned.
type Module struct {
	Dir   string   // relative to the root module
	Files []string // names of the code that the engine reads
	// Open opens a file of the module by its name.
	Open func(name string) (io.ReadCloser, error)
}

// CheckCode compares the code in the plan file with the modules, by their keys: the
// root module's is empty. All of it must be there, and nothing else. Files that engines
// do not read as code may be there if they are the module's. named turns a name
// relative to the root module into the one that people know.
func (a *Archive) CheckCode(modules map[string]Module, named func(string) string) error {
	if err := a.checkModules(modules); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		for _, file := range modules[key].Files {
			if a.members[memberCode+"m-"+key+"/"+file] == nil && !isTest(key, modules) {
				return fmt.Errorf("the plan file lacks %s", named(path.Join(modules[key].Dir, file)))
			}
		}
	}
	for _, member := range slices.Sorted(maps.Keys(a.members)) {
		rest, ok := strings.CutPrefix(member, memberCode+"m-")
		if !ok {
			continue
		}
		key, file, _ := strings.Cut(rest, "/")
		module, listed := modules[key]
		if !listed || file == "" || strings.ContainsAny(file, `/\`) {
			return fmt.Errorf("the plan file has code that is not of this root module: %s", member)
		}
		if err := a.sameFile(member, file, module, named(path.Join(module.Dir, file))); err != nil {
			return err
		}
	}
	return nil
}

// checkModules compares the list of modules.
func (a *Archive) checkModules(modules map[string]Module) error {
	r, err := a.open(memberModules)
	if err != nil {
		return errors.New("the plan file has no code")
	}
	defer r.Close()
	var list []struct{ Key, Dir string }
	if err := json.NewDecoder(io.LimitReader(r, maxModuleList)).Decode(&list); err != nil {
		return fmt.Errorf("read the plan file's list of modules: %w", err)
	}
	there := map[string]bool{}
	for _, m := range list {
		if known, ok := modules[m.Key]; !ok || known.Dir != path.Clean(filepath.ToSlash(m.Dir)) || there[m.Key] {
			return fmt.Errorf("the plan file has module %q in %s, which is not of this root module", m.Key, m.Dir)
		}
		there[m.Key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		if !there[key] && !isTest(key, modules) {
			return fmt.Errorf("the plan file lacks the module %q", key)
		}
	}
	return nil
}

// isTest reports whether a module is called by a test only: init fetches it, and
// plans do not have it. Other modules have one that calls them.
func isTest(key string, modules map[string]Module) bool {
	at := strings.LastIndexByte(key, '.')
	if at < 0 || !strings.HasPrefix(key, "test.") {
		return false
	}
	_, called := modules[key[:at]]
	return !called || isTest(key[:at], modules)
}

// sameFile compares a file of code with the module's one.
func (a *Archive) sameFile(member, file string, module Module, name string) error {
	want, err := module.Open(file)
	if err != nil {
		return fmt.Errorf("the plan file has code that is not of this root module: %s", name)
	}
	defer want.Close()
	got, err := a.open(member)
	if err != nil {
		return err
	}
	defer got.Close()
	same, err := SameContent(want, got)
	if err == nil && !same {
		err = fmt.Errorf("the plan file has another %s than the repository", name)
	}
	return err
}

// SameContent reports whether two readers yield the same bytes. An error is one of the
// first.
func SameContent(a, b io.Reader) (bool, error) {
	const first, most = 4 << 10, 64 << 10 // most files of code are small, and there are many
	one, two := make([]byte, first), make([]byte, first)
	for {
		n, errA := io.ReadFull(a, one)
		m, errB := io.ReadFull(b, two)
		if !bytes.Equal(one[:n], two[:m]) {
			return false, nil
		}
		ended := errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF)
		switch {
		case ended:
			return errors.Is(errB, io.EOF) || errors.Is(errB, io.ErrUnexpectedEOF), nil
		case errA != nil:
			return false, errA
		case errB != nil:
			return false, nil
		case len(one) == first:
			one, two = make([]byte, most), make([]byte, most)
		}
	}
}

// CheckLock compares the providers, with versions and hashes, in the plan's lock
// file with those of the run's. Engines do the same before they apply.
func (a *Archive) CheckLock(want []byte) error {
	var got []byte
	if a.members[memberLock] != nil {
		r, err := a.open(memberLock)
		if err != nil {
			return err
		}
		defer r.Close()
		if got, err = io.ReadAll(io.LimitReader(r, maxLock)); err != nil {
			return fmt.Errorf("read %s of the plan file: %w", memberLock, err)
		}
	}
	if !maps.EqualFunc(lockedProviders(got), lockedProviders(want), slices.Equal) {
		return errors.New("the plan file has another lock file than the run")
	}
	return nil
}

var (
	lockComment  = regexp.MustCompile(`(?m)^\s*(#|//).*$`)
	lockProvider = regexp.MustCompile(`provider\s+"([^"]+)"\s*\{([^}]*)\}`)
	lockVersion  = regexp.MustCompile(`\bversion\s*=\s*"([^"]*)"`)
	lockHash     = regexp.MustCompile(`"(?:h1|zh):[^"]*"`)
)

// lockedProviders returns the version and the hashes of each provider.
func lockedProviders(file []byte) map[string][]string {
	providers := map[string][]string{}
	for _, block := range lockProvider.FindAllSubmatch(lockComment.ReplaceAll(file, nil), -1) {
		list := []string{}
		for _, hash := range lockHash.FindAll(block[2], -1) {
			list = append(list, string(hash))
		}
		if version := lockVersion.FindSubmatch(block[2]); version != nil {
			list = append(list, string(version[1]))
		}
		slices.Sort(list)
		providers[string(block[1])] = slices.Compact(list)
	}
	return providers
}
