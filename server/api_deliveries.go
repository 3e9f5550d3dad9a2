package server

import (
	"context"
	"errors"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Deliveries keep what became of webhooks; *datastore.Store is one.
type Deliveries interface {
	// Deliveries returns them, newest first, from before a place on (zero: from the newest),
	// and the place of this part.
	Deliveries(ctx context.Context, before int64, limit int) (deliveries []holdfast.Delivery, place int64, err error)
}

// listDeliveries answers with the webhooks that were taken in, newest first.
func (s *systemAPI) listDeliveries(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	before, err2 := p.place()
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	found, place, err := s.opts.Deliveries.Deliveries(c.Request.Context(), before, p.limit)
	cursor := full(p, found, func(holdfast.Delivery) []string { return []string{strconv.FormatInt(place, 10)} })
	answerList(s.base, c, p, found, v1.DeliveryOf, cursor, err)
}
