package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallLog is four jobs on four processors. The second wants all of them while the first
// has three, the third would delay it, and the fourth would not.
const smallLog = `; MaxProcs: 4
1 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1
2 1 -1 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1
3 2 -1 90 1 -1 -1 1 200 -1 1 2 -1 -1 -1 -1 -1 -1
4 3 0 50 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1
`

// simLine is a line of roost sim.
type simLine struct {
	line, stdin, out, stderr string // out and stderr: what has to be in them; no out: nothing is
	code                     int
}

// run runs the line in a directory with those files.
func (test simLine) run(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	a, stdout, stderr := newSimApp(t, t.TempDir())
	a.Dir, a.Stdin = dir, strings.NewReader(test.stdin)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code := a.Run(t.Context(), strings.Fields(test.line))
	if code != test.code || !strings.Contains(stdout.String(), test.out) ||
		!strings.Contains(stderr.String(), test.stderr) || test.out == "" && stdout.Len() > 0 {
		t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
	}
}

// TestSim holds what is said of a replay, what goes into a file, and what is refused.
func TestSim(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(smallLog))
	z.Close()
	for _, test := range []simLine{
		{"roost sim replay small.swf", "", "waits         1m01s on the mean, median 0s, 95 % up to 1m39s, 99 % up to " +
			"1m39s, the longest 2m28s", "", 0},
		{"roost sim replay small.swf", "", "out of turn   1 job\n  as the log    1 waited as long as it says\n", "", 0},
		{"roost sim replay packed.swf --order fcfs", "", "the longest 2m28s", "", 0},
		{"roost sim replay - --processors 100", smallLog, "-: 4 jobs on 100 processors", "", 0},
		{"roost sim replay small.swf --json --order sjbf", "", `"out_of_turn": 1`, "", 0},
		{"roost sim replay small.swf -o out.swf", "", "slowdown", "", 0},
		{"roost sim replay small.swf -o small.swf", "", "",
			"small.swf is there already\nname another file, or write over it with --force", 73},
		{"roost sim replay small.swf --processors 3", "", "left out      1 job without", "", 0},
		{"roost sim replay small.swf --processors 0", "", "", "a machine of 0 processors", 65},
		{"roost sim replay -", strings.TrimPrefix(smallLog, "; MaxProcs: 4\n"), "",
			"no line says \"; MaxProcs: N\"\nsay how many processors the machine has with --processors", 65},
		{"roost sim replay -", smallLog + "5 4 -1\n", "",
			"standard input: line 6: invalid request: it has 3 fields, want 18", 65},
		{"roost sim replay -", packed.String()[:packed.Len()-12], "",
			"after line 5: invalid request: the file is cut off", 65},
		{"roost sim replay -", packed.String()[:5], "", "standard input: the file is cut off", 65},
		{"roost sim replay -", packed.String()[:packed.Len()-6] + "\x00\x00" + packed.String()[packed.Len()-4:], "",
			"after line 5: gzip: invalid checksum", 65},
		{"roost sim replay nowhere", "", "", "nowhere: no such file or directory", 66},
		{"roost sim replay small.swf --order sjfb", "", "", "did you mean sjbf?", 64},
		{"roost sim replay small.swf --once", "", "played once, digest ", "", 0},
		{"roost sim replay -", "; MaxProcs: 4\n1 0 -1 100 3 -1 -1 3 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n",
			"", "no job of it can be played: of 1, 1 asked for no time\nwith --unasked", 65},
		{"roost sim replay - --unasked", "; MaxProcs: 4\n1 0 -1 100 3 -1 -1 3 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n",
			"1 job on 4 processors", "", 0},
		{"roost sim replay - --processors 2", "1 0 -1 100 3 -1 -1 3 90 -1 1 1 -1 -1 -1 -1 -1 -1\n",
			"", "no job of it can be played: of 1, none has both a length and a size", 65},
		{"roost sim model 3 --processors 64 --seed 5 --types --overask 2", "", "; MaxProcs: 64\n", "", 0},
		{"roost sim model 30 -o made.swf", "", "made.swf: 30 jobs on 128 processors in ", "", 0},
		{"roost sim model many", "", "", `"many" is no number of jobs`, 64},
		{"roost sim model 0", "", "", "a log of 0 jobs", 65},
		{"roost sim model 5 --processors 0", "", "", "a machine of 0 processors", 65},
		{"roost sim model 5 --order fcfs", "", "", "order", 64},
		{"roost sim play small.swf", "", "", "unknown command \"play\"", 64},
		{"roost sim replay", "", "", "replay needs a log", 64},
		{"roost sim replay small.swf other.swf", "", "", "one argument too many: \"other.swf\"", 64},
		{"roost sim", "", "replay LOG", "", 0},
		{"roost sim hrm --costs stated --sizes 6 --rates=", "", "     6  the leader             ", "", 0},
		{"roost sim hrm --costs guessed", "", "", "there are measured, stated", 64},
		{"roost sim hrm --sizes 6,x", "", "", "\"x\" is no number from 1 to 2000", 64},
		{"roost sim hrm --sizes= --rates=", "", "", "there is nothing to play", 64},
		{"roost sim hrm --processors 7", "", "", "--processors has no meaning for roost sim hrm", 64},
		{"roost sim hrm --csv small.swf", "", "", "small.swf is there already", 73}, // before it has played anything
		{"roost sim hrm small.swf", "", "", "one argument too many", 64},
		{"roost sim replay small.swf --csv small.swf", "", "", "small.swf is there already", 73},
		{"roost sim replay small.swf --svg nowhere/a.svg", "", "", "no such file or directory", 73},
	} {
		dir := t.TempDir()
		test.run(t, dir, map[string][]byte{"small.swf": []byte(smallLog), "packed.swf": packed.Bytes()})
		text, _ := os.ReadFile(filepath.Join(dir, "out.swf"))
		if want := strings.Contains(test.line, "out.swf"); want && !strings.Contains(string(text), "\n4 3 0 50 1 ") ||
			!want && len(text) > 0 {
			t.Errorf("%s: it wrote %q", test.line, text)
		}
	}
}

