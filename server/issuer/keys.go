package issuer

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

const keyBits = 2048 // what all clouds take

// afterLast is how long a key stays published after the last token that it can have signed
// has ended: clocks differ, and a lifetime may have been longer before.
const afterLast = 24 * time.Hour

// ring is the keys as they were read last.
type ring struct {
	keys   []key // by number
	readAt time.Time
	clock  time.Time // of the records at readAt
}

type key struct {
	holdfast.IssuerKey
	private *rsa.PrivateKey
	public  jwk
}

// now is the time by the clock of the records, whatever this machine's clock says.
func (r *ring) now() time.Time { return r.clock.Add(time.Since(r.readAt)) }

// Refresh reads the keys, and makes the next one or drops the oldest one if it is time.
func (i *Issuer) Refresh(ctx context.Context) error {
	for {
		before := time.Now()
		record, err := i.opts.Store.Issuer(ctx)
		if err != nil {
			return err
		}
		// Time since the database's answer is not added: it is better if a key signs
		// too late.
		next, old := schedule(record.Keys, record.Now, i.opts.Times)
		if next == nil {
			record.Keys = slices.DeleteFunc(record.Keys, func(k holdfast.IssuerKey) bool { return slices.Contains(old, k.Number) })
			r, err := i.open(record, before)
			if err != nil {
				return err
			}
			i.ring.Store(r)
			return i.drop(ctx, old)
		}
		if next.Private, next.ID, err = newKey(); err != nil {
			return err
		}
		switch err := i.opts.Store.AddIssuerKey(ctx, *next); {
		case err == nil:
			i.opts.Logger.InfoContext(ctx, "key of the issuer was made", "key", next.ID, "from", next.SignsFrom)
		case !errors.Is(err, holdfast.ErrConflict): // another replica has made it
			return err
		}
	}
}

// schedule says which key is to be made now, if any, and which are no longer needed.
func schedule(keys []holdfast.IssuerKey, now time.Time, times Times) (next *holdfast.IssuerKey, old []int64) {
	if len(keys) == 0 { // nobody has read the keys to whom it would have to be announced
		return &holdfast.IssuerKey{Number: 1, CreatedAt: now, SignsFrom: now}, nil
	}
	last := keys[len(keys)-1]
	if due := last.SignsFrom.Add(times.Rotate); times.Rotate > 0 && !now.Before(due.Add(-times.Announce)) {
		return &holdfast.IssuerKey{
			Number: last.Number + 1, CreatedAt: now, SignsFrom: later(due, now.Add(times.Announce)),
		}, nil
	}
	for i, k := range keys[:len(keys)-1] {
		if now.After(keys[i+1].SignsFrom.Add(times.Token + afterLast)) {
			old = append(old, k.Number)
		}
	}
	return nil, old
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (i *Issuer) drop(ctx context.Context, numbers []int64) error {
	for _, number := range numbers {
		if err := i.opts.Store.RemoveIssuerKey(ctx, number); err != nil {
			return err
		}
		i.opts.Logger.InfoContext(ctx, "former key of the issuer was dropped", "key", number)
	}
	return nil
}

// open decodes what was read. Keys that are known are taken over.
func (i *Issuer) open(record holdfast.Issuer, readAt time.Time) (*ring, error) {
	r := &ring{readAt: readAt, clock: record.Now}
	former := i.ring.Load()
	for _, k := range record.Keys {
		if former != nil {
			at := slices.IndexFunc(former.keys, func(f key) bool { return f.Number == k.Number && f.ID == k.ID })
			if at >= 0 {
				r.keys = append(r.keys, former.keys[at])
				continue
			}
		}
		parsed, err := x509.ParsePKCS8PrivateKey(k.Private)
		private, ok := parsed.(*rsa.PrivateKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("key %s of the issuer is not an RSA key: %w", k.ID, cmp.Or(err, errors.ErrUnsupported))
		}
		r.keys = append(r.keys, key{IssuerKey: k, private: private, public: publicKey(k.ID, &private.PublicKey)})
	}
	return r, nil
}

func publicKey(id string, public *rsa.PublicKey) jwk {
	return jwk{
		KeyType: "RSA", Use: "sig", Algorithm: "RS256", ID: id,
		N: encode(public.N.Bytes()), E: encode(big.NewInt(int64(public.E)).Bytes()),
	}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// newKey makes a key, whose name is the digest of its public part.
func newKey() (private []byte, id string, err error) {
	k, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, "", fmt.Errorf("make key of the issuer: %w", err)
	}
	if private, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
		return nil, "", fmt.Errorf("make key of the issuer: %w", err)
	}
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&k.PublicKey))
	return private, encode(sum[:16]), nil
}

// published are the public parts of all keys, those that sign later included.
func (r *ring) published() []jwk {
	list := make([]jwk, len(r.keys))
	for i, k := range r.keys {
		list[i] = k.public
	}
	return list
}

// sign makes a token of claims with the key whose time it is.
func (r *ring) sign(said claims.Claims, now time.Time) (string, error) {
	at := -1
	for i, k := range r.keys {
		if !now.Before(k.SignsFrom) {
			at = i
		}
	}
	if at < 0 {
		return "", errors.New("no key signs yet: the clock of the records was set back")
	}
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": r.keys[at].ID})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(said)
	if err != nil {
		return "", err
	}
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, r.keys[at].private, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return text + "." + encode(signature), nil
}
