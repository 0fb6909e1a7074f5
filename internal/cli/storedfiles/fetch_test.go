package storedfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// storedSchedd sends a stored set of files. Its fields say what goes wrong.
type storedSchedd struct {
	set      []byte
	isOld    bool // it does not say which set it sends
	brokenAt int  // what an error comes after; 0: none
	broken   error

	asked []int64 // the offsets
}

const testPiece = 1000

func (s *storedSchedd) send(req *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error {
	s.asked = append(s.asked, req.GetOffset())
	sum := sha256.Sum256(s.set)
	digest := hex.EncodeToString(sum[:])
	if s.isOld {
		digest = ""
	}
	for at := int(req.GetOffset()); at < len(s.set); {
		if s.brokenAt > 0 && at >= s.brokenAt {
			s.brokenAt = 0
			return s.broken
		}
		data := s.set[at:min(at+testPiece, len(s.set))]
		if err := to.Send(&wire.LogChunk{Data: data, Attempt: 1, Offset: int64(at), Stored: digest}); err != nil {
			return err
		}
		at += len(data)
	}
	return nil
}

// storedSet stores a directory with one file.
func storedSet(t *testing.T, text string) []byte {
	t.Helper()
	agent, err := userfiles.StartAgent(userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		userfiles.SelfExecutable)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	from := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(from, "sub"), 0o755),
		os.WriteFile(filepath.Join(from, "sub", "result"), []byte(text), 0o640)); err != nil {
		t.Fatal(err)
	}
	entries, err := agent.Expand(t.Context(), from, []string{"sub"})
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	send, err := userfiles.WriteStored(&stored, userfiles.Totals(entries))
	if err == nil {
		err = userfiles.SendEntries(t.Context(), send, agent, from, entries, userfiles.SendOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored.Bytes()
}

// fetchTest has a user run roost fetch into one directory again and again.
type fetchTest struct {
	*testing.T
	schedd *storedSchedd
	dir    string // of the pool
	to     string
}

func newFetchTest(t *testing.T, s *storedSchedd) *fetchTest {
	fake := clitest.SampleJobs()
	fake.LogsFunc = s.send
	return &fetchTest{T: t, schedd: s, dir: fake.Serve(t), to: t.TempDir()}
}

// fetch runs roost fetch, and returns the JSON that it prints.
func (f *fetchTest) fetch() (doc map[string]any, stderr string, code int) {
	f.Helper()
	f.schedd.asked = nil
	app, stdout, errs := clitest.NewApp(f.T, f.dir, frame.WithCommonFlags([]*frame.Command{FetchCommand()}))
	code = app.Run(f.Context(), []string{"roost", "fetch", "--json", "--to", f.to, "61"})
	json.Unmarshal(stdout.Bytes(), &doc)
	return doc, errs.String(), code
}

// partials lists the files of sets that have not come as a whole.
func (f *fetchTest) partials() []string {
	list, err := filepath.Glob(filepath.Join(f.to, partialPrefix+"*"))
	if err != nil {
		f.Fatal(err)
	}
	return list
}

// checkFetched fetches, and checks that the file is there and nothing else remains.
func (f *fetchTest) checkFetched(text string, resumed int, asked ...int64) {
	f.Helper()
	doc, stderr, code := f.fetch()
	want := map[string]any{"v": 1.0, "dir": f.to, "files": 2.0, "bytes": float64(len(text)),
		"resumed_bytes": float64(resumed)}
	if code != 0 || fmt.Sprint(doc) != fmt.Sprint(want) || !slices.Equal(f.schedd.asked, asked) {
		f.Errorf("exit status %d, %v, asked at %v, want %v, %v; %s", code, doc, f.schedd.asked, want, asked, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(f.to, "sub", "result")); err != nil || string(got) != text {
		f.Errorf("fetched %d bytes, %v, want %d", len(got), err, len(text))
	}
	if list := f.partials(); len(list) > 0 {
		f.Errorf("left: %v", list)
	}
}

// TestFetchResumes interrupts roost fetch. The next one gets the rest, and no file has
// its name before all have come.
func TestFetchResumes(t *testing.T) {
	text := strings.Repeat("a line of a result\n", 1000)
	f := newFetchTest(t, &storedSchedd{set: storedSet(t, text), brokenAt: 5 * testPiece,
		broken: fmt.Errorf("%w: broken", roost.Internal)})
	_, stderr, code := f.fetch()
	if list := f.partials(); code == 0 || len(list) != 1 || !strings.Contains(stderr, list[0]) ||
		!strings.Contains(stderr, "the same command gets the rest") {
		t.Errorf("interrupted: exit status %d, left %v; %s", code, list, stderr)
	}
	if _, err := os.Stat(filepath.Join(f.to, "sub")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of an incomplete set is there: %v", err)
	}
	f.checkFetched(text, 5*testPiece, 0, 5*testPiece)
	f.checkFetched(text, 0, 0) // nothing of it remains, and it comes again
}

// TestFetchThroughRestart has the schedd be away for a moment. One roost fetch goes on.
func TestFetchThroughRestart(t *testing.T) {
	text := strings.Repeat("a line of a result\n", 1000)
	for _, isOld := range []bool{false, true} {
		f := newFetchTest(t, &storedSchedd{set: storedSet(t, text), isOld: isOld, brokenAt: 5 * testPiece,
			broken: fmt.Errorf("%w: restarts", roost.Unavailable)})
		f.checkFetched(text, 0, 0, 5*testPiece)
	}
}

// TestFetchRefuses checks that what is left of an earlier roost fetch is not trusted.
func TestFetchRefuses(t *testing.T) {
	text := strings.Repeat("a line of a result\n", 1000)
	s := &storedSchedd{set: storedSet(t, text)}
	f := newFetchTest(t, s)
	interrupt := func() string {
		s.brokenAt, s.broken = 5*testPiece, fmt.Errorf("%w: broken", roost.Internal)
		f.fetch()
		list := f.partials()
		if len(list) != 1 {
			t.Fatalf("left: %v", list)
		}
		return list[0]
	}
	if err := os.WriteFile(interrupt(), bytes.Repeat([]byte{1}, 5*testPiece), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := f.fetch(); code == 0 || !strings.Contains(stderr, "does not have its digest") ||
		len(f.partials()) > 0 {
		t.Errorf("of a damaged set: exit status %d, left %v; %s", code, f.partials(), stderr)
	}
	f.checkFetched(text, 0, 0)

	path := interrupt() // of a set that is another one now
	before := s.set
	s.set = storedSet(t, "other")
	if doc, stderr, code := f.fetch(); code != 0 || doc["resumed_bytes"] != 0.0 ||
		!slices.Equal(f.partials(), []string{path}) {
		t.Errorf("of another set: exit status %d, %v, left %v; %s", code, doc, f.partials(), stderr)
	}
	s.set = before
	other := &partialSet{dir: f.to}
	if err := other.open(strings.TrimPrefix(filepath.Base(path), partialPrefix)); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := f.fetch(); code == 0 || !strings.Contains(stderr, "another roost fetch") {
		t.Errorf("beside another one: exit status %d, %s", code, stderr)
	}
	other.close()
	f.checkFetched(text, 5*testPiece, 0, 5*testPiece)
}
