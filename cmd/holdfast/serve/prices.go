package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/cost/book"
	"github.com/holdfast-dev/holdfast/cost/cache"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/prices"
	"github.com/holdfast-dev/holdfast/cost/sources"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// pricing is what plans are priced with. The zero value prices none.
type pricing struct {
	prices *cache.Cache // of sources; nil: nobody is asked for prices
	// estimate is what a plan for a cluster costs; nil: costs are not estimated.
	estimate func(c holdfast.Cluster, document plandoc.Document) holdfast.Cost
}

// openPrices makes the chain of prices that holdfast.yaml describes: books, what sources have
// published lately, the embedded table.
func openPrices(s *services) error {
	if !s.cfg.Cost.Enabled {
		return nil
	}
	books, err := priceBooks(s.cfg)
	if err != nil {
		return err
	}
	published, err := priceSources(s.cfg, s.clock)
	if err != nil {
		return err
	}
	chain := price.Chain{prices.Embedded{}}
	if len(published) > 0 {
		s.prices, err = cache.Open(cache.Options{Path: s.path("prices.json"), Sources: published, Now: s.clock.Now, TTL: s.cfg.Cost.Refresh})
		if err != nil {
			s.logger.Warn("kept prices were not read: they are fetched again", "err", err)
		}
		chain = price.Chain{s.prices, prices.Embedded{}}
	}
	for i := len(books) - 1; i >= 0; i-- { // the first is to be in front
		chain = books[i].Chain(chain...)
	}
	s.estimate = func(c holdfast.Cluster, document plandoc.Document) holdfast.Cost {
		return cost.Estimate(cost.Input{Document: document, Region: c.Region}, chain)
	}
	return nil
}

// priceBooks reads the price books of an installation.
func priceBooks(cfg *config.Config) (books []*book.Book, err error) {
	for _, name := range cfg.Cost.Books {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, hint.New(fmt.Errorf("read price book: %w", err), "correct cost.books in holdfast.yaml")
		}
		b, faults := book.Parse(name, data)
		if len(faults) > 0 {
			return nil, fmt.Errorf("price book is not valid:\n%w", faults)
		}
		books = append(books, b)
	}
	return books, nil
}

// priceSources are those that holdfast.yaml names.
func priceSources(cfg *config.Config, clock *clock) (all []cache.Source, err error) {
	opts := sources.Options{Now: clock.Now}
	for _, c := range cfg.Cost.Sources {
		key := ""
		if !c.Key.IsZero() {
			if key, err = c.Key.Value(); err != nil {
				return nil, hint.New(fmt.Errorf("read the key of price source %s: %w", c.Type, err), "correct cost.sources in holdfast.yaml")
			}
		}
		at := func(usual string) string {
			if c.URL != "" {
				return c.URL
			}
			return usual
		}
		switch c.Type {
		case "aws":
			all = append(all, sources.NewAWS(at(sources.AWSURL), opts))
		case "azure":
			all = append(all, sources.NewAzure(at(sources.AzureURL), opts))
		case "linode":
			all = append(all, sources.NewLinode(at(sources.LinodeURL), opts))
		case "gcp":
			all = append(all, sources.NewGCP(at(sources.GCPURL), key, opts))
		case "digitalocean":
			all = append(all, sources.NewDigitalOcean(at(sources.DigitalOceanURL), key, opts))
		case "infracost":
			all = append(all, sources.NewInfracost(c.URL, key, opts))
		}
	}
	return all, nil
}

// refresh keeps what sources publish until ctx is done.
func (p pricing) refresh(ctx context.Context, logger *slog.Logger) {
	p.prices.Run(ctx, func(err error) { logger.Warn("prices were not refreshed; those before are used", "err", err) })
}
