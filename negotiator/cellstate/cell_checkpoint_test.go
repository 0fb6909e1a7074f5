package cellstate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// exampleCheckpoint returns a checkpoint of a machine, two requests that form a gang, and
// one in a stopped queue.
func exampleCheckpoint(t *testing.T) *CellCheckpoint {
	t.Helper()
	c := &CellCheckpoint{RoostVersion: "0.1.0", Epoch: 7, Leader: "head", Ledger: ledger.New(),
		ClaimHolders: map[fairshare.Submitter]roost.Resources{{Owner: "ann"}: {CPU: 1000}},
		Schedds:      map[string]bool{"s": true}}
	c.Now = time.Unix(1000, 5)
	e := ledger.LogEntry{At: 1, Lead: "head", Commands: []ledger.AdminCommand{{Trusted: true, Verb: ledger.VerbSet,
		Kind: ledger.KindQueue, Object: []byte(`{"name": "q", "enabled": true}`)}}}
	if r := c.Ledger.Apply(&e); errors.Join(append(r.Commands, r.Err)...) != nil {
		t.Fatal(r)
	}
	ad, err := classad.Parse(`[Name = "m"; Cpus = 4; TotalCpus = 4; Memory = 100; TotalMemory = 100]`)
	if err != nil {
		t.Fatal(err)
	}
	c.Machines = []*match.Machine{match.NewMachine("m", 3, 4, ad)}
	for id := range uint64(3) {
		a := &PendingRequest{AdText: "[Rank = TARGET.Cpus]", OwnWanted: 1, GangRequest: 1}
		a.Key, a.Submitter, a.Band, a.Gang = match.RequestKey{Schedd: "s", ID: id + 1},
			fairshare.Submitter{Owner: "ann"}, roost.BatchBand, 2
		if id == 2 {
			a.GangRequest, a.Gang, a.Queue = 0, 0, "q"
		}
		if a.Class, err = match.NewClass(a.AdText, a.Submitter, a.Band, roost.Resources{CPU: 1000}); err != nil {
			t.Fatal(err)
		}
		c.Requests = append(c.Requests, a)
	}
	c.Jobs = []JobRow{{ID: "1.s", Owner: "ann", Request: 1, Waiting: 1}}
	return c
}

func writtenText(t *testing.T, c *CellCheckpoint) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packedText compresses a text as a checkpoint is.
func packedText(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

func unpackedText(t *testing.T, packed []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPlanTwice checks that plans can be made of a checkpoint repeatedly. A gang's
// leading request wants the same, and a stopped one nothing.
func TestPlanTwice(t *testing.T) {
	c, err := Read(bytes.NewReader(writtenText(t, exampleCheckpoint(t))))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		plan := match.NewMatcher().Plan(c.Plan())
		if len(plan.Grants) != 2 || plan.Grants[0].Gang == 0 || plan.Grants[0].Gang != plan.Grants[1].Gang {
			t.Fatalf("got %+v", plan.Grants)
		}
	}
	if c.Now.UnixNano() != 1000*1e9+5 || c.Jobs[0].ID != "1.s" {
		t.Errorf("got %v, %+v", c.Now, c.Jobs)
	}
}

// TestReadRefuses checks the errors for files that are no complete checkpoint.
func TestReadRefuses(t *testing.T) {
	good := writtenText(t, exampleCheckpoint(t))
	text := unpackedText(t, good)
	lines := strings.SplitAfter(text, "\n")
	without := func(i int) string { return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "") }
	for want, bad := range map[string][]byte{
		"no checkpoint of a cell":          []byte("; UnixStartTime: 0\n1 2 3\n"),
		"is no checkpoint":                 packedText("; UnixStartTime: 0\n1 2 3\n"),
		"it is no checkpoint":              packedText(`{"machine": {"name": "m"}}` + "\n"),
		"roost cell checkpoint writes one": nil,
		"version 2 of the format": packedText(strings.Replace(text, `"version":1`,
			`"version":2`, 1)),
		"it is cut off after line 4":                       packedText(strings.Join(lines[:4], "") + `{"mach`),
		fmt.Sprintf("has %d lines, and has", len(lines)-2): packedText(without(2)),
		"there is no ledger": packedText(strings.Replace(without(1),
			fmt.Sprintf(`"lines":%d`, len(lines)-2), fmt.Sprintf(`"lines":%d`, len(lines)-3), 1)),
		"line 3: machine \"m\"": packedText(strings.Replace(text, `"ad":"`, `"ad":"[`, 1)),
		"line 4: request 1 of schedd s": packedText(strings.Replace(text, `"wanted":1`,
			`"wanted":-1`, 1)),
		"something behind its end": packedText(text + "{}\n"),
		"line 2: invalid request: it makes no sense": packedText(strings.Replace(text, `{"ledger":"`,
			`{"ledger":7,"x":"`, 1)),
		"it is there twice": packedText(strings.Replace(text, `"id":2`, `"id":1`, 1)),
	} {
		_, err := Read(bytes.NewReader(bad))
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, roost.Invalid) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestReadDamaged truncates a checkpoint at each byte, and flips each bit of some. Each
// must be an error, unless only gzip's header differs.
func TestReadDamaged(t *testing.T) {
	good := writtenText(t, exampleCheckpoint(t))
	for n := range good {
		if _, err := Read(bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("cut off after %d bytes of %d it is read", n, len(good))
		}
	}
	const header = 10
	for i := header; i < len(good); i++ {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := Read(bytes.NewReader(bad)); err == nil {
			t.Fatalf("with byte %d changed it is read", i)
		}
	}
}

// FuzzRead checks that no text makes Read, or a plan of its result, panic.
func FuzzRead(f *testing.F) {
	f.Add(`{"roost_cell_checkpoint":{"version":1}}` + "\n" + `{"ledger":"CAE="}` + "\n" +
		`{"machine":{"name":"m","ad":"[Cpus=1]","claims":[{"id":1,"owner":"a","band":"batch","parts":[{"unit":9}]}]}}` +
		"\n" + `{"end":{"lines":3}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Read(bytes.NewReader(packedText(text))); err == nil {
			match.NewMatcher().Plan(c.Plan())
		}
	})
}
