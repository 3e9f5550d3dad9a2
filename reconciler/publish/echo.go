package publish

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// stampSlack is how much later than it answered a forge may stamp what it has written:
// GitHub has been seen to be a second apart. Nobody reads an edit that is that short.
const stampSlack = time.Second

// Untouched reports whether the forge has a post as it was written there: as it was
// sent, or as the forge gave it back, and not edited since. An edit that was taken back
// is one, too: people have read it meanwhile. Of a forge that does not say when a
// comment was edited, the text alone counts.
func (o *outbox) Untouched(post holdfast.Post, found holdfast.Comment) bool {
	if found.UpdatedAt.After(post.PostedAt.Add(stampSlack)) {
		return false
	}
	if sameText(post.Body, found.Body) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	echo := o.echoes[post.Key]
	return echo != "" && echo == holdfast.DigestOf([]byte(found.Body))
}

// sameText reports whether two texts differ at most in how their lines end.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	return a == b || plain(a) == plain(b)
}

// wrote remembers how the forge gives a comment back, if that is not as it was sent.
func (o *outbox) wrote(post holdfast.Post, comment holdfast.Comment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.echoes, post.Key)
	if comment.Body != "" && !sameText(post.Body, comment.Body) {
		o.echoes[post.Key] = holdfast.DigestOf([]byte(comment.Body))
	}
}
