package server

// Lists, a part at a time: limit, cursor and fields.

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

const (
	// unsaidItems is how many items a part of a list has by default.
	unsaidItems = 100
	// maxItems bounds what one answer lists.
	maxItems = 1000
	// maxLines is maxItems of lists whose items are small.
	maxLines = 10_000
)

// page is which part of a list is asked for.
type page struct {
	limit  int
	after  []string // the key of the last item that the client has; nil: none
	fields []string // of the items; nil: all
}

// pageOf reads limit and cursor. A key has size parts.
func pageOf(c *gin.Context, unsaid, most, size int) (page, error) {
	limit, err := limitUpTo(c, unsaid, most)
	if err != nil {
		return page{}, err
	}
	p := page{limit: limit}
	cursor := c.Query("cursor")
	if cursor == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(data, &p.after) != nil || len(p.after) != size || next(p.after...) != cursor {
		return page{}, badRequest("cursor %.40q was not issued by this list", cursor)
	}
	return p, nil
}

// pageWithFields is pageOf of a list whose items, each a T, can be had in part.
func pageWithFields[T any](c *gin.Context, unsaid, most, size int) (page, error) {
	p, err := pageOf(c, unsaid, most, size)
	if err == nil {
		p.fields, err = fieldsOf[T](c)
	}
	return p, err
}

// part and number are parts of the key; zero values if there is none.
func (p page) part(i int) string {
	if p.after == nil {
		return ""
	}
	return p.after[i]
}

func (p page) number(i int) (int64, error) {
	if p.after == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.after[i], 10, 64)
	if err != nil {
		return 0, badRequest("cursor was not issued by this list")
	}
	return n, nil
}

// place is number where it counts items: there are none before the first.
func (p page) place() (int64, error) {
	n, err := p.number(0)
	if n < 0 {
		err = badRequest("cursor was not issued by this list")
	}
	return n, err
}

// next returns the cursor after an item, given its key.
func next(key ...string) string {
	data, _ := json.Marshal(key) // texts: cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// full returns the cursor after the last of items, empty if the list has no more: a part
// that is not full is the last one.
func full[T any](p page, items []T, key func(T) []string) string {
	if len(items) < p.limit || len(items) == 0 {
		return ""
	}
	return next(key(items[len(items)-1])...)
}

// cut returns the part of a list that is known whole and sorted by its keys.
func cut[T any](p page, items []T, key func(T) []string) (part []T, cursor string) {
	if p.after != nil {
		i, found := slices.BinarySearchFunc(items, p.after, func(item T, after []string) int { return slices.Compare(key(item), after) })
		if found {
			i++
		}
		items = items[i:]
	}
	if len(items) <= p.limit {
		return items, ""
	}
	items = items[:p.limit]
	return items, next(key(items[len(items)-1])...)
}

// fieldsOf reads the parameter fields, which selects fields of T by their names.
func fieldsOf[T any](c *gin.Context) ([]string, error) {
	var fields []string
	for _, list := range c.QueryArray("fields") {
		for name := range strings.SplitSeq(list, ",") {
			if known := jsonNames(reflect.TypeFor[T]()); !slices.Contains(known, name) {
				return nil, badRequest("field %.40q: want some of %s", name, strings.Join(known, ", "))
			}
			fields = append(fields, name)
		}
	}
	return fields, nil
}

// jsonNames are the fields that a struct has in JSON.
func jsonNames(t reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// selected keeps some fields of an item.
func selected(item any, fields []string) (any, error) {
	if len(fields) == 0 {
		return item, nil
	}
	data, err := json.Marshal(item)
	if err != nil {
		return nil, err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	for name := range whole {
		if !slices.Contains(fields, name) {
			delete(whole, name)
		}
	}
	return whole, nil
}

// answerList answers with items, as show says them, or with why there are none. It
// writes while it encodes: a fleet's records together are large.
func answerList[T, Shown any](s *base, c *gin.Context, p page, items []T, show func(T) Shown, cursor string, err error) {
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Content-Type", "application/json; charset=utf-8")
	c.Status(http.StatusOK)
	out := bufio.NewWriterSize(c.Writer, 64<<10)
	encoder := json.NewEncoder(out)
	_, _ = out.WriteString(`{"items":[`) // "items": null surprises clients
	for i := range items {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		var item any
		if item, err = selected(show(items[i]), p.fields); err == nil {
			err = encoder.Encode(item)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		_, _ = out.WriteString("]")
		if cursor != "" {
			_, _ = out.WriteString(`,"next":"` + cursor + `"`) // of base64url: nothing to quote
		}
		_, _ = out.WriteString("}")
		err = out.Flush() // as all writes before it that failed
	}
	if err != nil {
		s.log.WarnContext(c.Request.Context(), "cut an answer off", "path", c.Request.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // see send
	}
}

func limitUpTo(c *gin.Context, unsaid, most int) (int, error) {
	text := c.Query("limit")
	if text == "" {
		return unsaid, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, badRequest("limit %q: want 1 to %d", text, most)
	}
	return limit, nil
}
