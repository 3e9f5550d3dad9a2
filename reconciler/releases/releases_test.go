package releases_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/templates"
)

// tree is a commit.
type tree struct {
	holdfast.Tree
	rev string
}

// world is one repository that publishes the template kubernetes.
type world struct {
	refs     holdfast.Refs
	unread   error // why the repository cannot be read
	pins     map[string]holdfast.Revision
	clusters []holdfast.ClusterRecord
	opened   []string
	missing  bool // its commits are not held here
	broken   []string
	named    string // what its templates call themselves; empty: kubernetes
	version  string // what version they say they are
}

// Load makes of each commit a template, except for those that are broken.
func (w *world) Load(of holdfast.Tree, _ string) (*templates.Template, holdfast.Faults, error) {
	if slices.Contains(w.broken, of.(tree).rev) {
		return nil, holdfast.Faults{{Message: "it is broken"}}, nil
	}
	return &templates.Template{Name: cmp.Or(w.named, "kubernetes"), Version: w.version}, nil, nil
}

func (w *world) PinTag(_ context.Context, _, tag string, rev holdfast.Revision) (holdfast.Revision, error) {
	if was, ok := w.pins[tag]; ok {
		return was, nil
	}
	w.pins[tag] = rev
	return rev, nil
}

func (w *world) MovePin(_ context.Context, _, tag string, from, to holdfast.Revision) error {
	if w.pins[tag] == from {
		w.pins[tag] = to
	}
	return nil
}

func (w *world) TagPins(context.Context, string) (map[string]holdfast.Revision, error) {
	return maps.Clone(w.pins), nil
}

func (w *world) Clusters(context.Context, holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	return w.clusters, nil
}

func (w *world) Tree(_ context.Context, _, rev string) (holdfast.Tree, error) {
	if w.missing {
		return nil, holdfast.ErrNotFound
	}
	w.opened = append(w.opened, rev)
	return tree{rev: rev}, nil
}

func (w *world) reader() *releases.Reader {
	return releases.NewReader(releases.Options{
		Repositories: []releases.Repository{{Name: "acme/templates", Templates: map[string]string{"kubernetes": "kubernetes"}}},
		Pins:         w, Git: w, Loader: w,
		Refs: func(context.Context, string) (holdfast.Refs, error) { return w.refs, w.unread },
	})
}

func newWorld(tags ...string) *world {
	w := &world{refs: holdfast.Refs{}, pins: map[string]holdfast.Revision{}}
	for _, tag := range tags {
		name, rev, _ := strings.Cut(tag, "=")
		w.refs["refs/tags/"+name] = holdfast.Revision(rev)
	}
	return w
}

// uses is a cluster whose document, or last apply, names a version.
func uses(desired, applied string) holdfast.ClusterRecord {
	var rec holdfast.ClusterRecord
	rec.Desired.Document.Template = &holdfast.TemplateRef{Name: "kubernetes", Version: desired}
	rec.Applied.Template = applied
	return rec
}

// A version is the commit that its tag named when it was first used.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clusters []holdfast.ClusterRecord
		moved    bool
	}{
		"nobody uses it":       {nil, false},
		"a document names it":  {[]holdfast.ClusterRecord{uses("1.0.0", "")}, true},
		"it was applied":       {[]holdfast.ClusterRecord{uses("2.0.0", "kubernetes@1.0.0 (aaa)")}, true},
		"another one was":      {[]holdfast.ClusterRecord{uses("1.0.1", "kubernetes@1.0.01 (aaa)")}, false},
		"an older one is used": {[]holdfast.ClusterRecord{uses("0.9.0", "kubernetes@0.9.0 (aaa)")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld("v1.0.0=aaa")
			first, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0")
			if err != nil || first.Revision != "aaa" || first.Dir != "kubernetes" || first.Tag != "v1.0.0" {
				t.Fatalf("Version() = %+v, %v", first, err)
			}
			w.refs["refs/tags/v1.0.0"], w.clusters = "bbb", test.clusters
			second, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0")
			var moved *templates.MovedTagError
			switch {
			case test.moved && (!errors.As(err, &moved) || moved.Was != "aaa" || moved.Now != "bbb" || w.pins["v1.0.0"] != "aaa"):
				t.Errorf("Version() = %+v, %v with pins %v, want that the tag has moved", second, err, w.pins)
			case !test.moved && (err != nil || second.Revision != "bbb" || w.pins["v1.0.0"] != "bbb"):
				t.Errorf("Version() = %+v, %v with pins %v, want the tag of now", second, err, w.pins)
			}
		})
	}
}

// A commit whose template cannot be used is not a release: the tag may be put where it was,
// or on another one, also while documents name the version.
func TestBrokenTag(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world){
		"faults":         func(w *world) { w.broken = []string{"bbb"} },
		"another name":   func(w *world) { w.named = "kubernets" },
		"another number": func(w *world) { w.version = "1.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld("v1.0.0=bbb")
			spoil(w)
			w.clusters = []holdfast.ClusterRecord{uses("1.0.0", "")}
			got, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0")
			if err != nil || got.Revision != "bbb" {
				t.Fatalf("Version() = %+v, %v, want the commit, whose faults its document has", got, err)
			}
			if len(w.pins) > 0 {
				t.Errorf("a template that cannot be used is recorded: %v", w.pins)
			}
			w.broken, w.named, w.version = nil, "", ""
			w.refs["refs/tags/v1.0.0"] = "aaa"
			if got, err = w.reader().Version(t.Context(), "kubernetes", "1.0.0"); err != nil || got.Revision != "aaa" || w.pins["v1.0.0"] != "aaa" {
				t.Errorf("Version() of the tag that was put back = %+v, %v; recorded: %v", got, err, w.pins)
			}
		})
	}

	w := newWorld("v1.0.0=aaa")
	read := func(want holdfast.Revision) {
		t.Helper()
		if got, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0"); err != nil || got.Revision != want || w.pins["v1.0.0"] != "aaa" {
			t.Errorf("Version() = %+v, %v, want %s; recorded: %v", got, err, want, w.pins)
		}
	}
	read("aaa")
	w.refs["refs/tags/v1.0.0"], w.broken = "bbb", []string{"bbb"}
	read("bbb") // of a pull request
	w.clusters = []holdfast.ClusterRecord{uses("1.0.0", "")}
	var moved *templates.MovedTagError
	if _, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0"); !errors.As(err, &moved) || moved.Was != "aaa" {
		t.Errorf("Version() of a tag that was moved to a broken commit: %v", err)
	}
	w.refs["refs/tags/v1.0.0"] = "aaa"
	read("aaa")
}

