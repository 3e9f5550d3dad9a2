package datastore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/datastore"
)

func newSession(n int, person access.PersonID) access.Session {
	at := noon.Add(time.Duration(n) * time.Second).UTC()
	return access.Session{
		ID: fmt.Sprintf("ses-%03d", n), Hash: access.HashOf(fmt.Sprint("cookie ", n)), Person: person, Name: "anna",
		CreatedAt: at, RotatedAt: at, SeenAt: at, ExpiresAt: at.Add(time.Hour), From: "192.0.2.7", Agent: "a browser",
	}
}

func testSessions(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	anna, otto := access.PersonID{Issuer: "https://id.example.com", Subject: "42"}, access.PersonID{Issuer: "https://id.example.com", Subject: "43"}
	first, second := newSession(1, anna), newSession(2, otto)
	second.Person, second.Token, second.TokenHash = access.PersonID{}, "ci", access.HashOf("token")
	for _, s := range []access.Session{first, second} {
		if err := store.AddSession(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string]access.Session{
		"by hash": must[access.Session](t)(store.Session(ctx, "", first.Hash)),
		"by id":   must[access.Session](t)(store.Session(ctx, first.ID, access.Hash{})),
	} {
		if diff := differ(first, got); diff != "" {
			t.Errorf("Session() %s (-want +got):\n%s", name, diff)
		}
	}
	if got := must[access.Session](t)(store.Session(ctx, "", second.Hash)); got.TokenHash != second.TokenHash || got.Token != "ci" {
		t.Errorf("Session() = %+v", got)
	}
	if _, err := store.Session(ctx, "", access.HashOf("cookie")); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Session() of a guess = %v, want ErrNotFound", err)
	}
	if _, err := store.Session(ctx, "", access.Hash{}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Session() of nothing = %v, want ErrNotFound", err)
	}
	rotated := first
	rotated.Former, rotated.Hash, rotated.RotatedAt = first.Hash, access.HashOf("next"), noon.Add(time.Minute).UTC()
	if err := store.SaveSession(ctx, rotated, first.Hash); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveSession(ctx, rotated, first.Hash); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a second rotation from the same id = %v, want ErrConflict", err)
	}
	for _, hash := range []access.Hash{rotated.Hash, rotated.Former} {
		if got := must[access.Session](t)(store.Session(ctx, "", hash)); got.ID != first.ID || !got.RotatedAt.Equal(rotated.RotatedAt) {
			t.Errorf("Session() after a rotation = %+v", got)
		}
	}
	if list := must[[]access.Session](t)(store.Sessions(ctx, anna)); len(list) != 1 || list[0].ID != first.ID {
		t.Errorf("Sessions() of one = %+v", list)
	}
	if list := must[[]access.Session](t)(store.Sessions(ctx, access.PersonID{})); len(list) != 2 || list[0].ID != second.ID {
		t.Errorf("Sessions() = %+v", list)
	}
	for range 2 {
		if err := store.EndSession(ctx, first.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Session(ctx, "", rotated.Hash); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Session() after its end = %v, want ErrNotFound", err)
	}
}

// testSessionsEnd: a login forgets what is over, and the oldest of who has very many.
func testSessionsEnd(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	anna := access.PersonID{Issuer: "https://id.example.com", Subject: "42"}
	over := newSession(0, access.PersonID{Issuer: "https://id.example.com", Subject: "43"})
	over.ExpiresAt = noon.Add(-time.Second).UTC()
	if err := store.AddSession(ctx, over); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 53; n++ {
		if err := store.AddSession(ctx, newSession(n, anna)); err != nil {
			t.Fatal(err)
		}
	}
	list := must[[]access.Session](t)(store.Sessions(ctx, access.PersonID{}))
	if len(list) != 50 || list[0].ID != "ses-053" || list[49].ID != "ses-004" {
		t.Errorf("there are %d sessions", len(list))
	}
}

func testPeople(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	id := access.PersonID{Issuer: "https://id.example.com", Subject: "a b/c"}
	if _, err := store.Person(ctx, id); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Person() of a stranger = %v, want ErrNotFound", err)
	}
	anna := access.Person{ID: id, Name: "anna", Groups: []string{"platform", "on call"}, SeenAt: noon.UTC()}
	if err := store.SavePerson(ctx, anna); err != nil {
		t.Fatal(err)
	}
	anna.Groups, anna.SeenAt = []string{"platform"}, noon.Add(time.Hour).UTC()
	if err := store.SavePerson(ctx, anna); err != nil {
		t.Fatal(err)
	}
	account, other := access.ForgePerson("acme", "7"), access.PersonID{Issuer: id.Issuer, Subject: "2"}
	for _, person := range []access.PersonID{other, id} {
		if err := store.AddLink(ctx, person, account); err != nil {
			t.Fatal(err)
		}
	}
	anna.Links = []access.PersonID{account}
	if diff := differ(anna, must[access.Person](t)(store.Person(ctx, id))); diff != "" {
		t.Errorf("Person() (-want +got):\n%s", diff)
	}
	if err := store.SavePerson(ctx, access.Person{ID: other, Name: "otto"}); err != nil {
		t.Fatal(err)
	}
	if got := must[access.Person](t)(store.Person(ctx, other)); len(got.Links) > 0 {
		t.Errorf("the account is still another's: %+v", got)
	}
}

// testRotationAtOnce: of several that rotate a session, one does.
func testRotationAtOnce(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	session := newSession(1, access.PersonID{Issuer: "https://id.example.com", Subject: "42"})
	if err := store.AddSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	const many = 8
	for n := range many {
		go func(store *datastore.Store) {
			next := session
			next.Former, next.Hash = session.Hash, access.HashOf(fmt.Sprint("next ", n))
			done <- store.SaveSession(ctx, next, session.Hash)
		}(store)
	}
	rotated := 0
	for range many {
		if err := <-done; err == nil {
			rotated++
		} else if !errors.Is(err, holdfast.ErrConflict) {
			t.Error(err)
		}
	}
	if rotated != 1 {
		t.Errorf("%d have rotated it", rotated)
	}
}

func testRequesters(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	ref := holdfast.PullRequestRef{Repo: "shop", Number: 7}
	for _, owner := range []string{"https://id.example.com 42", "token ci", "token ci"} {
		if err := store.AddRequester(ctx, ref, owner); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differ([]string{"https://id.example.com 42", "token ci"}, must[[]string](t)(store.Requesters(ctx, ref))); diff != "" {
		t.Errorf("Requesters() (-want +got):\n%s", diff)
	}
	if got := must[[]string](t)(store.Requesters(ctx, holdfast.PullRequestRef{Repo: "shop", Number: 8})); len(got) > 0 {
		t.Errorf("Requesters() of another one = %v", got)
	}
}
