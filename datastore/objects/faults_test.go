package objects_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects"
)

// behind returns a bucket of a fake of S3 behind what front makes of it.
func behind(t testing.TB, front func(next http.Handler) http.Handler) objects.Options {
	t.Helper()
	server := httptest.NewServer(front(fakeS3(t)))
	t.Cleanup(server.Close)
	return atEndpoint(server.URL)
}

func fakeS3(t testing.TB) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("holdfast"); err != nil {
		t.Fatal(err)
	}
	return gofakes3.New(backend).Server()
}

func atEndpoint(endpoint string) objects.Options {
	return objects.Options{
		URL: "s3://holdfast?endpoint=" + endpoint, AccessKey: "AKIATEST", Secret: func() (string, error) { return "hush", nil },
	}
}

// says answers all requests of a method as S3 does.
func says(method string, status int, code, message string, header ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method {
				next.ServeHTTP(w, r)
				return
			}
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
		})
	}
}

// TestFaults is of what stores refuse, and of what is said then.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		front func(http.Handler) http.Handler
		want  []string // in the error or its hint
	}{
		"wrong region": {
			says(http.MethodPut, 301, "PermanentRedirect", "The bucket must be addressed otherwise.", "x-amz-bucket-region", "eu-west-1"),
			[]string{"write s3://holdfast/", "PermanentRedirect", "eu-west-1", "?region="},
		},
		"signed for another region": {
			says(http.MethodPut, 400, "AuthorizationHeaderMalformed", "The region 'us-east-1' is wrong; expecting 'eu-west-1'"),
			[]string{"expecting 'eu-west-1'", "?region="},
		},
		"expired": {
			says(http.MethodPut, 400, "ExpiredToken", "The provided token has expired."),
			[]string{"ExpiredToken: The provided token has expired", "AWS_ACCESS_KEY_ID"},
		},
		"may not write": {
			says(http.MethodPut, 403, "AccessDenied", "Access Denied"), []string{"write s3://holdfast/", "AccessDenied", "s3:PutObject"},
		},
		"may not delete": {
			says(http.MethodDelete, 403, "AccessDenied", "Access Denied"), []string{"delete s3://holdfast/", "AccessDenied", "s3:DeleteObject"},
		},
		"may not read": {
			says(http.MethodGet, 403, "AccessDenied", "Access Denied"), []string{"read s3://holdfast/", "AccessDenied", "s3:GetObject"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := claim(t, behind(t, test.front))
			if !errors.Is(err, holdfast.ErrUnavailable) {
				t.Fatalf("Claim() = %v, want an ErrUnavailable", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error()+"\n"+hintOf(err), want) {
					t.Errorf("Claim() = %v (%s), want %q in it", err, hintOf(err), want)
				}
			}
			if strings.Contains(err.Error()+hintOf(err), "hush") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(fakeS3(t))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is about the handshakes that fail
	server.StartTLS()
	t.Cleanup(server.Close)
	opts := atEndpoint(server.URL)
	if err := claim(t, opts); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(hintOf(err), "caFile") {
		t.Errorf("an unknown authority: %v (%s)", err, hintOf(err))
	}
	opts.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(opts.CAFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claim(t, opts); err != nil {
		t.Errorf("with its authority: %v", err)
	}
	plain := httptest.NewServer(fakeS3(t))
	t.Cleanup(plain.Close)
	if err := claim(t, atEndpoint(strings.Replace(plain.URL, "http:", "https:", 1))); !strings.Contains(hintOf(err), "https://") {
		t.Errorf("a server without TLS: %v (%s)", err, hintOf(err))
	}
	opts.CAFile = filepath.Join(t.TempDir(), "missing.pem")
	if err := claim(t, opts); err == nil || !strings.Contains(err.Error(), "missing.pem") {
		t.Errorf("a missing file: %v", err)
	}
}

// A store that is overloaded for a moment is asked again.
func TestRetries(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	opts := behind(t, func(next http.Handler) http.Handler {
		busy := says(http.MethodPut, 503, "SlowDown", "Please reduce your request rate.")(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && calls.Add(1) <= 2 {
				busy.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	b := openAt(t, opts)
	data := noise(1, 6<<20)
	if err := write(t.Context(), b, "store/state/1", data); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 3 {
		t.Errorf("it was called %d times, want 3: a retry of a retry", calls.Load())
	}
	if got, err := read(t.Context(), b, "store/state/1"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// What is refused for good is not asked again.
func TestNoRetries(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	refuse := says(http.MethodPut, 403, "AccessDenied", "Access Denied")
	b := openAt(t, behind(t, func(next http.Handler) http.Handler {
		next = refuse(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			next.ServeHTTP(w, r)
		})
	}))
	if err := write(t.Context(), b, "store/state/1", []byte("x")); err == nil || calls.Load() != 1 {
		t.Errorf("Write() = %v after %d calls", err, calls.Load())
	}
}

// TestReadContinues breaks each connection after a part of the object.
func TestReadContinues(t *testing.T) {
	t.Parallel()
	data := noise(3, 3<<20)
	var breaks, reads atomic.Int32
	b := openAt(t, behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			reads.Add(1)
			whole := httptest.NewRecorder()
			next.ServeHTTP(whole, r)
			for name, values := range whole.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(whole.Code)
			if breaks.Add(-1) >= 0 {
				_, _ = io.CopyN(w, whole.Body, 1<<20)
				panic(http.ErrAbortHandler)
			}
			_, _ = io.Copy(w, whole.Body)
		})
	}))
	if err := write(t.Context(), b, "store/state/1", data); err != nil {
		t.Fatal(err)
	}
	breaks.Store(2)
	if got, err := read(t.Context(), b, "store/state/1"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(data), err)
	}
	if reads.Load() != 3 {
		t.Errorf("it was read %d times, want 3", reads.Load())
	}
	breaks.Store(1000)
	if got, err := read(t.Context(), b, "store/state/1"); err == nil && !bytes.Equal(got, data) {
		t.Errorf("read %d of %d bytes without an error", len(got), len(data))
	}
}

// A body that stops coming is not waited for forever.
func TestBodyThatStops(t *testing.T) {
	t.Parallel()
	data := noise(3, 3<<20)
	var stall atomic.Bool
	opts := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !stall.CompareAndSwap(true, false) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:1<<20])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	})
	b, err := objects.OpenHasty(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), openAt(t, opts), "store/state/1", data); err != nil {
		t.Fatal(err)
	}
	stall.Store(true)
	if got, err := read(t.Context(), b, "store/state/1"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(data), err)
	}
}
