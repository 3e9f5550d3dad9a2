package money

import (
	"errors"
	"regexp"

	"github.com/shopspring/decimal"
)

// Amount is a decimal number. The zero value is 0.
type Amount struct{ d decimal.Decimal }

// maxDigits bounds how an amount is written: no sum of prices needs more, and a number such as
// 1e999999999 takes the memory of all its digits.
const maxDigits = 400

var written = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?$`)

// Parse reads a number as people and JSON write it, such as 0.0960000000 or 1.5e-05.
func Parse(text string) (Amount, error) {
	if len(text) > maxDigits || !written.MatchString(text) {
		return Amount{}, errors.New("not a decimal number")
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return Amount{}, errors.New("not a decimal number")
	}
	return Amount{d}, nil
}

// MustParse is Parse for constants.
func MustParse(text string) Amount {
	a, err := Parse(text)
	if err != nil {
		panic(err.Error() + ": " + text)
	}
	return a
}

// Of is a whole number.
func Of(n int64) Amount { return Amount{decimal.NewFromInt(n)} }

// Nanos is units and billionths of a unit.
func Nanos(units, nanos int64) Amount {
	return Amount{decimal.NewFromInt(units).Add(decimal.New(nanos, -9))}
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount { return Amount{a.d.Add(b.d)} }

// Sub returns the difference.
func (a Amount) Sub(b Amount) Amount { return Amount{a.d.Sub(b.d)} }

// Mul returns the product.
func (a Amount) Mul(b Amount) Amount { return Amount{a.d.Mul(b.d)} }

// Percent returns that many hundredths of the amount.
func (a Amount) Percent(p Amount) Amount { return Amount{a.d.Mul(p.d).Shift(-2)} }

// Neg returns the amount with the other sign.
func (a Amount) Neg() Amount { return Amount{a.d.Neg()} }

// Cmp is negative if a is less than b, and positive if it is more.
func (a Amount) Cmp(b Amount) int { return a.d.Cmp(b.d) }

// Sign is -1, 0 or 1.
func (a Amount) Sign() int { return a.d.Sign() }

// IsZero reports whether the amount is 0.
func (a Amount) IsZero() bool { return a.d.IsZero() }

// Int returns a whole number, and whether the amount is one that fits.
func (a Amount) Int() (int64, bool) {
	if !a.d.IsInteger() || a.d.Abs().GreaterThan(decimal.New(1, 15)) {
		return 0, false
	}
	return a.d.IntPart(), true
}

// Round returns the amount with that many digits after the point: what is just between
// two goes away from zero.
func (a Amount) Round(places int32) Amount { return Amount{a.d.Round(places)} }

// String returns the amount without trailing zeros, such as 0.096.
func (a Amount) String() string { return a.d.String() }

// MarshalText implements encoding.TextMarshaler.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = Parse(string(text))
	return err
}

// Min returns the lesser amount.
func Min(a, b Amount) Amount {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// Max returns the greater amount.
func Max(a, b Amount) Amount {
	if b.Cmp(a) > 0 {
		return b
	}
	return a
}
