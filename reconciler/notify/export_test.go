package notify

import "context"

// Look looks at a cluster, as Run does after a decision.
func (n *Notifier) Look(ctx context.Context, cluster string) error { return n.look(ctx, cluster) }

// SendSome sends what is due to the channel of that number, as Run does.
func (n *Notifier) SendSome(ctx context.Context, channel, failures int) (int, error) {
	return n.sendSome(ctx, n.opts.Channels[channel], failures)
}
