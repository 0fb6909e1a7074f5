package object

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
)

// testStore is one object at a server, whose answers a test spoils.
type testStore struct {
	*httptest.Server
	data   []byte
	tag    string
	spoil  func(n int, w http.ResponseWriter, r *http.Request) bool // whether it has answered
	served atomic.Int32
}

func newTestStore(t *testing.T, size int) *testStore {
	s := &testStore{data: make([]byte, size), tag: "0123"}
	random := rand.NewChaCha8([32]byte{1})
	random.Read(s.data)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(s.served.Add(1))
		w.Header().Set("ETag", `"`+s.tag+`"`)
		if s.spoil != nil && s.spoil(n, w, r) {
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.data))
	}))
	t.Cleanup(s.Close)
	return s
}

// source returns addresses with a secret. It counts how often it was asked.
func (s *testStore) source(asked *int) AddressSource {
	return func(context.Context) (Address, error) {
		*asked++
		return Address{URL: fmt.Sprintf("%s/b/k?X-Amz-Signature=secret%d", s.URL, *asked), Plain: true}, nil
	}
}

func refuse(w http.ResponseWriter, status int, code string) bool {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>because</Message></Error>", code)
	return true
}

// TestReader reads an object from a server that cuts answers off, and refuses others.
func TestReader(t *testing.T) {
	s := newTestStore(t, 3<<20)
	s.spoil = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.RawQuery, "secret3") {
			return refuse(w, http.StatusForbidden, "AccessDenied") // as for one that has expired
		}
		switch n % 3 {
		case 1: // half a megabyte, and then nothing
			from := 0
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			w.Header().Set("Content-Length", fmt.Sprint(len(s.data)-from))
			if from > 0 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.data)-1, len(s.data)))
				w.WriteHeader(http.StatusPartialContent)
			}
			w.Write(s.data[from:min(from+512<<10, len(s.data))])
			panic(http.ErrAbortHandler)
		case 2:
			return refuse(w, http.StatusInternalServerError, "InternalError")
		}
		return false
	}
	asked := 0
	got, err := io.ReadAll(NewClient().Open(t.Context(), Info{Size: int64(len(s.data)), ETag: s.tag}, s.source(&asked)))
	if err != nil || !bytes.Equal(got, s.data) {
		t.Fatalf("got %d of %d bytes, %v", len(got), len(s.data), err)
	}
	if asked < 4 {
		t.Errorf("%d addresses for %d requests", asked, s.served.Load())
	}
}

// TestReaderRefusals reads what cannot be read. No error has the URL in it.
func TestReaderRefusals(t *testing.T) {
	for what, test := range map[string]struct {
		spoil func(n int, w http.ResponseWriter, r *http.Request) bool
		want  error
		text  string
	}{
		"missing": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			return refuse(w, 404, "NoSuchKey")
		}, roost.NotFound, "404 NoSuchKey: because"},
		"forbidden": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			return refuse(w, 403, "AccessDenied")
		}, roost.PermissionDenied, "403 AccessDenied"},
		"moved": {func(_ int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", "http://169.254.169.254/latest")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, roost.Invalid, "307"},
		"another object": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("ETag", `"4567"`)
			return false
		}, roost.Conflict, "412"},
		"another size": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Write([]byte("short"))
			return true
		}, roost.Conflict, "5 would"},
		"broken": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			panic(http.ErrAbortHandler)
		}, roost.Unavailable, "EOF"},
	} {
		s := newTestStore(t, 1000)
		s.spoil = test.spoil
		asked := 0
		_, err := io.ReadAll(NewClient().Open(t.Context(), Info{Size: 1000, ETag: s.tag}, s.source(&asked)))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, want %q of kind %v", what, err, test.text, test.want)
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "X-Amz") {
			t.Errorf("%s: the error has the URL: %v", what, err)
		}
	}
	for at, want := range map[Address]string{
		{URL: "http://x.org/b"}:                             "not one of https",
		{URL: "ftp://x.org/b", Plain: true}:                 "not one of https",
		{URL: "https://k:secret@x.org/b"}:                   "no URL",
		{URL: "http://169.254.169.254/secret", Plain: true}: "address of the link",
		{URL: "http://[fe80::1%25lo]/secret", Plain: true}:  "address of the link",
		{URL: "http://\x01/secret", Plain: true}:            "no URL",
	} {
		from := func(context.Context) (Address, error) { return at, nil }
		c := NewClient()
		_, err := c.do(t.Context(), http.MethodGet, from, http.Header{}, nil, 0, http.StatusOK)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, want %q", at, err, want)
		}
	}
}