// The tag of the template's own goes before the repository's, and one that is added
// later does not make a version another one.
func TestTwoTags(t *testing.T) {
	t.Parallel()
	w := newWorld("v1.0.0=aaa", "kubernetes/v1.0.0=bbb")
	if got, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0"); err != nil || got.Revision != "bbb" {
		t.Errorf("Version() = %+v, %v, want the template's own tag", got, err)
	}
	w = newWorld("v1.0.0=aaa")
	if _, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	w.refs["refs/tags/kubernetes/v1.0.0"], w.clusters = "bbb", []holdfast.ClusterRecord{uses("1.0.0", "")}
	var moved *templates.MovedTagError
	if got, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0"); !errors.As(err, &moved) {
		t.Errorf("Version() = %+v, %v: a later tag makes the version another one", got, err)
	}
}

// While a repository is out of reach its versions that were used are still there.
func TestUnreadableRepository(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pins    map[string]holdfast.Revision
		missing bool
		cause   error
		why     string // empty: the version is opened
	}{
		"recorded":        {map[string]holdfast.Revision{"v1.0.0": "aaa"}, false, errors.New("EOF"), ""},
		"not held here":   {map[string]holdfast.Revision{"v1.0.0": "aaa"}, true, errors.New("EOF"), "it is out of reach"},
		"never used":      {nil, false, errors.New("dial tcp 10.0.0.1: EOF"), "it is out of reach"},
		"it is gone":      {nil, false, holdfast.ErrNotFound, "it does not exist, or access to it was lost"},
		"access was lost": {nil, false, holdfast.ErrForbidden, "access to it is refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			maps.Copy(w.pins, test.pins)
			w.unread, w.missing = test.cause, test.missing
			got, err := w.reader().Version(t.Context(), "kubernetes", "1.0.0")
			var unreadable *templates.UnreadableError
			switch {
			case test.why == "" && (err != nil || got.Revision != "aaa"):
				t.Errorf("Version() = %+v, %v", got, err)
			case test.why != "" && (!errors.As(err, &unreadable) || unreadable.Why != test.why):
				t.Errorf("Version() = %v, want %q, in the same words each time", err, test.why)
			}
		})
	}
}

func TestNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorld("v1.0.0=aaa", "kubernetes/v1.1.0=bbb", "other/v9.0.0=ccc", "nightly=ddd")
	w.pins["v0.9.0"] = "eee"
	var no *templates.NoVersionError
	if _, err := w.reader().Version(t.Context(), "kubernetes", "0.9.0"); !errors.As(err, &no) ||
		!slices.Equal(no.Available, []string{"1.0.0", "1.1.0"}) || no.Deleted != "v0.9.0" {
		t.Errorf("Version() of a tag that was deleted = %+v, %v", no, err)
	}
	if _, err := w.reader().Version(t.Context(), "kubernets", "1.0.0"); !errors.As(err, &no) || !slices.Equal(no.Templates, []string{"kubernetes"}) {
		t.Errorf("Version() of an unknown template = %+v, %v", no, err)
	}
}

// To look at a version records nothing: one that was never used may still be mended.
func TestLookRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld("v1.0.0=aaa")
	look := releases.NewLook(w.reader(), nil)
	if tag, _, dir, why, err := look.Open(t.Context(), "kubernetes", "1.0.0"); err != nil || why != "" || tag != "v1.0.0" || dir != "kubernetes" {
		t.Errorf("Open() = %q, %q, %q, %v", tag, dir, why, err)
	}
	if len(w.pins) > 0 {
		t.Errorf("looking has recorded %v", w.pins)
	}
	w.pins["v1.0.0"], w.clusters = "bbb", []holdfast.ClusterRecord{uses("1.0.0", "")}
	if _, _, _, why, err := look.Open(t.Context(), "kubernetes", "1.0.0"); err != nil || !strings.Contains(why, "v1.0.0") {
		t.Errorf("Open() of a moved tag: %q, %v", why, err)
	}
	for name, version := range map[string]string{"kubernetes": "3.0.0", "other": "1.0.0"} {
		if _, _, _, why, err := look.Open(t.Context(), name, version); err != nil || why == "" {
			t.Errorf("Open(%s, %s): %q, %v", name, version, why, err)
		}
	}
}

// A tree is opened once for all clusters of a version.
func TestOpenedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld("v1.0.0=aaa")
	reader := w.reader()
	for range 3 {
		if _, err := reader.Version(t.Context(), "kubernetes", "1.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(w.opened, []string{"aaa"}) {
		t.Errorf("opened %v", w.opened)
	}
}
