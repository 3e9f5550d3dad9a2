package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/holdfast-dev/holdfast"
)

const (
	// What a fetch says it has: of each ref that the remote does not know, so
	// many commits back, and so many in all.
	maxHavesPerRef = 100
	maxHaves       = 2000
	// And so many that the remote has, too: what is new continues from the main branch, or
	// from where its own branch was, more often than from another one.
	maxShared = 64

	// maxVerified bounds the commits that are read when a mirror is opened.
	maxVerified = 200
)

// Fetch brings the branches and tags of a repository up to date and returns
// them; annotated tags as the commits that they point at, tags of anything else
// left out. An empty repository has none. An unchanged remote is asked for its
// refs and nothing else; calls that come while one is waiting share its answer.
//
// A mirror that turns out to be broken is made again. Errors: ErrNotFound,
// ErrUnauthorized, ErrForbidden, ErrUnavailable; after any of them the mirror
// still answers what it answered before.
func (s *Source) Fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	arrived := time.Now()
	end, err := m.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch repository %q: %w", repo, err)
	}
	defer end()
	if m.refs != nil && m.asked.After(arrived) {
		return m.refs.published(), nil
	}
	began := time.Now()
	if err := m.fetch(ctx, branchesAndTags); err != nil {
		return nil, fmt.Errorf("fetch repository %q: %w", repo, err)
	}
	m.asked = began
	return m.refs.published(), nil
}

// branchesAndTags wants what the remote has of those, and keeps what was fetched
// of pull requests that it still has.
func branchesAndTags(remote map[string]plumbing.Hash, current refs) (map[string]plumbing.Hash, error) {
	wanted := make(map[string]plumbing.Hash, len(remote))
	for name, hash := range remote {
		if isBranchOrTag(name) {
			wanted[name] = hash
		} else if r, ok := current[name]; ok {
			wanted[name] = r.hash
		}
	}
	return wanted, nil
}

// FetchPullRequest fetches refs/pull/N/head and, if there is one, /merge, in one
// exchange with all that Fetch fetches: base, head and merge are of one moment.
// It is ErrNotFound if the remote has no such pull request; then nothing was
// fetched.
func (s *Source) FetchPullRequest(ctx context.Context, repo string, number int) (holdfast.PullRequestRefs, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return holdfast.PullRequestRefs{}, fmt.Errorf("fetch pull request %d: %w", number, err)
	}
	head, merge := fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprintf("refs/pull/%d/merge", number)
	wants := func(remote map[string]plumbing.Hash, current refs) (map[string]plumbing.Hash, error) {
		if _, ok := remote[head]; !ok {
			return nil, fmt.Errorf("%s: %w", head, holdfast.ErrNotFound)
		}
		wanted, err := branchesAndTags(remote, current)
		if err != nil {
			return nil, err
		}
		delete(wanted, merge)
		for _, name := range []string{head, merge} {
			if hash, ok := remote[name]; ok {
				wanted[name] = hash
			}
		}
		return wanted, nil
	}
	end, err := m.begin(ctx)
	if err == nil {
		defer end()
		began := time.Now()
		if err = m.fetch(ctx, wants); err == nil {
			m.asked = began
		}
	}
	if err != nil {
		return holdfast.PullRequestRefs{}, fmt.Errorf("fetch pull request %d of repository %q: %w", number, repo, err)
	}
	result := holdfast.PullRequestRefs{
		Head: holdfast.Revision(m.refs[head].commit.String()), Refs: m.refs.published(),
	}
	if r, ok := m.refs[merge]; ok {
		result.Merge = holdfast.Revision(r.commit.String())
	}
	return result, nil
}

// choose says which refs a mirror should have, given what the remote has and what
// the mirror has.
type choose func(remote map[string]plumbing.Hash, current refs) (map[string]plumbing.Hash, error)

