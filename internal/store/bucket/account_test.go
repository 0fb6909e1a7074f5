package bucket

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/object"
)

const testKeys = "# of ann\naws_access_key_id = AKIATEST\naws_secret_access_key = topsecret\n[other]\n" +
	"aws_access_key_id = AKIAOTHER\n"

// openAccount opens an account at a server that answers some requests itself.
func openAccount(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) *Account {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("data"); err != nil {
		t.Fatal(err)
	}
	real := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == nil || !answer(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	a, err := OpenAccount(AccountOptions{Endpoint: server.URL, PathStyle: true, Keys: []byte(testKeys),
		Backoff: object.NewBackoff()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAccount makes an object of two uploads, of which one is completed.
func TestAccount(t *testing.T) {
	a, ctx := openAccount(t, nil), t.Context()
	id, err := a.BeginUpload(ctx, "data", "k", map[string]string{"roost-attempt": "1.n1[0].1"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := a.BeginUpload(ctx, "data", "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("the output")
	at, err := a.PresignPart("data", "k", id, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(at, "topsecret") {
		t.Error("the address has the secret key")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, at, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	parts, err := a.Parts(ctx, "data", "k", id)
	if err != nil || len(parts) != 1 || parts[0].Size != int64(len(text)) {
		t.Fatalf("got %+v, %v", parts, err)
	}
	if _, err := a.Stat(ctx, "data", "k"); !errors.Is(err, roost.NotFound) {
		t.Errorf("it is there in part: %v", err)
	}
	if _, err := a.Complete(ctx, "data", "k", id, parts); err != nil {
		t.Fatal(err)
	}
	info, err := a.Stat(ctx, "data", "k")
	if err != nil || info.Size != int64(len(text)) || info.Metadata["roost-attempt"] != "1.n1[0].1" {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := a.Abort(ctx, "data", "k", other); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Complete(ctx, "data", "k", other, parts); !errors.Is(err, roost.NotFound) {
		t.Errorf("an aborted upload was completed: %v", err)
	}
	if data, etag, err := a.Read(ctx, "data", "k", 100); err != nil || !bytes.Equal(data, text) || etag == "" {
		t.Errorf("got %q, %q, %v", data, etag, err)
	}
	if _, _, err := a.Read(ctx, "data", "k", 5); !errors.Is(err, roost.Exhausted) {
		t.Errorf("got %v", err)
	}
}

// TestReplace checks that of two who replace an object one wins.
func TestReplace(t *testing.T) {
	a, ctx := openAccount(t, nil), t.Context()
	if err := a.Replace(ctx, "data", "m", "", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := a.Replace(ctx, "data", "m", "", []byte("2")); !errors.Is(err, roost.Conflict) {
		t.Errorf("it was made twice: %v", err)
	}
	_, etag, err := a.Read(ctx, "data", "m", 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Replace(ctx, "data", "m", etag, []byte("3")); err != nil {
		t.Fatal(err)
	}
	if err := a.Replace(ctx, "data", "m", etag, []byte("4")); !errors.Is(err, roost.Conflict) {
		t.Errorf("it was replaced twice: %v", err)
	}
	if data, _, _ := a.Read(ctx, "data", "m", 10); string(data) != "3" {
		t.Errorf("got %q", data)
	}
	if err := a.Abort(ctx, "data", "m", "nothing"); err != nil {
		t.Errorf("an upload that is not there: %v", err)
	}
}

func TestList(t *testing.T) {
	a, ctx := openAccount(t, nil), t.Context()
	for i := range 5 {
		if _, err := a.PutEmpty(ctx, "data", fmt.Sprintf("p/%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := a.List(ctx, "data", "p/", 5); err != nil || len(list) != 5 || list[4].Key != "p/4" ||
		list[0].ETag == "" {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := a.List(ctx, "data", "p/", 4); !errors.Is(err, roost.Exhausted) {
		t.Errorf("got %v", err)
	}
	if list, err := a.List(ctx, "data", "q/", 4); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestAccountErrors checks the kinds of errors, and that none has a key in it.
func TestAccountErrors(t *testing.T) {
	var requests atomic.Int32
	fail := func(status int, code string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			requests.Add(1)
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>why</Message></Error>", code)
			return true
		}
	}
	for want, answer := range map[error]func(w http.ResponseWriter, r *http.Request) bool{
		roost.PermissionDenied: fail(403, "AccessDenied"), roost.NotFound: fail(404, "NoSuchBucket"),
		roost.Unavailable: fail(500, "InternalError"), roost.Invalid: fail(400, "InvalidRequest"),
	} {
		requests.Store(0)
		a := openAccount(t, answer)
		_, err := a.BeginUpload(t.Context(), "data", "k", nil)
		if !errors.Is(err, want) || strings.Contains(err.Error(), "AKIA") || strings.Contains(err.Error(), "X-Amz") {
			t.Errorf("got %v, want %v", err, want)
		}
		if n := requests.Load(); (n > 1) != (want == roost.Unavailable) {
			t.Errorf("%v: there were %d requests", want, n)
		}
	}
	if _, err := openAccount(t, nil).Stat(t.Context(), "nowhere", "k"); err == nil ||
		!strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("a missing bucket: got %v", err)
	}
	if err := openAccount(t, nil).CheckBucket(t.Context(), "data"); err != nil {
		t.Error(err)
	}
	if _, err := OpenAccount(AccountOptions{Endpoint: "https://x.org", Keys: []byte("topsecret")}); err == nil ||
		strings.Contains(err.Error(), "topsecret") {
		t.Errorf("got %v", err)
	}
}
