package transfer

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

func testObjectStores(t *testing.T) *objectStores {
	f := &FileTransfers{host: "h", stateDir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	return &objectStores{transfers: f, accounts: map[objectUser]*objectAccount{},
		settings: []config.ObjectStore{{Name: "lab", Endpoint: "https://x.org", Secret: "s3"}}}
}

func testAttempt(seq uint64) roost.AttemptID {
	return roost.AttemptID{Task: roost.TaskID{Job: roost.JobID{Seq: seq, Host: "h"}, Index: 3}, Attempt: 2}
}

// TestUploadDamage damages a record of uploads. It is what it was, or none: then the
// object store has to abort the uploads.
func TestUploadDamage(t *testing.T) {
	s := testObjectStores(t)
	a := testAttempt(7)
	r := newUploadRecord(a, "ann", "n1")
	for i := range 5 {
		r.Uploads = append(r.Uploads, objectUpload{"lab", "data", fmt.Sprint("key", i), fmt.Sprint("id", i), "00"})
	}
	if err := s.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	if got, err := s.readRecord(a); err != nil || !reflect.DeepEqual(got, r) || got.attemptID() != a {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err := s.readRecord(testAttempt(8)); got != nil || err != nil {
		t.Fatalf("got %+v, %v of another attempt", got, err)
	}
	whole, lost := 0, 0
	damage.ForEach(t, s.recordPath(a), 200, func(what string) {
		got, err := s.readRecord(a)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", what, err)
		case got == nil:
			lost++
		case reflect.DeepEqual(got, r):
			whole++
		default:
			t.Fatalf("%s: got %+v", what, got)
		}
	})
	if lost == 0 {
		t.Errorf("no damage was found, of %d", whole)
	}
	if err := s.removeRecord(r); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(filepath.Join(s.transfers.stateDir, uploadsDir)); err != nil || len(list) > 0 {
		t.Errorf("there are %v, %v", list, err)
	}
}

// TestObjectFiles checks how inputs and outputs are split, and which names outputs have
// on their machine.
func TestObjectFiles(t *testing.T) {
	p := queue.TaskProgram{Transfer: "always", Executable: "/bin/true",
		Inputs:  []string{"/home/a => a", "s3://data/k => sub/k", "s3://data/p/ => p"},
		Outputs: []string{"x => y", "r => s3://results/d/r", "o => s3://results/d/", "z"}}
	f := (&FileTransfers{}).filesFor(p, "n1")
	if want := []string{"/home/a => a"}; !reflect.DeepEqual(f.inputs, want) {
		t.Errorf("the files are %q, want %q", f.inputs, want)
	}
	objects := []objectInput{{"s3://data/k", "sub/k"}, {"s3://data/p/", "p"}}
	if want := objects; !reflect.DeepEqual(f.objectInputs, want) {
		t.Errorf("the objects are %q, want %q", f.objectInputs, want)
	}
	want := []string{"x => y", "r => .roost-objects/0/d/r", "o => .roost-objects/1/d/", "z"}
	if !reflect.DeepEqual(f.Outputs, want) || !reflect.DeepEqual(p.Outputs[1], "r => s3://results/d/r") {
		t.Errorf("the outputs are %q, want %q", f.Outputs, want)
	}
	if err := f.checkObjectURLs(); err != nil || !f.hasTransfers() {
		t.Errorf("%v, %v", err, f.hasTransfers())
	}
	for name, want := range map[string]string{
		".roost-objects/0/d/r": "s3://results/d/r", ".roost-objects/0/d/r/in": "s3://results/d/r/in",
		".roost-objects/1/d/o": "s3://results/d/o",
		// of a machine that lies
		".roost-objects/0/other": "", ".roost-objects/1/d2/x": "", ".roost-objects/2/x": "",
		".roost-objects/-1/d/r": "", ".roost-objects/0": "", ".roost-objects/0/d/r2": "",
	} {
		u, _, err := f.outputObject(&wire.FileEntry{Name: name})
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%s: got %v, %v, want %q", name, u, err, want)
		}
	}
	f.objectInputs[0].name = "../up"
	if err := f.checkObjectURLs(); err == nil {
		t.Error("an input may be outside of the task's directory")
	}
}

// TestObjectAddress checks that a machine gets addresses for its own moves only.
func TestObjectAddress(t *testing.T) {
	account := &objectAccount{ObjectAccount: addressAccount{}, store: &config.ObjectStore{Name: "lab"}}
	s := &objectSession{node: &StartdNode{Name: "n1"}, moves: []objectMove{
		{url: jobad.ObjectURL{Bucket: "data", Key: "in"}, account: account, ObjectMove: &wire.ObjectMove{
			Entry: &wire.FileEntry{Size: 10}}},
		{url: jobad.ObjectURL{Bucket: "data", Key: "out"}, account: account, upload: "u", ObjectMove: &wire.ObjectMove{
			Entry: &wire.FileEntry{Size: 3*minPartSize + 1}, Upload: true, PartSize: minPartSize}},
	}}
	for _, test := range []struct {
		move, part uint32
		want       string
	}{
		{0, 0, "get data/in"}, {1, 1, "put data/out u 1"}, {1, 4, "put data/out u 4"},
		{1, 0, ""}, {1, 5, ""}, {2, 0, ""}, {1 << 31, 0, ""},
	} {
		got := ""
		_, err := s.onReport(func(o *wire.ObjectOrder) error { got = o.GetAddress().GetUrl(); return nil },
			&wire.ObjectReport{Want: &wire.ObjectWant{Move: test.move, Part: test.part}})
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("move %d, part %d: got %q, %v, want %q", test.move, test.part, got, err, test.want)
		}
	}
	if done, err := s.onReport(nil, &wire.ObjectReport{Complete: true}); !done || err == nil {
		t.Error("all is done, and nothing was moved")
	}
}

func TestPartSize(t *testing.T) {
	for _, size := range []int64{0, 1, minPartSize, minPartSize + 1, 10 << 30, 5 << 40} {
		part := partSize(size)
		if n := partCount(size, part); n < 1 || n > 10_000 || part > 5<<30 || part < 5<<20 || n*part < size {
			t.Errorf("%d bytes are %d parts of %d", size, n, part)
		}
	}
	if partCount(minPartSize, partSize(minPartSize)) != 1 || partCount(minPartSize+1, partSize(minPartSize+1)) != 2 {
		t.Error("small files have several parts, or large ones a single one")
	}
}

// TestNoObjectStore checks what is said where no object store is.
func TestNoObjectStore(t *testing.T) {
	s := testObjectStores(t)
	s.open = func(*config.ObjectStore, []byte) (ObjectAccount, error) { return nil, nil }
	s.settings[0].Buckets = []string{"other"}
	for range 2 {
		if _, err := s.accountFor(t.Context(), "ann", "n1", jobad.ObjectURL{Bucket: "data", Key: "k"}); err == nil {
			t.Error("there is an account")
		} else if _, ok := err.(objectError); !ok {
			t.Errorf("got %v", err)
		}
		s.settings = nil
	}
}

// addressAccount gives addresses that say what they are for.
type addressAccount struct{ ObjectAccount }

func (addressAccount) PresignGet(bucket, key string, _ time.Duration) (string, error) {
	return "get " + bucket + "/" + key, nil
}

func (addressAccount) PresignPart(bucket, key, id string, part int, _ time.Duration) (string, error) {
	return fmt.Sprintf("put %s/%s %s %d", bucket, key, id, part), nil
}
