package boundedhcl

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Bounds of what is parsed. They are far above what people write, or generate.
const (
	// MaxDepth bounds brackets, templates, directives and operators within one another.
	// A level takes at most 8 KB of stack when it is parsed, so that 8 MB are enough; the
	// stack of a goroutine overflows beyond 512 MB, with some 65,000 levels of "(".
	MaxDepth = 1_000
	// MaxTokens bounds the tokens of a file: each takes about 100 bytes, and what is parsed
	// from it two or three times that.
	MaxTokens = 3_000_000
	// maxBlind bounds what could be nested in code that does not follow the grammar. The
	// parser continues after an error in ways that are not followed here, and with fewer it
	// may go wherever it likes.
	maxBlind = 5_000
	// maxNumber bounds a number in its characters, and its exponent. The engines keep 512
	// bits of a number, and providers take 64 of them.
	maxNumber = 1_000
	// maxCopied bounds the bytes that the parser copies to join the lines of texts: for each
	// line it copies those before it.
	maxCopied = 10_000_000_000
	// maxErrors bounds the errors in texts that the parser collects one by one.
	maxErrors = 1_000
)

// ErrExcess says that code is more than is parsed, or evaluated.
var ErrExcess = errors.New("more than is read of code")

// Excess is an ErrExcess: what there is too much of, and in which line.
type Excess struct {
	Line int // zero: it is not known
	What string
}

func (e *Excess) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// Is makes every Excess an ErrExcess.
func (e *Excess) Is(target error) bool { return target == ErrExcess }

const (
	deep     = "expressions are nested deeper than 1,000 levels"
	many     = "file has more than 3,000,000 tokens"
	long     = "number has more than 1,000 digits"
	joined   = "texts have too many lines"
	broken   = "code does not follow the syntax of the language"
	mistaken = "more than 1,000 texts have invalid escape sequences"
)

// numberFits reports whether a number can be turned into a text that is not too long.
func numberFits(text []byte) bool {
	if len(text) > maxNumber {
		return false
	}
	at := bytes.IndexAny(text, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(string(bytes.TrimPrefix(text[at+1:], []byte("+"))))
	if errors.Is(err, strconv.ErrRange) {
		return false
	}
	return err != nil || exponent <= maxNumber && exponent >= -maxNumber // otherwise it is not a number
}
