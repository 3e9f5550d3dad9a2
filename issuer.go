package holdfast

import "time"

// Issuer is what is on record of the issuer of tokens.
type Issuer struct {
	URL      string    // empty: there was none yet
	IssuedAt time.Time // when the first token was issued with that URL; zero: none was
	Keys     []IssuerKey
	Now      time.Time // by the clock of the records, when they were read
}

// IssuerKey is a key that tokens are signed with.
type IssuerKey struct {
	Number    int64     // grows by one with each key
	ID        string    // names it in tokens
	CreatedAt time.Time // from then on it is published
	SignsFrom time.Time // until the next key signs
	Private   []byte    // PKCS #8
}