// fetch makes the mirror's refs those that wants chooses. The caller is busy with
// the mirror.
func (m *mirror) fetch(ctx context.Context, wants choose) (err error) {
	defer func() { m.noteDisk(err) }()
	began := time.Now()
	damage := m.prepare()
	if damage != nil && !isDamage(damage) {
		return fmt.Errorf("open mirror: %w", damage)
	}
	if damage != nil {
		if err := m.remake(ctx, damage); err != nil {
			return err
		}
	}
	next, err := m.download(ctx, m.path, m.refs, wants)
	if err != nil {
		return err
	}
	if maps.Equal(next, m.refs) {
		return nil
	}
	m.generation.Add(1) // there may be a new pack, perhaps another process's
	if err := writeRefs(m.path, next); err != nil {
		return fmt.Errorf("write refs: %w", err)
	}
	m.refs = next
	m.logger.DebugContext(ctx, "fetched", "repo", m.name, "duration", time.Since(began))
	if err := m.repack(); err != nil {
		// Many packs are slow, not wrong.
		m.logger.WarnContext(ctx, "left packs as they are", "repo", m.name, "err", err)
	}
	return nil
}

// remake clones the remote next to a mirror that cannot be trusted, and puts the
// clone in its place once it is complete. The clone has all branches and tags;
// pull requests are fetched when they are asked for.
func (m *mirror) remake(ctx context.Context, damage error) error {
	m.logger.WarnContext(ctx, "mirror is damaged", "repo", m.name, "err", damage)
	if err := recoverSwap(m.path); err != nil {
		return err
	}
	fresh := m.path + ".new"
	if err := initBare(fresh); err != nil {
		return fmt.Errorf("make mirror again: %w", err)
	}
	next, err := m.download(ctx, fresh, refs{}, branchesAndTags)
	if err == nil {
		err = writeRefs(fresh, next)
	}
	if err == nil {
		err = m.replace(fresh)
	}
	if err != nil {
		return fmt.Errorf("make mirror again: %w", err)
	}
	m.refs = next
	m.logger.InfoContext(ctx, "made mirror again", "repo", m.name)
	return nil
}

// download brings what is missing of the wanted refs into dir, and returns the
// refs that it should have then. Whoever may push a branch decides what it leads to: if
// that is too large, it costs this branch, and no other.
func (m *mirror) download(ctx context.Context, dir string, current refs, wants choose) (refs, error) {
	ctx, dog, cancel := watch(ctx, m.remote.timeout, m.remote.idle)
	defer cancel()
	next, asked, err := m.exchange(ctx, dog, dir, current, wants, allAtOnce)
	for len(asked) > 0 && (errors.Is(err, errOversized) || errors.Is(err, errMore)) {
		if errors.Is(err, errOversized) && len(asked) == 1 {
			m.oversized[asked[0]] = err
			m.logger.ErrorContext(ctx, "left branches where they were", "repo", m.name, "object", asked[0], "err", err)
		}
		next, asked, err = m.exchange(ctx, dog, dir, current, wants, 1)
	}
	return next, err
}

const allAtOnce = math.MaxInt

// errMore says that objects are missing that were not asked for yet.
var errMore = errors.New("more objects are missing")

// exchange asks for a bounded number of the objects that are missing, says for which,
// and stores them.
func (m *mirror) exchange(
	ctx context.Context, dog *watchdog, dir string, current refs, wants choose, most int,
) (next refs, asked []plumbing.Hash, err error) {
	dog.touch()
	sess, err := m.remote.open(ctx)
	if err != nil {
		return nil, nil, classify(ctx, err)
	}
	defer func() { _ = sess.close() }()
	advertised, err := sess.advertise(ctx)
	if err != nil {
		return nil, nil, classifyTalk(ctx, err)
	}
	dog.touch()
	if len(advertised.Shallows) > 0 {
		return nil, nil, errors.New("remote is a shallow clone, whose history is cut off: run git fetch --unshallow there")
	}
	remote, err := m.usable(advertised, current)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := wants(remote, current)
	if err != nil {
		return nil, nil, err
	}
	store := openStore(dir)
	missing := missingObjects(store, wanted, current)
	asked = missing[:min(most, len(missing))]
	if len(asked) > 0 {
		if err := receive(ctx, sess, dog, m.request(store, asked, current, advertised), dir); err != nil {
			return nil, asked, classifyTalk(ctx, err)
		}
		store = openStore(dir) // sees the new pack
	}
	if len(asked) < len(missing) {
		return nil, asked, errMore
	}
	next, err = m.resolve(store, wanted, current)
	return next, asked, err
}

