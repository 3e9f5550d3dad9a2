package plandoc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

const (
	// maxChanges bounds the resources and the outputs of a document.
	maxChanges = 200_000
	// maxAddress bounds addresses, names and paths: keys of for_each may be
	// long.
	maxAddress = 16 << 10
)

// Validate reports why d is not a document that an agent of this version could
// have made, or nil: an unknown version or action, lists that are not sorted or
// name something twice, a value that is not in its canonical encoding, more
// than 200,000 changes. No error quotes a value.
func (d Document) Validate() error {
	if d.Version != Version {
		return fmt.Errorf("plan document: version %d is not %d", d.Version, Version)
	}
	if len(d.Resources) > maxChanges || len(d.Outputs) > maxChanges {
		return fmt.Errorf("plan document: it has more than %d changes", maxChanges)
	}
	if err := validateResources(d.Resources); err != nil {
		return fmt.Errorf("plan document: %w", err)
	}
	for i, o := range d.Outputs {
		if i > 0 && d.Outputs[i-1].Name >= o.Name {
			return fmt.Errorf("plan document: output %q is given twice or out of order", o.Name)
		}
		if err := o.validate(); err != nil {
			return fmt.Errorf("plan document: output %q: %w", o.Name, err)
		}
	}
	if len(d.Reads) > maxChanges {
		return fmt.Errorf("plan document: it has more than %d reads", maxChanges)
	}
	for i, r := range d.Reads {
		if i > 0 && d.Reads[i-1].Address >= r.Address {
			return fmt.Errorf("plan document: what %q has read is given twice or out of order", r.Address)
		}
		if r.Address == "" || len(r.Address) > maxAddress || hasControl(r.Address) {
			return errors.New("plan document: the address of a read is empty, too long, or has control characters")
		}
		if _, err := r.Value.Tree(); err != nil {
			return fmt.Errorf("plan document: what %q has read: %w", r.Address, err)
		}
	}
	return nil
}

// Validate reports why i is not what an agent of this version could have made,
// or nil.
func (i Info) Validate() error {
	if len(i.Drift) > maxChanges {
		return fmt.Errorf("plan information: it has more than %d changes", maxChanges)
	}
	if err := validateResources(i.Drift); err != nil {
		return fmt.Errorf("plan information: drift: %w", err)
	}
	return nil
}

func validateResources(list []Resource) error {
	for i, r := range list {
		if i > 0 && list[i-1].Compare(r) >= 0 {
			return fmt.Errorf("%q is given twice or out of order", r.FullAddress())
		}
		if err := r.validate(); err != nil {
			return fmt.Errorf("%q: %w", r.FullAddress(), err)
		}
	}
	return nil
}

func (r Resource) validate() error {
	for _, name := range append([]string{r.Address, r.Deposed, r.Previous, r.Type, r.Provider, r.Reason}, r.Replace...) {
		if len(name) > maxAddress || hasControl(name) {
			return errors.New("a name is too long, or has control characters")
		}
	}
	action, _ := r.Action()
	switch {
	case r.Address == "" || r.Type == "":
		return errors.New("it has no address or no type")
	case !strings.Contains("."+r.Address, "."+r.Type+"."):
		return fmt.Errorf("it is not of the type %q", r.Type)
	case r.Previous == r.Address:
		return errors.New("it moves to where it is")
	case action == "":
		return fmt.Errorf("it has the unknown actions %q", strings.Join(r.Actions, ","))
	case !slices.IsSorted(r.Replace) || len(slices.Compact(slices.Clone(r.Replace))) != len(r.Replace):
		return errors.New("its replace paths are not sorted, or one is given twice")
	case action == holdfast.ActionCreate && r.Before != nil:
		return errors.New("it is created and was there before")
	case action == holdfast.ActionDelete && r.After != nil:
		return errors.New("it is deleted and is there after")
	}
	for _, value := range []Value{r.Importing, r.Before, r.After} {
		if _, err := value.Tree(); err != nil {
			return err
		}
	}
	return nil
}

func (o Output) validate() error {
	switch {
	case o.Name == "" || len(o.Name) > maxAddress || hasControl(o.Name):
		return errors.New("its name is empty, too long, or has control characters")
	case o.Action() == "":
		return fmt.Errorf("it has the unknown actions %q", strings.Join(o.Actions, ","))
	}
	for _, value := range []Value{o.Before, o.After} {
		if _, err := value.Tree(); err != nil {
			return err
		}
	}
	return nil
}

func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}
