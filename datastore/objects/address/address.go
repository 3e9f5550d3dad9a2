package address

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The schemes of buckets.
const (
	S3    = "s3"
	GCS   = "gs"
	Azure = "azblob"
)

// parameters are what an address may say after its "?", by scheme.
var parameters = map[string][]string{
	S3:    {"region", "endpoint", "pathStyle"},
	GCS:   {"endpoint"},
	Azure: {"account", "endpoint"},
}

// Address is where a bucket is.
type Address struct {
	Scheme string
	Bucket string
	Prefix string // of all keys: empty, or with a slash at its end

	query url.Values
}

// Parse reads an address. Its errors complete a sentence about it, such as "has the scheme
// ftp", and repeat nothing that could be secret.
func Parse(raw string) (Address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Address{}, errors.New("is not a URL") // what url.Parse says repeats it
	}
	a := Address{Scheme: u.Scheme, Bucket: u.Host, query: u.Query()}
	known, ok := parameters[u.Scheme]
	switch {
	case !ok:
		return a, fmt.Errorf("has the scheme %q, and not s3, gs or azblob", u.Scheme)
	case u.User != nil:
		return a, errors.New("has credentials in it, which belong into accessKey and secret, or into the environment")
	case u.Host == "":
		return a, fmt.Errorf("names no bucket: %s://BUCKET", u.Scheme)
	case u.Fragment != "":
		return a, errors.New("has a fragment (#...) in it")
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		a.Prefix = prefix + "/"
	}
	for _, name := range slices.Sorted(maps.Keys(a.query)) {
		if !slices.Contains(known, name) {
			return a, fmt.Errorf("has the parameter %q; those of %s:// are %s", name, u.Scheme, strings.Join(known, ", "))
		}
		if len(a.query[name]) > 1 {
			return a, fmt.Errorf("has the parameter %q more than once", name)
		}
	}
	return a, a.check()
}

func (a Address) check() error {
	if endpoint := a.Endpoint(); endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return errors.New("has an endpoint that is not of the form https://HOST[:PORT]")
		}
	}
	if style := a.query.Get("pathStyle"); style != "" && style != "true" && style != "false" {
		return errors.New("has a pathStyle that is neither true nor false")
	}
	if a.Scheme == Azure && a.Account() == "" && a.Endpoint() == "" {
		return errors.New("names no storage account: azblob://CONTAINER?account=NAME")
	}
	return nil
}

// Region is that of S3; empty if the address has none.
func (a Address) Region() string { return a.query.Get("region") }

// Endpoint is where the service is; empty means where its cloud has it.
func (a Address) Endpoint() string { return a.query.Get("endpoint") }

// Account is the storage account of Azure; empty if the address has none.
func (a Address) Account() string { return a.query.Get("account") }

// PathStyle reports whether the bucket is part of the path and not of the host's name:
// elsewhere than at Amazon that is usual.
func (a Address) PathStyle() bool {
	if style := a.query.Get("pathStyle"); style != "" {
		return style == "true"
	}
	return a.Endpoint() != ""
}

// String is the bucket as errors name it.
func (a Address) String() string {
	return strings.TrimSuffix(a.Scheme+"://"+a.Bucket+"/"+a.Prefix, "/")
}
