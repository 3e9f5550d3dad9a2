package objects_test

import (
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects"
)

// A bucket is its first claimer's; a folder of it may be another's.
func TestClaim(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		for range 2 {
			if err := b.Claim(t.Context(), "ours", nil); err != nil {
				t.Fatal(err)
			}
		}
		if found := list(t, b, ""); len(found) != 1 {
			t.Errorf("a claim leaves %v", found)
		}
		var owned *objects.OwnerError
		if err := b.Claim(t.Context(), "another", nil); !errors.As(err, &owned) || !strings.Contains(err.Error(), "ours") || owned.Hint() == "" {
			t.Errorf("another's Claim() = %v", err)
		}
		folder := at.opts
		folder.URL = inFolder(t, folder.URL, "team/a")
		inside := openAt(t, folder)
		if err := inside.Claim(t.Context(), "another", nil); err != nil {
			t.Errorf("Claim() of a folder = %v", err)
		}
		if err := write(t.Context(), inside, "another/state/1", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if found := list(t, b, ""); len(found) != 3 || !found["team/a/another/state/1"] {
			t.Errorf("the bucket has %v", found)
		}
		if found := list(t, inside, "another/"); len(found) != 1 || !found["another/state/1"] {
			t.Errorf("the folder has %v", found)
		}
	})
}

// A bucket without what an installation has stored is another one.
func TestClaimOfAnEmptyBucket(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, at place) {
		b := openAt(t, at.opts)
		var owned *objects.OwnerError
		err := b.Claim(t.Context(), "ours", []string{"ours/state/1", "ours/bundle/2"})
		if !errors.As(err, &owned) || !strings.Contains(err.Error(), "ours/state/1") || owned.Hint() == "" {
			t.Errorf("Claim() = %v", err)
		}
		if found := list(t, b, ""); len(found) != 0 {
			t.Errorf("a refused claim leaves %v", found)
		}
		if err := write(t.Context(), b, "ours/bundle/2", []byte("copied")); err != nil {
			t.Fatal(err)
		}
		if err := b.Claim(t.Context(), "ours", []string{"ours/state/1", "ours/bundle/2"}); err != nil {
			t.Errorf("Claim() of a bucket that it was copied to = %v", err)
		}
	})
}

func TestClaimRefusals(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, at place) {
		wrong := at.opts
		wrong.Secret = func() (string, error) { return wrongSecret(at), nil }
		missing := at.opts
		missing.URL = at.server.URL("nosuchbucket")
		unreadable := at.opts
		unreadable.Secret = func() (string, error) { return "", errors.New("environment variable BLOBS_SECRET is not set") }
		for name, test := range map[string]struct {
			opts       objects.Options
			want, hint string
		}{
			"wrong credentials":   {wrong, "", "check datastore.blobs."},
			"no such bucket":      {missing, "nosuchbucket", "creates none"},
			"no secret to be had": {unreadable, "BLOBS_SECRET", "check "},
		} {
			err := claim(t, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(hintOf(err)+err.Error(), test.hint) {
				t.Errorf("%s: %v (%s), want %q and the hint %q", name, err, hintOf(err), test.want, test.hint)
				continue
			}
			t.Logf("%s: %v\n\t%s", name, err, hintOf(err))
			for _, secret := range []string{at.server.Secret, wrongSecret(at)} {
				if strings.Contains(err.Error()+hintOf(err), secret) {
					t.Errorf("%s: the error tells the secret: %v", name, err)
				}
			}
			if errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: %v is an ErrNotFound: objects would count as gone", name, err)
			}
		}
	})
}

// TestSecretChanges: a new secret is used, and an old one is not, without a restart. The id of the
// access key stays the same. Tokens of Google are used until they end.
func TestSecretChanges(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, at place) {
		if strings.HasPrefix(at.opts.URL, "gs:") {
			return // see above
		}
		var secret atomic.Value
		secret.Store(at.server.Secret)
		opts := at.opts
		opts.Secret = func() (string, error) { return secret.Load().(string), nil }
		b, err := objects.OpenHasty(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		put := func() error { return write(t.Context(), b, "ours/state/1", []byte("x")) }
		until := func(what string, done func(error) bool) {
			t.Helper()
			for err := put(); !done(err); err = put() {
				if t.Context().Err() != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		until("the right one", func(err error) bool { return err == nil })
		secret.Store(wrongSecret(at))
		until("a wrong one", func(err error) bool { return err != nil && strings.Contains(hintOf(err), "check datastore.blobs.") })
		secret.Store(at.server.Secret)
		until("the right one again", func(err error) bool { return err == nil })
	})
}

func claim(t *testing.T, opts objects.Options) error {
	t.Helper()
	b, err := objects.Open(t.Context(), opts)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Claim(t.Context(), "ours", nil)
}

// wrongSecret is a secret as the store's are, and not its.
func wrongSecret(at place) string {
	if strings.HasPrefix(at.opts.URL, "gs://") {
		return strings.Replace(at.server.Secret, "/token", "/refuse", 1)
	}
	return strings.Repeat("d3Jvbmc0", 11)
}

func inFolder(t testing.TB, bucket, folder string) string {
	t.Helper()
	u, err := url.Parse(bucket)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + folder
	return u.String()
}
