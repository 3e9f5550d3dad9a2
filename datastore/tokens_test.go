package datastore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

func newPersonalToken(n int, owner access.Owner) access.PersonalToken {
	at := noon.Add(time.Duration(n) * time.Second).UTC()
	return access.PersonalToken{
		ID: fmt.Sprintf("tok-%03d", n), Hash: access.HashOf(fmt.Sprint("token ", n)), CreatedAt: at, ExpiresAt: at.Add(time.Hour),
		Owner: owner, Name: "script", Limit: access.Limit{Role: access.Viewer, Projects: []string{"web"}}, From: "192.0.2.7",
	}
}

func testPersonalTokens(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	anna := access.Owner{Person: access.PersonID{Issuer: "https://id.example.com", Subject: "42"}, Name: "anna"}
	ci := access.Owner{Token: "ci", Name: "ci", TokenHash: access.HashOf("x")}
	over := newPersonalToken(0, anna)
	over.ExpiresAt = noon.Add(-time.Second).UTC()
	first, second := newPersonalToken(1, anna), newPersonalToken(2, ci)
	for _, token := range []access.PersonalToken{over, first, second} {
		if err := store.AddPersonalToken(ctx, token); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differ(first, must[access.PersonalToken](t)(store.PersonalToken(ctx, first.Hash))); diff != "" {
		t.Errorf("PersonalToken() (-want +got):\n%s", diff)
	}
	for name, hash := range map[string]access.Hash{"a guess": access.HashOf("token"), "one that was over": over.Hash, "nothing": {}} {
		if _, err := store.PersonalToken(ctx, hash); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("PersonalToken() of %s = %v, want ErrNotFound", name, err)
		}
	}
	used := noon.Add(time.Minute).UTC()
	for _, at := range []time.Time{used, noon} { // an older use changes nothing
		if err := store.SeePersonalToken(ctx, first.ID, at); err != nil {
			t.Fatal(err)
		}
	}
	first.SeenAt = used
	if diff := differ([]access.PersonalToken{first}, must[[]access.PersonalToken](t)(store.PersonalTokens(ctx, anna.Key()))); diff != "" {
		t.Errorf("PersonalTokens() of one (-want +got):\n%s", diff)
	}
	if diff := differ([]access.PersonalToken{second, first}, must[[]access.PersonalToken](t)(store.PersonalTokens(ctx, ""))); diff != "" {
		t.Errorf("PersonalTokens() (-want +got):\n%s", diff)
	}
	if err := store.DeletePersonalToken(ctx, first.ID, ci.Key()); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("DeletePersonalToken() of another's = %v, want ErrNotFound", err)
	}
	for id, owner := range map[string]string{first.ID: anna.Key(), second.ID: ""} {
		if err := store.DeletePersonalToken(ctx, id, owner); err != nil {
			t.Errorf("DeletePersonalToken() = %v", err)
		}
	}
	for n := range 50 {
		if err := store.AddPersonalToken(ctx, newPersonalToken(100+n, anna)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.AddPersonalToken(ctx, newPersonalToken(200, anna)); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("one more than 50 = %v, want ErrConflict", err)
	}
}

func testLoginRequests(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	anna := access.Owner{Person: access.PersonID{Issuer: "https://id.example.com", Subject: "42"}, Name: "anna"}
	over := access.LoginRequest{Secret: access.HashOf("over"), ExpiresAt: noon.Add(-time.Second).UTC()}
	asked := access.LoginRequest{
		Secret: access.HashOf("secret"), Code: access.HashOf("code"), ExpiresAt: noon.Add(time.Minute).UTC(),
		Challenge: "c", Name: "laptop", Limit: access.Limit{Role: access.Viewer}, Lifetime: time.Hour, From: "192.0.2.7",
	}
	for _, r := range []access.LoginRequest{over, asked} {
		if err := store.AddLoginRequest(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	asked.Version = 1
	for _, hash := range []access.Hash{asked.Secret, asked.Code} {
		if diff := differ(asked, must[access.LoginRequest](t)(store.LoginRequest(ctx, hash))); diff != "" {
			t.Errorf("LoginRequest() (-want +got):\n%s", diff)
		}
	}
	for name, hash := range map[string]access.Hash{"a guess": access.HashOf("x"), "one that is over": over.Secret, "nothing": {}} {
		if _, err := store.LoginRequest(ctx, hash); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("LoginRequest() of %s = %v, want ErrNotFound", name, err)
		}
	}
	allowed := asked
	allowed.Owner = &anna
	if err := store.AnswerLogin(ctx, allowed); err != nil {
		t.Fatal(err)
	}
	if err := store.AnswerLogin(ctx, allowed); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a second answer = %v, want ErrConflict", err)
	}
	got := must[access.LoginRequest](t)(store.LoginRequest(ctx, asked.Secret))
	if got.Owner == nil || *got.Owner != anna || got.Version != 2 {
		t.Errorf("LoginRequest() = %+v", got)
	}
	if err := store.FinishLogin(ctx, got, newPersonalToken(1, anna)); err != nil {
		t.Fatal(err)
	}
	if err := store.FinishLogin(ctx, got, newPersonalToken(2, anna)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a second exchange = %v, want ErrNotFound", err)
	}
	if list := must[[]access.PersonalToken](t)(store.PersonalTokens(ctx, anna.Key())); len(list) != 1 || list[0].ID != "tok-001" {
		t.Errorf("PersonalTokens() = %+v", list)
	}
}
