package startd

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestInputIsCompared checks which input a submit node may copy into a scratch directory.
// The attempt's program must name it, it must have the size that was announced, and it
// must fit the requested disk. Nothing is left of any other input.
func TestInputIsCompared(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell(`cat in/a.txt`)
	prog.Cwd, prog.Scratch, prog.Inputs = "", true, []string{"in/*.txt", "data => table/"}
	claim := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Disk = 1 << 20 }).GetClaim()
	a := s.activate(claim, prog, true)
	scratch := s.nextMessage("room for input").GetInput().GetScratch()
	file := func(name, text string) []*wire.FileChunk {
		sum := sha256.Sum256([]byte(text))
		list := []*wire.FileChunk{{Entry: &wire.FileEntry{Name: name, Size: int64(len(text)), Mode: 0o644}}}
		for piece := range slices.Chunk([]byte(text), 256<<10) {
			list = append(list, &wire.FileChunk{Data: piece})
		}
		return append(list, &wire.FileChunk{Eof: true, Sha256: sum[:]})
	}
	good := slices.Concat(file("in/a.txt", "hello"), file("table/data", "1,2"))
	for _, test := range []struct {
		name, want string
		kind       error
		totals     *wire.TransferTotals
		chunks     []*wire.FileChunk
	}{
		{"unasked", `".profile": nobody has asked for it`, roost.Invalid, nil,
			slices.Concat(file(".profile", "x"), good)},
		{"below another", `"other/in/a.txt": nobody has asked for it`, roost.Invalid, nil, file("other/in/a.txt", "x")},
		{"twice", `"in/a.txt": it came twice`, roost.Invalid, nil, slices.Concat(good, file("in/a.txt", "x"))},
		{"too few", "3 files of 8 bytes were announced, and 2 of 8 came", roost.Invalid,
			&wire.TransferTotals{Files: 3, Bytes: 8}, good},
		{"too large", "more than 1MiB together", roost.Exhausted, nil, file("in/big.txt", strings.Repeat("x", 2<<20))},
		{"good", "", nil, &wire.TransferTotals{Files: 2, Bytes: 8}, good},
	} {
		stream, err := s.client.Put(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range append([]*wire.FileChunk{{Schedd: s.name, Attempt: a, Totals: test.totals}}, test.chunks...) {
			if stream.Send(c) != nil {
				break // the answer says why
			}
		}
		reply, err := stream.CloseAndRecv()
		if err = rpc.FromStatus(err); !errors.Is(err, test.kind) ||
			err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
		in := func() []os.DirEntry {
			list, _ := os.ReadDir(scratch)
			return slices.DeleteFunc(list, func(e os.DirEntry) bool { return e.Name() == ".tmp" })
		}
		for range 200 { // what is refused is told before it is removed
			if test.kind != nil && len(in()) > 0 {
				waitBriefly(10 * time.Millisecond)
			}
		}
		there := in()
		if test.kind == nil {
			if text, _ := os.ReadFile(filepath.Join(scratch, "table/data")); reply.GetFiles() != 2 || len(there) != 2 ||
				string(text) != "1,2" {
				t.Errorf("%s: got %v, %v, and there is %v", test.name, reply, err, there)
			}
		} else if len(there) != 0 {
			t.Errorf("%s: it left %v", test.name, there)
		}
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
	if x := s.awaitOnlyExit(a); string(x.GetStdout()) != "hello" {
		t.Errorf("got %s", exitText(x))
	}
}
