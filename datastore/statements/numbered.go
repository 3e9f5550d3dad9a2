package statements

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// numberedQueries are those that were numbered before, by the query with "?".
var numberedQueries sync.Map

// limit is how a limit ends: PostgreSQL would take it for a number of 32 bits.
const limit = " + 0"

// numbered is a query with "$1" for its first "?", and so on. One in a text stays.
func numbered(query string) string {
	if known, ok := numberedQueries.Load(query); ok {
		return known.(string)
	}
	var b strings.Builder
	b.Grow(len(query) + 16)
	n, quoted := 0, false
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c == '?' && !quoted:
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			if strings.HasPrefix(query[i+1:], limit) {
				b.WriteString("::bigint")
				i += len(limit)
			}
		default:
			quoted = quoted != (c == '\'')
			b.WriteByte(c)
		}
	}
	if n <= maxParameters { // more are lists, of any length
		numberedQueries.Store(query, b.String())
	}
	return b.String()
}

// storable are arguments as PostgreSQL takes them: text without a zero byte, which it refuses,
// and in UTF-8. SQLite keeps both, and so do the people and engines whose words these are.
func storable(args []any) []any {
	copied := false
	for i, arg := range args {
		var text string
		switch arg := arg.(type) {
		case string:
			text = arg
		case []byte, int64, int, bool, nil, driver.Valuer:
			continue
		default:
			v := reflect.ValueOf(arg)
			if v.Kind() != reflect.String {
				continue
			}
			text = v.String()
		}
		kept := keptText(text)
		if _, plain := arg.(string); plain && kept == text {
			continue
		}
		if !copied {
			args, copied = append([]any(nil), args...), true
		}
		args[i] = kept
	}
	return args
}

func keptText(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}
