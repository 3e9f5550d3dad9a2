package lineage

import "testing"

func TestSlip(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"prod", "prdo", true},
		{"prod", "prod-", true},
		{"prod-eu", "prd-eu", true},
		{"prod-eu", "prof-eu", true},
		{"prod-eu", "prodeu", true},
		{"prod-eu", "prod-us", false},
		{"shop-01", "shop-02", false},
		{"shop1", "shop2", false},
		{"web-a", "web-b", false},
		{"eu-west", "eu-east", false},
		{"prod-west", "prdo-wset", false},
		{"prod", "live", false},
	} {
		if got := slip(tc.a, tc.b); got != tc.want {
			t.Errorf("slip(%q, %q) = %t", tc.a, tc.b, got)
		}
	}
}