// TestSimResults holds what a replay writes as a table and as a picture.
func TestSimResults(t *testing.T) {
	a, _, stderr := newSimApp(t, t.TempDir())
	a.Stdin = strings.NewReader(smallLog)
	if code := a.Run(t.Context(), strings.Fields("roost sim replay - --csv out.csv --svg out.svg")); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	table, err := os.ReadFile(filepath.Join(a.Dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")
	want := "from_seconds,seconds,used_processors,waiting_jobs,most_waiting_jobs,started_jobs,wait_seconds,longest_wait_seconds,user_1_processors,user_2_processors,others_processors"
	if rows[0] != want || len(rows) != 1+240 || rows[1] != "0,1,3.000,0.000,0,1,0.000,0,3.000,0.000,0.000" ||
		rows[4] != "3,1,4.000,2.000,2,1,0.000,0,3.000,1.000,0.000" {
		t.Errorf("it wrote %d rows:\n%s", len(rows), table)
	}
	picture, err := os.ReadFile(filepath.Join(a.Dir, "out.svg"))
	for _, title := range []string{">Utilisation<", ">Queue<", ">Waits<", ">Shares<", ">user 2<",
		">time since the first submission (hours)<"} {
		if err != nil || !strings.Contains(string(picture), title) {
			t.Errorf("%v: the picture does not say %s", err, title)
		}
	}
}

// TestSimHRM holds what a study writes: the same with stated costs, and as a table and a
// picture.
func TestSimHRM(t *testing.T) {
	var outputs [2]string
	for i := range outputs {
		a, stdout, stderr := newSimApp(t, t.TempDir())
		if code := a.Run(t.Context(), strings.Fields(
			"roost sim hrm --costs stated --sizes 6 --rates= --json --csv out.csv --svg out.svg",
		)); code != 0 {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		table, _ := os.ReadFile(filepath.Join(a.Dir, "out.csv"))
		picture, _ := os.ReadFile(filepath.Join(a.Dir, "out.svg"))
		outputs[i] = stdout.String() + string(table) + string(picture)
	}
	if outputs[0] != outputs[1] {
		t.Errorf("it said\n%s\nand then\n%s", outputs[0], outputs[1])
	}
	for _, want := range []string{`"style": "undivided"`, `"proposed": 240`, "\n6,,distributed,0.0",
		">the paper: HRM<"} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("it does not say %s:\n%s", want, outputs[0])
		}
	}
}

// TestSimOutcomes holds that --output writes the kind of file that its name says, and
// that a made-up log plays.
func TestSimOutcomes(t *testing.T) {
	a, stdout, stderr := newSimApp(t, t.TempDir())
	run := func(line string) {
		t.Helper()
		stdout.Reset()
		if code := a.Run(t.Context(), strings.Fields(line)); code != 0 {
			t.Fatalf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(a.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := os.WriteFile(filepath.Join(a.Dir, "small.swf"), []byte(smallLog), 0o600); err != nil {
		t.Fatal(err)
	}
	run("roost sim replay small.swf -o jobs.csv")
	want := "job,line,user,submit_seconds,wait_seconds,start_seconds,run_seconds,processors,asked_seconds,expected_seconds,outlived,out_of_turn\n1,2,1,0,0,0,100,3,100,100,0,false\n"
	if got := read("jobs.csv"); !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, "\n4,5,2,3,0,3,50,1,60,60,0,true\n") {
		t.Errorf("got %s", got)
	}
	run("roost sim replay small.swf -o jobs.json")
	var jobs []struct {
		Job       int
		Early     bool `json:"out_of_turn"`
		Processed int  `json:"processors"`
	}
	if err := json.Unmarshal([]byte(read("jobs.json")), &jobs); err != nil || len(jobs) != 4 || jobs[3].Job != 4 ||
		!jobs[3].Early || jobs[0].Processed != 3 {
		t.Errorf("%v: got %+v", err, jobs)
	}
	run("roost sim model 500 --processors 64 --seed 3 --overask 3 -o made.swf")
	run("roost sim replay made.swf --order sjbf")
	if !strings.Contains(stdout.String(), "made.swf: 500 jobs on 64 processors") ||
		strings.Contains(stdout.String(), "left out") {
		t.Errorf("got %s", stdout)
	}
}

// TestSimPipe holds that a pipe is written to, with --force and without, and stays one:
// as /dev/null would have to.
func TestSimPipe(t *testing.T) {
	for _, force := range []string{"", " --force"} {
		a, _, stderr := newSimApp(t, t.TempDir())
		pipe := filepath.Join(a.Dir, "pipe")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		end, err := os.OpenFile(pipe, os.O_RDWR, 0) // it has room for the table
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		a.Stdin = strings.NewReader(smallLog)
		if code := a.Run(t.Context(), strings.Fields("roost sim replay - --csv pipe"+force)); code != 0 {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Fatalf("the pipe is %v, %v", info, err)
		}
		text := make([]byte, 13)
		if n, err := end.Read(text); err != nil || string(text[:n]) != "from_seconds," {
			t.Errorf("it wrote %q, %v", text[:n], err)
		}
	}
}
