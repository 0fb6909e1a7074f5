package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// newFiles returns the transfers of a host that uses a checkpoint server.
func newFiles(t *testing.T, host, server string) *FileTransfers {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	return New(Config{Host: host, StateDir: dir, FileServer: server, Log: log,
		Reserve: journal.NewDiskReserve(dir, log), Users: NewUserAgents()})
}

// TestStoreInputs has a submit node store the input of jobs, and a member of the cell's
// queue read it. A set that is damaged on the server is not used.
func TestStoreInputs(t *testing.T) {
	address, dir := serveFiles(t)
	submit, member := newFiles(t, "n1", address), newFiles(t, "physics", address)
	home := t.TempDir()
	for name, text := range map[string]string{"a": "of a", "b": strings.Repeat("b", 300<<10), "both": "x"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ad := func(inputs string) *classad.Ad {
		ad, err := classad.Parse(`[Transfer = "store"; Cmd = "/bin/true"; Iwd = "` + home + `"; TransferInput = {` + inputs +
			`}]`)
		if err != nil {
			t.Fatal(err)
		}
		return ad
	}
	me := queue.CallerIdentity{User: "me", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	column := []queue.TaskColumn{{Name: "file", Values: []string{"a", "b", "a"}}}
	specs := []queue.SubmitSpec{{Ad: ad(`"both", "$(file)"`), Count: 3, Columns: column}, {Ad: ad(`"both"`), Count: 5},
		{Ad: ad(``), Count: 1}, {Ad: classad.New(), Count: 1}}
	specs[2].Ad.SetString(roost.AttrStoredInput, strings.Repeat("0", 64)) // which is not for the user to say
	if some, err := submit.StoreInputs(t.Context(), me, specs); err != nil || !some {
		t.Fatal(some, err)
	}
	own := specs[0].Columns[1].Values
	if len(own) != 3 || own[0] != own[2] || own[0] == own[1] {
		t.Errorf("the sets of three tasks are %q", own)
	}
	shared, _ := specs[1].Ad.Str(roost.AttrStoredInput)
	if _, named := specs[2].Ad.Str(roost.AttrStoredInput); named || len(specs[1].Columns) != 0 {
		t.Errorf("a job without input names some: %v", specs[2].Ad)
	}
	for name, want := range map[string]string{own[0]: "a both", own[1]: "b both", shared: "both"} {
		if got, err := storedNames(t, member, queue.UserScript{Node: "n1", UID: me.UID, Name: name}); got != want {
			t.Errorf("a set has %q and not %q, %v", got, want, err)
		}
	}
	if _, err := storedNames(t, member, queue.UserScript{Node: "n1", UID: me.UID + 1, Name: own[0]}); !errors.Is(err,
		roost.NoInput) {
		t.Errorf("as the file of another user: %v", err)
	}
	refused := 0
	path := filepath.Join(dir, ".files", "n1", strconv.FormatUint(uint64(me.UID), 10), shared)
	damage.ForEach(t, path, 120, func(what string) {
		got, err := storedNames(t, member, queue.UserScript{Node: "n1", UID: me.UID, Name: shared})
		if err != nil {
			refused++
		} else if got != "both" {
			t.Errorf("%s: a set has %q", what, got)
		}
	})
	if refused == 0 {
		t.Error("no damage is noticed")
	}
	for text, want := range map[string]error{`"$(JobId).in"`: roost.Invalid, `"missing"`: roost.NoInput} {
		_, err := submit.StoreInputs(t.Context(), me, []queue.SubmitSpec{{Ad: ad(text), Count: 1}})
		if !errors.Is(err, want) {
			t.Errorf("input %s: %v", text, err)
		}
	}
}

// storedNames returns the names of the files of a set.
func storedNames(t *testing.T, from *FileTransfers, u queue.UserScript) (names string, err error) {
	t.Helper()
	err = from.ReadStoredFile(t.Context(), u, 0, func(r io.Reader) error {
		totals, recv, err := userfiles.ReadStored(r)
		if err != nil {
			return err
		}
		return userfiles.CopyEntries(recv, &userfiles.TransferManifest{Totals: totals}, func(m *wire.FileChunk) error {
			if m.GetEntry() != nil {
				names = strings.TrimSpace(names + " " + m.GetEntry().GetName())
			}
			return nil
		})
	})
	return names, err
}

// TestStoredStream has a member of the queue store a captured stream, and another one
// read it into its spool.
func TestStoredStream(t *testing.T) {
	address, _ := serveFiles(t)
	first, next := newFiles(t, "physics", address), newFiles(t, "physics", address)
	a := roost.AttemptID{Task: roost.JobID{Seq: 7, Host: "physics"}.Task(2), Attempt: 1}
	text := bytes.Repeat([]byte("a line\n"), 100<<10)
	if err := first.SpoolFiles.Store(a, false, 0, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	name, size, err := first.storeSpooled(t.Context(), first.SpoolFiles.Path(a, false), "n1", 1000)
	if err != nil || size != int64(len(text)) {
		t.Fatalf("%d bytes of %d, %v", size, len(text), err)
	}
	none, _, err := first.storeSpooled(t.Context(), first.SpoolFiles.Path(a, true), "n1", 1000)
	if none != "" || err != nil {
		t.Errorf("a stream to which nothing was written: %q, %v", none, err)
	}
	file := queue.UserScript{Node: "n1", UID: 1000, Name: name}
	if err := RestoreSpool(t.Context(), next, a, false, file); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(next.SpoolFiles.Path(a, false)); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	file.Node = "n2"
	err = RestoreSpool(t.Context(), next, a, true, file)
	if _, serr := os.Stat(next.SpoolFiles.Path(a, true)); !errors.Is(err, roost.NoInput) || serr == nil {
		t.Errorf("a stream of a user of another node: %v, %v", err, serr)
	}
}

// TestCheckStored checks that a queue of one host refuses jobs with stored files.
func TestCheckStored(t *testing.T) {
	ad := classad.New()
	ad.SetString(roost.AttrTransfer, "store")
	specs := []queue.SubmitSpec{{Ad: classad.New()}, {Ad: ad}}
	if err := CheckStored(queue.CallerIdentity{UID: 1}, specs); !errors.Is(err, roost.Invalid) {
		t.Errorf("in the queue of a host: %v", err)
	}
	if err := CheckStored(queue.CallerIdentity{UID: 1, Origin: "n1"}, specs); err != nil {
		t.Errorf("in the queue of the cell: %v", err)
	}
}

// oldFileServer is a checkpoint server that knows of no offsets.
type oldFileServer struct {
	wire.UnimplementedCheckpointServerServer
	text string
}

func (s *oldFileServer) GetFile(_ *wire.UserFile, to grpc.ServerStreamingServer[wire.UserFilePart]) error {
	for text := s.text; text != ""; {
		n := min(len(text), 10)
		if err := to.Send(&wire.UserFilePart{Data: []byte(text[:n])}); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// TestReadStoredFileAtOffset reads the end of a file from the checkpoint server. One of
// an older release sends the whole.
func TestReadStoredFileAtOffset(t *testing.T) {
	const text = "twenty-five bytes of text"
	old, address := &oldFileServer{text: text}, "unix:"+filepath.Join(t.TempDir(), "old")
	l, err := rpc.Listen(address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterCheckpointServerServer(s, old)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	present, dir := serveFiles(t)
	sum := sha256.Sum256([]byte(text))
	u := queue.UserScript{Node: "n1", UID: 7, Name: hex.EncodeToString(sum[:])}
	path := filepath.Join(dir, ".files", "n1", "7", u.Name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{address, present} {
		files := newFiles(t, "n1", server)
		for _, offset := range []int{0, 1, 10, 24, 25, 30} {
			var got []byte
			err := files.ReadStoredFile(t.Context(), u, int64(offset), func(r io.Reader) (err error) {
				got, err = io.ReadAll(r)
				return err
			})
			if want := text[min(offset, len(text)):]; err != nil || string(got) != want {
				t.Errorf("%s from offset %d: %q, %v, want %q", server, offset, got, err, want)
			}
		}
	}
}
