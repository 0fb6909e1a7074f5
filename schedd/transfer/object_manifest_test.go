package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// manifestAccount has one object, which is replaced as S3 does.
type manifestAccount struct {
	ObjectAccount
	mu      sync.Mutex
	data    []byte
	version int
	before  func() // is called before the object is replaced
}

func (a *manifestAccount) Read(context.Context, string, string, int) ([]byte, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.version == 0 {
		return nil, "", &object.StoreError{Status: http.StatusNotFound, Code: "NoSuchKey"}
	}
	return a.data, fmt.Sprint(a.version), nil
}

func (a *manifestAccount) Replace(_ context.Context, _, _, etag string, data []byte) error {
	if f := a.before; f != nil {
		a.before = nil
		f()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if etag != fmt.Sprint(a.version) && (etag != "" || a.version != 0) {
		return &object.StoreError{Status: http.StatusPreconditionFailed}
	}
	a.data, a.version = data, a.version+1
	return nil
}

// TestManifestRace has two attempts of a task write the manifest of a directory. The one
// with the higher number wins, whoever comes first.
func TestManifestRace(t *testing.T) {
	dir := jobad.ObjectURL{Bucket: "data", Key: "out/"}
	write := func(a *objectAccount, job string, attempt uint32) error {
		return replaceManifest(t.Context(), a, dir, &objectManifest{Version: manifestVersion, Job: job,
			Attempt: attempt, Files: []manifestFile{{Name: fmt.Sprint("of", attempt)}}})
	}
	for _, first := range []uint32{1, 2} {
		real := &manifestAccount{}
		a := &objectAccount{ObjectAccount: real, store: &config.ObjectStore{Name: "lab"}}
		second := 3 - first
		var inner error
		real.before = func() { inner = write(a, "1.h", second) } // between its look and its write
		outer := write(a, "1.h", first)
		var got objectManifest
		if err := json.Unmarshal(real.data, &got); err != nil || got.Attempt != 2 || len(got.Files) != 1 {
			t.Errorf("attempt %d began: the manifest is %s, %v", first, real.data, err)
		}
		if first == 1 && (inner != nil || !errors.Is(outer, roost.Conflict)) {
			t.Errorf("attempt 2 got %v, attempt 1 %v", inner, outer)
		}
		if err := write(a, "1.h", 2); err != nil {
			t.Errorf("the same attempt once more: %v", err)
		}
		if err := write(a, "2.h", 1); err != nil {
			t.Errorf("another job: %v", err)
		}
	}
}

// TestManifestDamage has manifests that no honest job has written.
func TestManifestDamage(t *testing.T) {
	dir := jobad.ObjectURL{Bucket: "data", Key: "out/"}
	for _, text := range []string{"", "{", `{"version": 2}`, `{"version": 1, "files": [{"name": "../x"}]}`,
		`{"version": 1, "files": [{"name": "/x"}]}`, `{"version": 1, "files": [{"name": "x", "size": -1}]}`,
		`{"version": 1, "files": [{"name": ""}]}`, `{"version": 1, "files": [{"name": "x/"}]}`,
		`{"version": 1, "files": [{"name": "a\nb"}]}`} {
		a := &objectAccount{ObjectAccount: &manifestAccount{data: []byte(text), version: 1},
			store: &config.ObjectStore{Name: "lab"}}
		if _, err := findPrefix(t.Context(), a, dir, "in"); err == nil {
			t.Errorf("%q is taken for a manifest", text)
		} else if _, ok := errors.AsType[objectError](err); !ok {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