// request asks for objects. A thin pack would leave out objects that we have, and could
// not be indexed alone.
func (m *mirror) request(
	store *filesystem.Storage, missing []plumbing.Hash, current refs, advertised *packp.AdvRefs,
) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	req.Capabilities.Delete(capability.ThinPack)
	if advertised.Capabilities.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress) // which fails for unknown ones only
	}
	req.Wants, req.Haves = missing, m.haves(store, current, advertised)
	return req
}

// usable are the refs that a remote advertises, except for names of branches and tags that Git
// would not take or that are not UTF-8, as nothing that stores or shows them could, and for objects
// known not to be commits. What leads to something too large is where it was; it is an error for
// the remote's main branch, without which nothing can be done.
func (m *mirror) usable(advertised *packp.AdvRefs, current refs) (map[string]plumbing.Hash, error) {
	maps.DeleteFunc(m.oversized, func(hash plumbing.Hash, _ error) bool {
		return !slices.Contains(slices.Collect(maps.Values(advertised.References)), hash)
	})
	if advertised.Head != nil && m.oversized[*advertised.Head] != nil {
		return nil, fmt.Errorf("the main branch is at %s: %w", advertised.Head, m.oversized[*advertised.Head])
	}
	result := make(map[string]plumbing.Hash, len(advertised.References))
	for name, hash := range advertised.References {
		was, known := current[name] // its name was good enough then
		if _, ignored := m.ignored[hash]; ignored || !known && isBranchOrTag(name) && !validName(name) {
			continue
		}
		if m.oversized[hash] == nil {
			result[name] = hash
		} else if known {
			result[name] = was.hash
		}
	}
	return result, nil
}

// validName reports whether Git would take the name of a ref, and it can be stored and shown.
func validName(name string) bool {
	return strings.HasPrefix(name, "refs/") && plumbing.ReferenceName(name).Validate() == nil && utf8.ValidString(name)
}

// missingObjects are those that wanted points at and the store has not, in order.
func missingObjects(store *filesystem.Storage, wanted map[string]plumbing.Hash, current refs) []plumbing.Hash {
	missing := map[plumbing.Hash]struct{}{}
	for name, hash := range wanted {
		if current[name].hash != hash && store.HasEncodedObject(hash) != nil {
			missing[hash] = struct{}{}
		}
	}
	hashes := slices.Collect(maps.Keys(missing))
	plumbing.HashesSort(hashes)
	return hashes
}

// haves are commits that the remote need not send: what refs point at and, where
// the remote may no longer know that, some of what came before.
func (m *mirror) haves(store *filesystem.Storage, current refs, advertised *packp.AdvRefs) []plumbing.Hash {
	known := make(map[plumbing.Hash]struct{}, len(advertised.References))
	for _, hashes := range []map[string]plumbing.Hash{advertised.References, advertised.Peeled} {
		for _, hash := range hashes {
			known[hash] = struct{}{}
		}
	}
	gone, shared := m.tips(current, known, advertised.Head)
	result := map[plumbing.Hash]struct{}{}
	for _, tip := range gone {
		next := []plumbing.Hash{tip}
		for n := 0; len(next) > 0 && n < maxHavesPerRef && len(result) < maxHaves; n++ {
			hash := next[0]
			next = next[1:]
			if _, seen := result[hash]; seen {
				continue
			}
			commit, err := object.GetCommit(store, hash)
			if err != nil {
				continue // only what is there can be offered
			}
			result[hash] = struct{}{}
			if _, there := known[hash]; !there {
				next = append(next, commit.ParentHashes...)
			}
		}
	}
	offered := map[plumbing.Hash]struct{}{}
	for _, hash := range shared {
		if _, before := m.offered[hash]; !before || m.damaged.Load() { // otherwise it was there then
			if _, err := object.GetCommit(store, hash); err != nil {
				continue
			}
		}
		offered[hash], result[hash] = struct{}{}, struct{}{}
	}
	m.offered = offered
	return slices.Collect(maps.Keys(result))
}

