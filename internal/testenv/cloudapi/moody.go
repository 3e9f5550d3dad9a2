package cloudapi

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Mood is how a cloud answers that is not well, or what is between it and its client.
type Mood string

// The moods.
const (
	Well      Mood = ""
	Page      Mood = "a page of somebody's, with success" // as of a captive portal
	BadPage   Mood = "a page of a gateway, without success"
	Nothing   Mood = "an empty object"
	NoText    Mood = "no text at all"
	Throttles Mood = "too many requests"
	Hangs     Mood = "nothing, until its client has gone"
)

// Moods are all but Well.
func Moods() []Mood { return []Mood{Page, BadPage, Nothing, NoText, Throttles, Hangs} }

// Moody is the API of a cloud with moods.
type Moody struct {
	API  http.Handler
	mood atomic.Value
}

// Is sets the mood.
func (m *Moody) Is(mood Mood) { m.mood.Store(mood) }

func (m *Moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mood, _ := m.mood.Load().(Mood)
	page := func(status int) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><body>please sign in</body></html>\n")
	}
	switch mood {
	case Page:
		page(http.StatusOK)
	case BadPage:
		page(http.StatusBadGateway)
	case Nothing:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	case NoText:
		w.WriteHeader(http.StatusOK)
	case Throttles:
		w.WriteHeader(http.StatusTooManyRequests)
	case Hangs:
		_, _ = io.Copy(io.Discard, r.Body) // otherwise nobody notices that the client goes
		<-r.Context().Done()
	default:
		m.API.ServeHTTP(w, r)
	}
}
