// Whether modules are the same whenever they are fetched.

package modulecode

import (
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

var (
	// ExactVersion is how one version is written, and no range of them.
	ExactVersion = regexp.MustCompile(`^\s*=?\s*v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?\s*$`)

	gitRef     = regexp.MustCompile(`[?&]ref=([^&]*)`)
	commitHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	versionTag = regexp.MustCompile(`^(?:(.*)[-/_@])?v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+.][0-9A-Za-z.+-]*)?$`)
	separators = regexp.MustCompile(`[-/_@]`)
)

// ofBranches are words in front of a version by which branches are named, not tags.
var ofBranches = []string{ //nolint:gochecknoglobals // a constant list
	"branch", "bugfix", "feature", "fix", "heads", "hotfix", "hotfixes", "maint", "maintenance",
	"rel", "release", "releases", "stable", "support",
}

// pinnedSource reports whether a fetched module is the same whenever it is
// fetched: an exact version of a registry, a commit, or a tag that reads like a
// version.
func pinnedSource(source, version string) bool {
	if ExactVersion.MatchString(version) {
		return true
	}
	found := gitRef.FindStringSubmatch(source)
	if found == nil {
		return false
	}
	ref, err := url.QueryUnescape(found[1])
	if err != nil {
		return false
	}
	if commitHash.MatchString(ref) {
		return true
	}
	tag := versionTag.FindStringSubmatch(ref)
	return tag != nil && !slices.ContainsFunc(separators.Split(tag[1], -1), func(word string) bool {
		return slices.Contains(ofBranches, strings.ToLower(word))
	})
}

// The folder of a root module in which init puts what it fetches, and its list of them.
const (
	fetchedDir  = ".terraform/modules/"
	fetchedList = "modules.json"
)

// CallsUnpinned reports whether one of the modules that init has fetched calls another
// that need not be the same when it is fetched again. The folder is what became of
// .terraform/modules. Modules that cannot be read count as such.
func CallsUnpinned(folder, engine string) bool {
	data, err := readFile(filepath.Join(folder, fetchedList))
	if err != nil {
		return true
	}
	var list struct {
		Modules []struct{ Dir string }
	}
	if json.Unmarshal(data, &list) != nil || len(list.Modules) > maxModules {
		return true
	}
	return slices.ContainsFunc(list.Modules, func(m struct{ Dir string }) bool {
		in, fetched := strings.CutPrefix(path.Clean(filepath.ToSlash(m.Dir)), fetchedDir)
		if !fetched {
			return false // in the repository, from where Read has followed it
		}
		return callsUnpinned(filepath.Join(folder, filepath.FromSlash(in)), engine)
	})
}

// callsUnpinned does so for the code in one folder. Modules that it calls by a path are
// on the list themselves.
func callsUnpinned(dir, engine string) bool {
	names, err := codeIn(dir, engine)
	if err != nil {
		return true
	}
	for _, name := range names {
		file, err := Parse(filepath.Join(dir, name))
		if err != nil {
			return true
		}
		content, _, _ := file.Body.PartialContent(moduleSchema)
		if content == nil {
			return true
		}
		if slices.ContainsFunc(content.Blocks, func(b *hcl.Block) bool { return b.Type == "module" && !pinnedCall(file, b) }) {
			return true
		}
	}
	return false
}

// pinnedCall reports whether a call is of a module that stays the same. One without a
// source overrides another.
func pinnedCall(file *hcl.File, block *hcl.Block) bool {
	source, fixed := textOf(file, block.Body, "source")
	version, _ := textOf(file, block.Body, "version")
	return source+version == "" || fixed && isLocal(source) || pinnedSource(source, version)
}

func isLocal(source string) bool {
	return strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../")
}
