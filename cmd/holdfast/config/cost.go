package config

import (
	"fmt"
	"time"
)

// Cost is how what plans cost is estimated.
type Cost struct {
	Enabled bool          `yaml:"enabled" default:"true" doc:"Estimate what plans change of the monthly price. The embedded table of list prices needs no network."`
	Books   []string      `yaml:"books" doc:"[Price books](cost.md#price-book): files with prices and discounts of your own. The first that has a price counts. They are read when the server starts, and one with a fault keeps it from starting."`
	Sources []PriceSource `yaml:"sources" doc:"Publishers of prices. They are asked, in the background, for prices that plans need; their prices are used after those of the price books and before the embedded table. Left out: nobody is asked."`
	Refresh time.Duration `yaml:"refresh" default:"24h" doc:"How old prices of the sources may be before they are asked again. At least 1h."`
}

// PriceSource is somebody who publishes prices.
type PriceSource struct {
	Type string `yaml:"type" doc:"aws, azure or linode, which anybody may ask; gcp or digitalocean, with a key; infracost: an endpoint that speaks its protocol."`
	URL  string `yaml:"url" doc:"Where it is asked. Required for infracost; left out for others: where the cloud publishes its prices."`
	Key  Secret `yaml:"key" doc:"An API key of Google Cloud, a token of DigitalOcean, or the key of the endpoint. Read when the server starts."`
}

// keyedSources are the types of sources that answer nobody without a key.
var keyedSources = map[string]bool{"gcp": true, "digitalocean": true, "infracost": true} //nolint:gochecknoglobals // a constant table

const leastRefresh = time.Hour // sources are other people's

func (d contradictions) checkCost(c Cost) {
	for i, name := range c.Books {
		d.required(fmt.Sprintf("cost.books[%d]", i), name)
	}
	seen := make(map[string]bool)
	for i, s := range c.Sources {
		at := fmt.Sprintf("cost.sources[%d]", i)
		d.oneOf(at+".type", s.Type, "aws", "azure", "linode", "gcp", "digitalocean", "infracost")
		d.unique(at+".type", s.Type, seen)
		d.secret(at+".key", s.Key)
		if keyedSources[s.Type] && s.Key.IsZero() {
			d.at(at+".key", "is required for "+s.Type, "{file: PATH} or {env: NAME}")
		}
		if s.URL != "" {
			d.url(at+".url", s.URL, "http", "https")
		} else if s.Type == "infracost" {
			d.at(at+".url", "is required for infracost", "where the endpoint is, such as https://prices.example.com")
		}
	}
	if c.Refresh < leastRefresh {
		d.at("cost.refresh", "must be at least 1h", "prices of clouds change some times a year")
	}
}
