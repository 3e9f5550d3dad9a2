package datastore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func testIssuer(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if got := must[holdfast.Issuer](t)(store.Issuer(ctx)); got.URL != "" || len(got.Keys) != 0 || got.Now.IsZero() {
		t.Errorf("Issuer() of a new store = %+v", got)
	}
	none := holdfast.Issuer{}
	first, second := holdfast.Issuer{URL: "https://one.example.com"}, holdfast.Issuer{URL: "https://two.example.com", IssuedAt: noon}
	if err := store.SaveIssuer(ctx, none, first); err != nil {
		t.Fatal(err)
	}
	for name, was := range map[string]holdfast.Issuer{
		"nothing": none, "another URL": second, "another time": {URL: first.URL, IssuedAt: noon},
	} {
		if err := store.SaveIssuer(ctx, was, second); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("SaveIssuer() after %s = %v, want ErrConflict", name, err)
		}
	}
	if err := store.SaveIssuer(ctx, first, second); err != nil {
		t.Fatal(err)
	}
	keys := []holdfast.IssuerKey{
		{Number: 1, ID: "one", CreatedAt: noon, SignsFrom: noon, Private: []byte("secret one")},
		{Number: 2, ID: "two", CreatedAt: noon.Add(1), SignsFrom: noon.Add(time.Hour), Private: []byte("secret two")},
	}
	for _, key := range []holdfast.IssuerKey{keys[1], keys[0]} {
		if err := store.AddIssuerKey(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	got := must[holdfast.Issuer](t)(store.Issuer(ctx))
	want := second
	want.Keys, want.Now = keys, got.Now
	if diff := differ(want, got); diff != "" {
		t.Errorf("Issuer() (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := store.RemoveIssuerKey(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differ(keys[1:], must[holdfast.Issuer](t)(store.Issuer(ctx)).Keys); diff != "" {
		t.Errorf("keys after RemoveIssuerKey() (-want +got):\n%s", diff)
	}
}

// testIssuerAtOnce: of several that add the first key, one does.
func testIssuerAtOnce(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	var adders sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		adders.Go(func() {
			errs[i] = store.AddIssuerKey(ctx, holdfast.IssuerKey{
				Number: 1, ID: string(rune('a' + i)), CreatedAt: noon, SignsFrom: noon, Private: []byte{byte(i)},
			})
		})
	}
	adders.Wait()
	added := -1
	for i, err := range errs {
		switch {
		case err == nil && added < 0:
			added = i
		case !errors.Is(err, holdfast.ErrConflict):
			t.Errorf("AddIssuerKey() = %v, want ErrConflict", err)
		}
	}
	got := must[holdfast.Issuer](t)(store.Issuer(ctx)).Keys
	if added < 0 || len(got) != 1 || got[0].ID != string(rune('a'+added)) || got[0].Private[0] != byte(added) {
		t.Errorf("keys = %+v, want that of adder %d", got, added)
	}
}