// tips are the commits that refs point at: those that the remote's refs do not, and some of the
// others. Among these are that of the remote's main branch, and those that were offered before.
func (m *mirror) tips(current refs, known map[plumbing.Hash]struct{}, main *plumbing.Hash) (gone, shared []plumbing.Hash) {
	tips := make(map[plumbing.Hash]struct{}, len(current))
	for _, r := range current {
		tips[r.commit] = struct{}{}
	}
	var others []plumbing.Hash
	for hash := range tips {
		_, there := known[hash]
		_, before := m.offered[hash]
		switch {
		case !there:
			gone = append(gone, hash)
		case before || main != nil && hash == *main:
			shared = append(shared, hash)
		case len(others) < maxShared:
			others = append(others, hash)
		}
	}
	more := min(max(maxShared-len(shared), 0), len(others))
	return gone, append(shared, others[:more]...)
}

// receive asks for a pack and stores it.
func receive(ctx context.Context, sess session, dog *watchdog, req *packp.UploadPackRequest, dir string) error {
	answer, err := sess.pack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	r := dog.reader(answer)
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		r = sideband.NewDemuxer(sideband.Sideband64k, r)
	case req.Capabilities.Supports(capability.Sideband):
		r = sideband.NewDemuxer(sideband.Sideband, r)
	}
	return storePack(dir, dog.untilEnd(r), indexForeign(ctx))
}

// resolve checks that what changed is there, and finds the commits.
func (m *mirror) resolve(store *filesystem.Storage, wanted map[string]plumbing.Hash, current refs) (refs, error) {
	next := maps.Clone(current) // most stay as they are
	maps.DeleteFunc(next, func(name string, r ref) bool { return wanted[name] != r.hash })
	for name, hash := range wanted {
		if _, same := next[name]; same {
			continue
		}
		commit, err := peel(store, hash)
		if isMalformed(err) {
			m.logger.Error("ref was left out", "repo", m.name, "ref", name, "object", hash, "err", err)
			m.ignored[hash] = struct{}{}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s is %s, which the remote did not send: %w: %w", name, hash, holdfast.ErrUnavailable, err)
		}
		if commit == nil {
			m.ignored[hash] = struct{}{}
			continue
		}
		if err := store.HasEncodedObject(commit.TreeHash); err != nil {
			return nil, fmt.Errorf("%s is %s, whose tree the remote did not send: %w: %w", name, hash, holdfast.ErrUnavailable, err)
		}
		next[name] = ref{hash: hash, commit: commit.Hash}
	}
	return next, nil
}

// verify checks as much of a mirror as is cheap: its packs are whole, its refs
// lead to commits, and these to trees.
func verify(dir string, current refs) error {
	if err := verifyPacks(dir); err != nil {
		return err
	}
	store := openStore(dir)
	read := 0
	for name, r := range current {
		if read++; read > maxVerified {
			if err := store.HasEncodedObject(r.commit); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		commit, err := object.GetCommit(store, r.commit)
		if err == nil {
			_, err = object.GetTree(store, commit.TreeHash)
		}
		if err != nil && !isMalformed(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
