package holdfast

import "context"

type originKey struct{}

// WithOrigin returns a context of what somebody asks for from somewhere: an address, and what
// was shown there. Audit entries that are made with it name it.
func WithOrigin(ctx context.Context, origin string) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// OriginOf is from where something is asked for; empty: Holdfast does it.
func OriginOf(ctx context.Context) string {
	origin, _ := ctx.Value(originKey{}).(string)
	return origin
}
