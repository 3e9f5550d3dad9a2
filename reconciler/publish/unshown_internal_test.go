package publish

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// A comment that shows none of the plans may be there though the answer to that got lost. It
// is noticed by whoever looks at it, and before it is written over.
func TestUnshownIsNoticed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		now     string
		noticed bool
	}{
		"it is there":         {now: "too much to show", noticed: true},
		"something else is":   {now: "the next plans"},
		"nothing was written": {now: "the plans"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := outgoing.Post{Key: "comment:" + ref.String(), Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, ExternalID: "1"}
			for _, try := range []outgoing.Post{{Body: "too much to show", Unshown: true}, {Body: "the next plans"}} {
				post.Attempts = append(post.Attempts, try.Attempt())
			}
			post.Posted, post.Wanted, post.PostedAt, post.Echo = 1, 4, noon, holdfast.DigestOf([]byte("the plans"))
			post.Body = "the last plans"
			pr := holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestOpen}
			there := holdfast.Comment{ID: "1", Body: test.now, UpdatedAt: noon}
			for _, writes := range []bool{false, true} {
				r := &records{posts: map[string]outgoing.Post{post.Key: post}}
				p := publisher(r, &watcher{}, host{now: there})
				if writes {
					if err := p.post(t.Context(), post); err != nil || r.posted.IsZero() {
						t.Errorf("written: %v, %v", r.posted, err)
					}
				} else if intact, err := p.Intact(t.Context(), pr, pr.State); err != nil || intact == test.noticed {
					t.Errorf("intact: %t, %v", intact, err)
				} else if intact, err := p.Intact(t.Context(), pr, pr.State); err != nil || !intact {
					t.Errorf("later intact: %t, %v", intact, err)
				}
				if noticed := r.unshown.Equal(noon); noticed != test.noticed || r.edited != nil {
					t.Errorf("noticed: %v, edited: %v", r.unshown, r.edited)
				}
			}
		})
	}
}