// TestPutPart uploads a part to a server that refuses some requests.
func TestPutPart(t *testing.T) {
	s := newTestStore(t, 0)
	data := bytes.Repeat([]byte("part"), 1<<18)
	part := PartBody{Size: int64(len(data)), MD5: md5.Sum(data), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
	var got []byte
	s.spoil = func(n int, w http.ResponseWriter, r *http.Request) bool {
		switch n {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			return refuse(w, http.StatusBadGateway, "")
		}
		got, _ = io.ReadAll(r.Body)
		if r.Header.Get("Content-Md5") == "" {
			t.Error("there is no digest")
		}
		w.Header().Set("ETag", `"`+part.ETag()+`"`)
		return true
	}
	asked := 0
	if tag, err := NewClient().PutPart(t.Context(), part, s.source(&asked)); err != nil || tag != part.ETag() ||
		!bytes.Equal(got, data) {
		t.Fatalf("got %q, %d bytes, %v", tag, len(got), err)
	}
	s = newTestStore(t, 0)
	unread := errors.New("the disk is broken")
	part.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(data[:1000]), failingReader{unread})), nil
	}
	if _, err := NewClient().PutPart(t.Context(), part, s.source(&asked)); !errors.Is(err, unread) {
		t.Errorf("got %v", err)
	}
	part.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	s = newTestStore(t, 0)
	s.spoil = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body)
		return refuse(w, 404, "NoSuchUpload")
	}
	if _, err := NewClient().PutPart(t.Context(), part, s.source(&asked)); !errors.Is(err, roost.NotFound) {
		t.Errorf("got %v", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestBackoff checks how long requests wait.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackoff()
		total := time.Now()
		for want := minBackoff; want < 4*maxBackoff; want *= 2 {
			for range 10 { // all that were under way
				b.Slow("x")
			}
			left := b.Remaining("x")
			if left < min(want, maxBackoff) || left > min(want, maxBackoff)*5/4 {
				t.Fatalf("it waits for %v, want %v", left, want)
			}
			if b.Remaining("y") != 0 {
				t.Fatal("another endpoint waits, too")
			}
			if err := b.Wait(t.Context(), "x"); err != nil || b.Remaining("x") != 0 {
				t.Fatalf("%v, and %v are left", err, b.Remaining("x"))
			}
		}
		if time.Since(total) < 3*time.Minute {
			t.Errorf("all waits took %v", time.Since(total))
		}
		b.Good("x")
		b.Slow("x")
		if left := b.Remaining("x"); left > 2*minBackoff {
			t.Errorf("after an answer it waits for %v", left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Wait(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSlowDown checks that a request waits for an object store that wants fewer of them.
// After the wait it takes a new address.
func TestSlowDown(t *testing.T) {
	s := newTestStore(t, 1000)
	s.spoil = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		return n == 1 && refuse(w, http.StatusServiceUnavailable, "SlowDown")
	}
	c, asked := NewClient(), 0
	began := time.Now()
	got, err := io.ReadAll(c.Open(t.Context(), Info{Size: 1000}, s.source(&asked)))
	if err != nil || len(got) != 1000 || time.Since(began) < minBackoff || asked != 3 {
		t.Errorf("got %d bytes, %v after %v, with %d addresses", len(got), err, time.Since(began), asked)
	}
}
