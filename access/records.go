package access

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Hash is what is kept of a secret that is random and long, so that it cannot be guessed
// back.
type Hash [sha256.Size]byte

// HashOf returns what is kept of a secret.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Person is the record of somebody who has logged in.
type Person struct {
	ID     PersonID  `json:"id"`
	Name   string    `json:"name"` // as at the last login
	Groups []string  `json:"groups,omitempty"`
	SeenAt time.Time `json:"seenAt"` // the last login
	// Links are who else the person is, such as (forge, id): a login there said so.
	Links []PersonID `json:"links,omitempty"`
}

// Session is a login in a browser.
type Session struct {
	ID   string `json:"id"` // names it in lists and in the audit trail; proves nothing
	Hash Hash   `json:"-"`  // of what the cookie has
	// Former is the hash before the last rotation. What was sent before the answer with the
	// new cookie came still shows the former one.
	Former    Hash      `json:"-"`
	RotatedAt time.Time `json:"-"`
	SeenAt    time.Time `json:"-"` // not every request is recorded
	CreatedAt time.Time `json:"-"`
	ExpiresAt time.Time `json:"-"` // whatever is done with it

	Person PersonID `json:"person"` // zero: Token was exchanged for it
	Name   string   `json:"name"`
	// Token and TokenHash are those of the configuration's token that was exchanged, with a
	// hash of its hash: the session ends with that token.
	Token     string `json:"token,omitempty"`
	TokenHash Hash   `json:"tokenHash,omitzero"`
	From      string `json:"from"`  // the address of the login
	Agent     string `json:"agent"` // the browser of the login
}

// Owner is whose a personal token is: a person's, or that of a token of the configuration.
type Owner struct {
	Person    PersonID `json:"person,omitzero"` // zero: Token
	Name      string   `json:"name"`
	Token     string   `json:"token,omitempty"`
	TokenHash Hash     `json:"tokenHash,omitzero"` // a hash of its hash: what it owns ends with it
}

// Key is one text that identifies the owner.
func (o Owner) Key() string {
	if o.Person.IsZero() {
		return "token " + o.Token
	}
	return o.Person.String()
}

// Limit is what a personal token allows: no more than its owner may do.
type Limit struct {
	Role     Role     `json:"role"`
	Projects []string `json:"projects,omitempty"` // none: all of the owner's
}

// Grants is the limit as roles by project.
func (l Limit) Grants() Grants { return GrantsOf(l.Role, l.Projects...) }

// PersonalToken is a token that somebody has made for a command line or a script.
type PersonalToken struct {
	ID        string    `json:"id"` // names it in lists and in the audit trail; proves nothing
	Hash      Hash      `json:"-"`
	CreatedAt time.Time `json:"-"`
	ExpiresAt time.Time `json:"-"`
	SeenAt    time.Time `json:"-"` // zero: never; not every request is recorded

	Owner Owner  `json:"owner"`
	Name  string `json:"name"` // what it is for, in its owner's words
	Limit Limit  `json:"limit"`
	From  string `json:"from"` // the address that it was asked for from
}

// Wish describes a token that somebody asks for.
type Wish struct {
	Name     string
	Limit    Limit
	Lifetime time.Duration
	From     string // the address
}

// LoginRequest is a command line that asks to be logged in.
type LoginRequest struct {
	Secret    Hash      `json:"-"` // of what the command line shows to get its token
	Code      Hash      `json:"-"` // of what a person types; zero: the person's browser leads back to the command line
	ExpiresAt time.Time `json:"-"`
	Version   int64     `json:"-"` // as it was read

	Challenge string        `json:"challenge"` // SHA-256 of the verifier that the command line shows, base64url
	Name      string        `json:"name"`      // of the machine, as it says
	Limit     Limit         `json:"limit"`
	Lifetime  time.Duration `json:"lifetime"`        // of the token
	From      string        `json:"from"`            // the address of the command line
	Owner     *Owner        `json:"owner,omitempty"` // who has allowed it; nil: nobody yet
	Denied    bool          `json:"denied,omitempty"`
}
