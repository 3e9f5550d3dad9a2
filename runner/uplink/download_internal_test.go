package uplink

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// answering is a server: it answers, or is out of reach.
type answering func() (*http.Response, error)

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a() }

func answerOf(status int, body io.Reader) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(body)}, nil
}

// downloading is a session with a server.
func downloading(t *testing.T, server answering) *Session {
	t.Helper()
	s := &Session{dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s.client = &Client{base: "http://server", http: &http.Client{Transport: server}}
	if err := os.Mkdir(filepath.Join(s.dir, scratchDir), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// What the server cannot give although it answers is not waited for until the run's
// deadline: it is damaged.
func TestDownloadOfWhatIsDamaged(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]answering{
		"at once": func() (*http.Response, error) {
			return answerOf(http.StatusInternalServerError, strings.NewReader(`{"error":"internal error"}`))
		},
		"in the middle": func() (*http.Response, error) {
			return answerOf(http.StatusOK, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, began := downloading(t, answer), time.Now()
				_, err := s.Bundle(t.Context(), "sha256:x")
				if took := time.Since(began); !errors.Is(err, holdfast.ErrUnavailable) || took < downloadPatience || took > 2*downloadPatience {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// A server, or its store, that is out of reach is waited for, however long, also between two answers.
func TestDownloadWaitsForTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		s := downloading(t, func() (*http.Response, error) {
			asked++
			switch took := time.Since(began); {
			case asked == 1:
				return answerOf(http.StatusInternalServerError, strings.NewReader(`{"error":"internal error"}`))
			case took < time.Hour:
				return nil, errors.New("connection refused")
			case took < time.Hour+2*downloadPatience:
				return answerOf(http.StatusServiceUnavailable, strings.NewReader(`{"error":"the object store does not answer"}`))
			default:
				return answerOf(http.StatusOK, strings.NewReader("content"))
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		r, err := s.StoredArtefact(ctx, "run-1", "plan")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if data, err := io.ReadAll(r); err != nil || string(data) != "content" {
			t.Errorf("it is %q, %v", data, err)
		}
	})
}
