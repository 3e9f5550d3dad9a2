package money_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cost/money"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0.0960000000": "0.096", "1.5e-05": "0.000015", "10": "10", "0": "0", "-3.50": "-3.5", ".5": "0.5", "1E2": "100",
	} {
		if got, err := money.Parse(text); err != nil || got.String() != want {
			t.Errorf("Parse(%q) = %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "1e999999999", "1e100", "NaN", "Inf", "1,5", "0x10", "1_000", " 1", "١", "1e", "--1", strings.Repeat("1", 401)} {
		if got, err := money.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %s", text, got)
		}
	}
}

// What floats get wrong is right.
func TestExact(t *testing.T) {
	t.Parallel()
	sum := money.Amount{}
	for range 10 {
		sum = sum.Add(money.MustParse("0.1"))
	}
	if sum.Cmp(money.Of(1)) != 0 {
		t.Errorf("ten times 0.1 is %s", sum)
	}
	if got := money.MustParse("0.0225").Mul(money.Of(730)).String(); got != "16.425" {
		t.Errorf("0.0225 × 730 is %s", got)
	}
	if got := money.MustParse("100").Sub(money.Of(100).Percent(money.MustParse("12.5"))).String(); got != "87.5" {
		t.Errorf("100 less 12.5 percent is %s", got)
	}
	if got := money.Nanos(1, 38_074_000).String(); got != "1.038074" {
		t.Errorf("1 and 38,074,000 nanos is %s", got)
	}
	if got := money.MustParse("16.425").Round(2).String() + " " + money.MustParse("-16.425").Round(2).String(); got != "16.43 -16.43" {
		t.Errorf("rounded: %s", got)
	}
}
