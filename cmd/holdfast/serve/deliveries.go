package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// recorder keeps the results of webhooks. A delivery does not wait for that: it is written
// with others, and given up if the database does not keep up.
type recorder struct {
	store interface {
		AddDeliveries(ctx context.Context, deliveries []holdfast.Delivery) error
	}
	logger  *slog.Logger
	waiting chan holdfast.Delivery
	refused time.Time // when a delivery was last recorded that was refused
}

const (
	deliveriesWaiting = 1000
	deliveriesAtOnce  = 200
	deliveriesEvery   = time.Second
)

// add takes in one.
func (r *recorder) add(d holdfast.Delivery) {
	select {
	case r.waiting <- d:
	default: // it is counted and logged anyway
	}
}

// run writes them until ctx is done. Refused ones, which anybody can send, are written at
// most once a second.
func (r *recorder) run(ctx context.Context) error {
	tick := time.NewTicker(deliveriesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		batch := r.batch()
		if len(batch) == 0 {
			continue
		}
		if err := r.store.AddDeliveries(ctx, batch); err != nil && ctx.Err() == nil {
			r.logger.WarnContext(ctx, "deliveries were not recorded", "err", err)
		}
	}
}

// batch is what waits.
func (r *recorder) batch() (batch []holdfast.Delivery) {
	for len(batch) < deliveriesAtOnce {
		select {
		case d := <-r.waiting:
			if d.Status >= 400 && d.Status < 500 {
				if d.At.Sub(r.refused) < deliveriesEvery {
					continue
				}
				r.refused = d.At
			}
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}
