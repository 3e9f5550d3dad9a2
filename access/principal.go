package access

import "strings"

// PersonID says who somebody is, forever: by an issuer of OpenID Connect tokens and the
// subject there, or by a code host and the numeric id there. Names can change hands.
type PersonID struct {
	Issuer  string `json:"issuer"`  // the issuer's URL, or "forge:" and the code host's name
	Subject string `json:"subject"` // as the issuer writes it
}

const forgePrefix = "forge:"

// ForgePerson is somebody on a code host, by the numeric id there.
func ForgePerson(forge, id string) PersonID {
	return PersonID{Issuer: forgePrefix + forge, Subject: id}
}

// IsZero reports whether it is nobody.
func (p PersonID) IsZero() bool { return p == PersonID{} }

// Forge is the code host that knows the person by the subject; empty: it is an issuer.
func (p PersonID) Forge() string {
	forge, ok := strings.CutPrefix(p.Issuer, forgePrefix)
	if !ok {
		return ""
	}
	return forge
}

// String is one text for both; an issuer has no space.
func (p PersonID) String() string { return p.Issuer + " " + p.Subject }

// ParsePersonID is the reverse of String.
func ParsePersonID(text string) PersonID {
	issuer, subject, _ := strings.Cut(text, " ")
	return PersonID{Issuer: issuer, Subject: subject}
}

// Via is the kind of credential that somebody has shown.
type Via string

// The kinds of credentials that people and tools show.
const (
	ViaToken    Via = "token"    // one of the configuration
	ViaPersonal Via = "personal" // a token that a person has made
	ViaSession  Via = "session"  // the cookie of a login
)

// Principal is the caller.
type Principal struct {
	Name   string   // the actor in the audit trail
	Person PersonID // zero: a token of the configuration, which is nobody's
	Grants Grants
	Via    Via
	// ID is what was shown, without what is secret of it: the name of a token, the id of a
	// session or of a personal token.
	ID string
}

// IsZero reports whether there is no caller.
func (p Principal) IsZero() bool { return p.Via == "" }

// Owner is one text for whoever asks, as in Owner.Key of the tokens that the caller
// makes.
func (p Principal) Owner() string {
	if p.Person.IsZero() {
		return Owner{Token: p.Name}.Key()
	}
	return p.Person.String()
}

// May reports whether a verb is allowed in a project.
func (p Principal) May(verb Verb, project string) bool { return p.Grants.May(verb, project) }

// Same reports whether both are who they were, with the same roles: what was begun for one
// may continue for the other.
func (p Principal) Same(other Principal) bool {
	return p.Via == other.Via && p.ID == other.ID && p.Person == other.Person && p.Grants.Equal(other.Grants)
}
