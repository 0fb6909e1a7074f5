package trace

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const sample = `; Version: 2.2
; MaxProcs: 100
; a remark: of no field
1 0 10 97225 56 -1 -1 56 210000 -1 1 1 -1 -1 -1 -1 -1 -1

2 327952 0 9382 80 3.75 -1 80 14400 -1 0 2 -1 -1 -1 -1 -1 -1
`

func TestRead(t *testing.T) {
	log, err := Read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := log.Processors(); n != 100 || err != nil {
		t.Errorf("got %d processors, %v", n, err)
	}
	if len(log.Headers) != 2 || len(log.Jobs) != 2 {
		t.Fatalf("got %+v", log)
	}
	want := Job{
		Line: 6, ID: 2, Submit: 327952, RunTime: 9382, Processors: 80, CPU: 3, Memory: -1, RequestedProcessors: 80,
		RequestedTime: 14400, RequestedMemory: -1, User: 2, Group: -1, Program: -1,
		Queue: -1, Partition: -1, PrecedingJob: -1, ThinkTime: -1,
	}
	if log.Jobs[1] != want {
		t.Errorf("got %+v", log.Jobs[1])
	}
	var out strings.Builder
	if err := log.Write(&out); err != nil {
		t.Fatal(err)
	}
	again, err := Read(strings.NewReader(out.String()))
	if err != nil || again.Jobs[0].RequestedTime != 210000 || again.Header("maxprocs") != "100" {
		t.Errorf("written and read again: %+v, %v", again, err)
	}
}

// TestRefused checks that an invalid log is refused with its place and the reason.
func TestRefused(t *testing.T) {
	good := "1 0 10 97225 56 -1 -1 56 210000 -1 1 1 -1 -1 -1 -1 -1 -1\n"
	for text, want := range map[string]string{
		"":                                 "invalid request: it has no jobs, of 0 lines",
		"; MaxProcs: 3\n":                  "invalid request: it has no jobs, of 1 lines",
		good + "2 0 10 97225 56\n":         "line 2: invalid request: it has 5 fields, want 18",
		good + good[:len(good)-1] + " 7\n": "line 2: invalid request: it has 19 fields, want 18",
		good + strings.Replace(good, "97225", "soon",
			1): `line 2: invalid request: field 4: "soon" is no number`,
		good + strings.Replace(good, "97225", "1e300",
			1): `line 2: invalid request: field 4: "1e300" is no number`,
		good + strings.Replace(good, "97225", "NaN",
			1): `line 2: invalid request: field 4: "NaN" is no number`,
		good + strings.Replace(good, "97225", "99999999999999",
			1): "line 2: invalid request: field 4: 99999999999999 is too much for a time",
		good + strings.Replace(good, " 56 2", " 5600000000 2",
			1): "line 2: invalid request: field 8: 5600000000 is too much for a number of processors",
		good + "-" + good: "line 2: invalid request: field 1: a job's number cannot be -1",
		good + strings.Repeat("1 ",
			600_000): "line 2: invalid request: it is longer than 1048576 bytes; is this a log of jobs?",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || err.Error() != want {
			t.Errorf("%.80q: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		good:                        `header: not found: no line says "; MaxProcs: N"`,
		"; MaxProcs: many\n" + good: `header: MaxProcs: invalid request: "many" is no number of processors`,
		"; MaxProcs: 0\n" + good:    `header: MaxProcs: invalid request: "0" is no number of processors`,
	} {
		log, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Processors(); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

// TestTruncatedFile checks that the error of a truncated file says how far it could be
// read. It must not call the last line invalid.
func TestTruncatedFile(t *testing.T) {
	good := "1 0 10 97225 56 -1 -1 56 210000 -1 1 1 -1 -1 -1 -1 -1 -1\n"
	for cut := range 2 * len(good) {
		_, err := Read(io.MultiReader(strings.NewReader((good + good)[:cut]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		want := fmt.Sprintf("after line %d: invalid request: the file is cut off", cut/len(good))
		// The rest of a line may be valid by itself; then only the error shows the
		// truncation.
		if err == nil || err.Error() != want &&
			err.Error() != fmt.Sprintf("after line %d: invalid request: the file is cut off", cut/len(good)+1) {
			t.Fatalf("cut after %d bytes: %v, want %s", cut, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		log, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		var out strings.Builder
		if err := log.Write(&out); err != nil {
			t.Fatal(err)
		}
		again, err := Read(strings.NewReader(out.String()))
		if err != nil || len(again.Jobs) != len(log.Jobs) {
			t.Fatalf("written as %q, which is not read as the same: %v", out.String(), err)
		}
	})
}
