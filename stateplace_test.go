package holdfast_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
)

// TestStoredStates: each state in a storage has its own key below the prefix, and a block with
// that and without credentials.
func TestStoredStates(t *testing.T) {
	t.Parallel()
	env := holdfast.EnvironmentKey{Project: "shop", Name: "production"}
	for name, c := range map[string]struct {
		storage holdfast.StateStorage
		n       int
		key     string
		want    map[string]any
	}{
		"s3": {
			storage: holdfast.StateStorage{Type: "s3", Bucket: "b", Region: "eu-central-1", Prefix: "states/"}, n: 1, key: "states/shop/production/prod.tfstate",
			want: map[string]any{"bucket": "b", "region": "eu-central-1", "key": "states/shop/production/prod.tfstate", "use_lockfile": true},
		},
		"s3, the second of that name": {
			storage: holdfast.StateStorage{Type: "s3", Bucket: "b"}, n: 2, key: "shop/production/prod~2.tfstate",
			want: map[string]any{"bucket": "b", "key": "shop/production/prod~2.tfstate", "use_lockfile": true},
		},
		"gcs": {
			storage: holdfast.StateStorage{Type: "gcs", Bucket: "b", Prefix: "eu"}, n: 1, key: "eu/shop/production/prod",
			want: map[string]any{"bucket": "b", "prefix": "eu/shop/production/prod"},
		},
		"azurerm": {
			storage: holdfast.StateStorage{Type: "azurerm", ResourceGroup: "rg", StorageAccount: "a", Container: "c"}, n: 1, key: "shop/production/prod.tfstate",
			want: map[string]any{"resource_group_name": "rg", "storage_account_name": "a", "container_name": "c", "key": "shop/production/prod.tfstate"},
		},
	} {
		stored := holdfast.StoredState{StateStorage: c.storage, Key: c.storage.KeyOf(env, "prod", c.n)}
		kind, arguments := stored.Backend()
		if diff := cmp.Diff(c.want, arguments); stored.Key != c.key || kind != c.storage.Type || diff != "" {
			t.Errorf("%s: the key is %q, and the arguments (-want +got):\n%s", name, stored.Key, diff)
		}
	}
	secrets := holdfast.StateStorage{Type: "kubernetes", Namespace: "states"}
	long := secrets.KeyOf(env, strings.Repeat("a", 62)+"-", 1)
	if key := secrets.KeyOf(env, "prod", 1); !strings.HasPrefix(key, "prod-h") || key == secrets.KeyOf(env, "prod", 2) || len(long) > 52 {
		t.Errorf("the Secrets of kubernetes end with %s and %s", key, long)
	}
	_, arguments := holdfast.StoredState{StateStorage: secrets, Key: "k", InCluster: true}.Backend()
	if diff := cmp.Diff(map[string]any{"namespace": "states", "secret_suffix": "k", "in_cluster_config": true}, arguments); diff != "" {
		t.Errorf("the arguments of kubernetes (-want +got):\n%s", diff)
	}
}

// TestSameStore: the way to a storage does not make it another one.
func TestSameStore(t *testing.T) {
	t.Parallel()
	one := &holdfast.StateStorage{Type: "s3", Bucket: "b", Region: "eu-west-1", Prefix: "eu/"}
	for name, c := range map[string]struct {
		other *holdfast.StateStorage
		want  bool
	}{
		"another region in words": {&holdfast.StateStorage{Type: "s3", Bucket: "b", Region: "eu-central-1", Prefix: "eu"}, true},
		"another bucket":          {&holdfast.StateStorage{Type: "s3", Bucket: "c", Prefix: "eu"}, false},
		"another prefix":          {&holdfast.StateStorage{Type: "s3", Bucket: "b", Prefix: "us"}, false},
		"another type":            {&holdfast.StateStorage{Type: "gcs", Bucket: "b", Prefix: "eu"}, false},
		"Holdfast's own":          {nil, false},
	} {
		stored := &holdfast.StoredState{StateStorage: *one}
		if one.SameStore(c.other) != c.want || c.other.SameStore(one) != c.want || stored.In(c.other) != c.want {
			t.Errorf("%s: it is the same: %t", name, !c.want)
		}
	}
	if none := (*holdfast.StoredState)(nil); !none.In(nil) || none.In(one) {
		t.Error("a state in Holdfast's own backend is elsewhere")
	}
}
