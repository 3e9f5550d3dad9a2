package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast/access"
)

// Token is a token of a person, without its secret.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`               // Its purpose, as its owner describes it.
	Owner      string    `json:"owner"`              // Who created it, as in the audit trail.
	Role       string    `json:"role"`               // The strongest that it allows. Its owner's may be weaker.
	Projects   []string  `json:"projects,omitempty"` // The projects that it is for; absent: all of its owner's.
	From       string    `json:"from"`               // The address from which it was requested.
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"` // To the hour; absent: never.
}

// TokenOf returns what the API says of a token.
func TokenOf(t access.PersonalToken) Token {
	return Token{
		ID: t.ID, Name: t.Name, Owner: t.Owner.Name, Role: string(t.Limit.Role), Projects: t.Limit.Projects, From: t.From,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, LastUsedAt: t.SeenAt,
	}
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name     string   `json:"name"`               // What it is for.
	Role     string   `json:"role"`               // The strongest that it allows.
	Projects []string `json:"projects,omitempty"` // The projects that it is for; absent: all of its owner's.
	Lifetime string   `json:"lifetime"`           // How long it lasts, such as "720h".
}

// NewToken is a token that was created, with the token itself, which is shown once.
type NewToken struct {
	Token
	Secret string `json:"secret"` // To be sent as a bearer token.
}

// TokensQuery is that of GET /tokens.
type TokensQuery struct {
	All bool `query:"all"` // Those of everybody; requires the verb revoke.
	PageQuery
}

// RevokeQuery is that of DELETE /tokens/{id} and DELETE /sessions/{id}.
type RevokeQuery struct {
	All bool `query:"all"` // Also that of somebody else; requires the verb revoke.
}

// Session is a login in a browser.
type Session struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`    // Who logged in, as in the audit trail.
	From      string    `json:"from"`    // The address of the login.
	Browser   string    `json:"browser"` // As it has said at the login.
	CreatedAt time.Time `json:"createdAt"`
	SeenAt    time.Time `json:"seenAt"` // To the minute.
	ExpiresAt time.Time `json:"expiresAt"`
}

// SessionOf returns what the API says of a session.
func SessionOf(s access.Session) Session {
	return Session{ID: s.ID, Name: s.Name, From: s.From, Browser: s.Agent, CreatedAt: s.CreatedAt, SeenAt: s.SeenAt, ExpiresAt: s.ExpiresAt}
}

// OnceLogin is a page of the console that begins a session, once.
type OnceLogin struct {
	Path  string    `json:"path"` // With the code; below the address of the API.
	Until time.Time `json:"until"`
}
