package publish

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Wrote reports whether what the forge has of a post is what was written there: as
// it was sent, or as the forge gave it back.
func (o *outbox) Wrote(post holdfast.Post, body string) bool {
	if sameText(post.Body, body) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	echo := o.echoes[post.Key]
	return echo != "" && echo == holdfast.DigestOf([]byte(body))
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
