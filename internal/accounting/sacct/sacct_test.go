package sacct

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

func columns(t testing.TB, list string) []Column {
	t.Helper()
	c, err := ParseFormat(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func printAll(t testing.TB, p Printer, rows []*accounting.AttemptRecord) {
	t.Helper()
	for _, r := range rows {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// allFields is a list of all fields.
func allFields() string {
	var names []string
	for _, f := range Fields() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ",")
}

// TestGolden prints the sample in all formats.
func TestGolden(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	rows := accountingtest.Sample()
	var b bytes.Buffer
	list := columns(t, DefaultFormat+",start,elapsed,maxrss,nodelist%-8")
	printAll(t, NewTable(&b, list, Options{Location: zone}, true), rows)
	accountingtest.CheckGolden(t, "table.txt", b.Bytes())
	b.Reset()
	lines, err := NewLines(&b, columns(t, allFields()), Options{Location: time.UTC, Cluster: "pool"}, true, "|", false)
	if err != nil {
		t.Fatal(err)
	}
	printAll(t, lines, rows)
	accountingtest.CheckGolden(t, "all-fields.txt", b.Bytes())
	b.Reset()
	printAll(t, NewJSON(&b, Options{Location: time.UTC}), rows)
	accountingtest.CheckGolden(t, "jobs.json", b.Bytes())
	if !json.Valid(b.Bytes()) {
		t.Error("the document is no JSON")
	}
}

// TestJSON reads the sample back by the members that clients of sacct --json read.
func TestJSON(t *testing.T) {
	rows := accountingtest.Sample()
	var b bytes.Buffer
	printAll(t, NewJSON(&b, Options{Cluster: "pool"}), rows)
	var document struct {
		Jobs []struct {
			JobID uint64 `json:"job_id"`
			Array struct {
				TaskID struct {
					Set, Infinite bool
					Number        int
				} `json:"task_id"`
			}
			Name, User, Nodes, Cluster string
			State                      struct{ Current []string }
			Time                       struct{ Start, End, Elapsed int64 }
		}
		Errors []string
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil || len(document.Jobs) != len(rows) {
		t.Fatalf("%d jobs, want %d (%v)", len(document.Jobs), len(rows), err)
	}
	for i, j := range document.Jobs {
		r := rows[i]
		if j.JobID != r.Job.Seq || j.Name != r.Job.Name || j.User != r.Job.Owner || j.Cluster != "pool" ||
			!slices.Equal(j.State.Current, []string{State(r)}) || j.Array.TaskID.Set != (r.Job.Array) {
			t.Errorf("job %d: %+v", r.Job.Seq, j)
		}
		if a := r; a.Attempt != 0 && (j.Array.TaskID.Number != a.Index || j.Time.Start != int64(a.Started)/1000 ||
			j.Time.Elapsed != (a.Wall-a.Suspended)/1000 || j.Nodes != a.Node) {
			t.Errorf("job %d: %+v", r.Job.Seq, j)
		}
	}
}

// TestLineForms prints one row with the forms of -p, of -n, of --delimiter, and of
// SLURM_TIME_FORMAT=%s.
func TestLineForms(t *testing.T) {
	row := accountingtest.WithNames("a|b;c")
	row.Job.Seq = 7
	for _, c := range []struct {
		delimiter      string
		head, trailing bool
		want           string
	}{
		{"|", true, true, "JobID|User|Start|JobName|\n7|a%7Cb;c|1793491260|a%7Cb;c|\n"},
		{"|", false, false, "7|a%7Cb;c|1793491260|a|b;c\n"},
		{";;", false, false, "7;;a|b%3Bc;;1793491260;;a|b;c\n"},
	} {
		var b bytes.Buffer
		p, err := NewLines(&b, columns(t, "jobid,user,start,jobname"), Options{UnixTimes: true}, c.head, c.delimiter,
			c.trailing)
		if err != nil {
			t.Fatal(err)
		}
		printAll(t, p, []*accounting.AttemptRecord{row})
		if b.String() != c.want {
			t.Errorf("delimiter %q: got\n%swant\n%s", c.delimiter, b.String(), c.want)
		}
	}
	for _, bad := range []string{"", "§", "1", "a\n", strings.Repeat("x", 17)} {
		if _, err := NewLines(nil, columns(t, "user"), Options{}, false, bad, false); !errors.Is(err, roost.Invalid) {
			t.Errorf("delimiter %q: %v", bad, err)
		}
	}
}

// TestParseFormat reads lists of fields, and refuses bad ones with a hint.
func TestParseFormat(t *testing.T) {
	c := columns(t, "JobId, STATE%20 ,jobname%-30")
	if len(c) != 3 || c[0].Width != 12 || c[1].Width != 20 || c[1].Left || c[2].Width != 30 || !c[2].Left {
		t.Errorf("columns: %+v", c)
	}
	for list, want := range map[string]string{
		"":                            "names no field",
		"jobid,statee":                "did you mean State?",
		"state%x":                     "no width",
		"state%0":                     "no width",
		"state%-1001":                 "no width",
		strings.Repeat("jobid,", 201): "more than 200 fields",
	} {
		if _, err := ParseFormat(list); !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", list, err, want)
		}
	}
	if names := strings.Fields(FieldList()); len(names) != len(Fields()) {
		t.Errorf("the list has %d names of %d", len(names), len(Fields()))
	}
	if !slices.IsSortedFunc(Fields(), func(a, b Field) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the fields are not sorted by name")
	}
}

// TestDurations compares durations with what sacct of Slurm prints.
func TestDurations(t *testing.T) {
	for seconds, want := range map[int64]string{-1: "00:00:00", 59: "00:00:59", 3600: "01:00:00", 86399: "23:59:59",
		86400: "1-00:00:00", 100*86400 + 3661: "100-01:01:01"} {
		if got := string(appendElapsed(nil, seconds)); got != want {
			t.Errorf("%d s: got %s, want %s", seconds, got, want)
		}
	}
	for millis, want := range map[int64]string{16: "00:00.016", 61_007: "01:01.007", 3600_000: "01:00:00",
		90_000_999: "1-01:00:00"} {
		if got := string(appendCPUTime(nil, millis)); got != want {
			t.Errorf("%d ms: got %s, want %s", millis, got, want)
		}
	}
	for size, want := range map[roost.Bytes]string{0: "0", -5: "0", 1: "1K", roost.MiB: "1M", 1536 * roost.MiB: "1536M",
		4 * roost.GiB: "4G", roost.PiB * 4096: "4096P", 4*roost.GiB + 1: "4194305K"} {
		if got := string(appendSize(nil, size)); got != want {
			t.Errorf("%d bytes: got %s, want %s", size, got, want)
		}
	}
}

// xdmodJob is what the shredder of XDMoD makes of a line.
type xdmodJob struct {
	id, index                   int64
	start, end, submit, elapsed int64
	cpus, nodes, gpus, limit    int64
	state, node, name           string
	text                        map[string]string
}

// shred reads a line by the rules of the shredder of XDMoD 11.5 for Slurm. For a line
// that it leaves out ok is false.
func shred(line string) (j xdmodJob, ok bool, err error) {
	line = strings.TrimRight(line, " \t\n\r\x00\v")
	line = strings.Map(func(r rune) rune { // it removes control characters
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	names := strings.Split(XDMoDFormat, ",")
	values := strings.SplitN(line, "|", len(names))
	if len(values) != len(names) {
		return j, false, fmt.Errorf("malformed line %q", line)
	}
	j.text = map[string]string{}
	for i, name := range names {
		j.text[name] = values[i]
	}
	id := j.text["jobid"]
	if strings.Contains(id, ".") || j.text["end"] == "Unknown" || j.text["nodelist"] == "None assigned" {
		return j, false, nil
	}
	j.state, _, _ = strings.Cut(strings.ToUpper(j.text["state"]), " ")
	if !slices.Contains([]string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "PREEMPTED", "TIMEOUT",
		"OUT_OF_MEMORY", "DEADLINE", "REVOKED"}, j.state) {
		return j, false, nil
	}
	seq, index, array := strings.Cut(id, "_")
	if j.index = -1; array {
		if j.index, err = strconv.ParseInt(index, 10, 32); err != nil {
			return j, false, err
		}
	}
	unsigned, err := strconv.ParseUint(seq, 10, 32)
	if err != nil {
		return j, false, err
	}
	j.id = int64(unsigned)
	for name, place := range map[string]*int64{"start": &j.start, "end": &j.end, "submit": &j.submit} {
		at, err := time.Parse("2006-01-02T15:04:05", j.text[name])
		if err != nil {
			return j, false, err
		}
		*place = at.Unix()
	}
	j.elapsed, j.limit = shredSeconds(j.text["elapsed"]), shredSeconds(j.text["timelimit"])
	j.nodes, _ = strconv.ParseInt(j.text["nnodes"], 10, 64)
	j.cpus, _ = strconv.ParseInt(j.text["ncpus"], 10, 64)
	for amount := range strings.SplitSeq(j.text["alloctres"], ",") {
		if n, found := strings.CutPrefix(amount, "gres/gpu="); found {
			j.gpus, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	j.node = j.text["nodelist"]
	if i := strings.IndexAny(j.node, ",["); i >= 0 {
		return j, false, fmt.Errorf("node %q is a list", j.node)
	}
	j.name = j.text["jobname"]
	switch {
	case j.start == 0 || j.end == 0 || j.start > j.end:
		err = fmt.Errorf("job %s: bad times %d to %d", id, j.start, j.end)
	case j.nodes == 0 || j.cpus == 0 || j.nodes > j.cpus:
		err = fmt.Errorf("job %s: %d nodes, %d CPUs", id, j.nodes, j.cpus)
	}
	return j, err == nil, err
}

// shredSeconds reads [[days-]hours:]minutes:seconds; what does not match is 0.
func shredSeconds(text string) (seconds int64) {
	days, clock, found := strings.Cut(text, "-")
	if !found {
		days, clock = "0", text
	}
	n, _ := strconv.ParseInt(days, 10, 64)
	parts := strings.Split(clock, ":")
	if len(parts) < 2 {
		return 0
	}
	var rest int64
	for _, p := range parts {
		v, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return 0
		}
		rest = rest*60 + v
	}
	return n*86400 + rest
}

// checkShredded compares what XDMoD reads with the attempt.
func checkShredded(t *testing.T, j xdmodJob, r *accounting.AttemptRecord) {
	t.Helper()
	a := &r.AttemptEntry
	index := int64(-1)
	if r.Job.Array {
		index = int64(a.Index)
	}
	got := []int64{j.id, j.index, j.start, j.submit, j.elapsed, j.cpus, j.nodes, j.gpus, j.limit}
	want := []int64{int64(r.Job.Seq), index, int64(a.Started) / 1000, int64(r.Job.Submitted) / 1000,
		(a.Wall - a.Suspended) / 1000, int64(a.Held.CPU+999) / 1000, 1, int64(a.Held.GPUs), r.Job.Walltime / 1000}
	if !slices.Equal(got, want) {
		t.Errorf("job %d: numbers\n%v, want\n%v", r.Job.Seq, got, want)
	}
	if end := int64(a.Ended) / 1000; a.Ended >= a.Started && j.end != end {
		t.Errorf("job %d: end %d, want %d", r.Job.Seq, j.end, end)
	}
	for name, want := range map[string]string{"user": r.Job.Owner, "group": r.Job.UnixGroup, "account": r.Job.Group,
		"partition": cmp.Or(r.Job.Queue, roost.DefaultQueueName), "nodelist": a.Node, "jobname": r.Job.Name,
		"qos": r.Job.Band.String(),
		"gid": strconv.Itoa(int(r.Job.GID)), "uid": strconv.Itoa(int(r.Job.UID))} {
		// The shredder cuts blanks at the end of the line.
		if back, err := accountingtest.Unescape(j.text[name]); err != nil || back != want && (name != "jobname" ||
			back != strings.TrimRight(want, " ")) {
			t.Errorf("job %d: %s: got %q, want %q (%v)", r.Job.Seq, name, back, want, err)
		}
	}
}

// TestXDMoD reads the sample back as XDMoD would. Only attempts that ended come back,
// with all that was in them.
func TestXDMoD(t *testing.T) {
	var b bytes.Buffer
	p, err := NewXDMoD(&b, "pool")
	if err != nil {
		t.Fatal(err)
	}
	rows := accountingtest.Sample()
	for _, name := range accountingtest.OddNames() {
		row := accountingtest.WithNames(name)
		if name == "" {
			row.Node = "node1"
		}
		rows = append(rows, row)
	}
	printAll(t, p, rows)
	accountingtest.CheckGolden(t, "xdmod.txt", b.Bytes())
	rows = slices.DeleteFunc(rows, func(r *accounting.AttemptRecord) bool { return r.Ended == 0 })
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(rows) {
		t.Fatalf("%d lines, want %d", len(lines), len(rows))
	}
	for i, line := range lines {
		j, ok, err := shred(line)
		if err != nil || !ok {
			t.Errorf("line %d is not taken (%v): %s", i+1, err, line)
			continue
		}
		checkShredded(t, j, rows[i])
	}
	big := accountingtest.WithNames("x")
	big.Job.Seq = 1 << 32
	if err := p.Print(big); !errors.Is(err, roost.Invalid) {
		t.Errorf("a number of 33 bits: %v", err)
	}
}

// FuzzXDMoD holds that no name breaks a line for XDMoD.
func FuzzXDMoD(f *testing.F) {
	for _, name := range accountingtest.OddNames() {
		f.Add(name, int64(1))
	}
	f.Add(strings.Repeat("long ä", 100), int64(1))
	f.Fuzz(func(t *testing.T, name string, number int64) {
		if name == "" {
			return
		}
		var b bytes.Buffer
		p, err := NewXDMoD(&b, name)
		if err != nil {
			t.Fatal(err)
		}
		row := accountingtest.WithNames(name)
		row.Held.CPU, row.Wall = roost.MilliCPU(number), number
		printAll(t, p, []*accounting.AttemptRecord{row})
		line, one := strings.CutSuffix(b.String(), "\n")
		if !one || strings.Contains(line, "\n") {
			t.Fatalf("%q is not one line", b.String())
		}
		j, ok, err := shred(line)
		if err != nil || !ok {
			t.Fatalf("the line is not taken (%v): %q", err, line)
		}
		for _, field := range []string{"user", "account", "nodelist", "cluster"} {
			back, err := accountingtest.Unescape(j.text[field])
			if err != nil || back != name && (len(name) <= xdmodTextBytes/3 || !strings.HasPrefix(name, back)) {
				t.Errorf("%s: got %q, want %q (%v)", field, back, name, err)
			}
			if len(j.text[field]) > xdmodTextBytes {
				t.Errorf("%s has %d bytes", field, len(j.text[field]))
			}
		}
	})
}

// BenchmarkXDMoD measures rows for XDMoD. A day of 1e6 rows should take 20 s at most.
func BenchmarkXDMoD(b *testing.B) {
	var out countingWriter
	p, err := NewXDMoD(&out, "pool")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for r := range accountingtest.Random(1, b.N) {
		if err := p.Print(&r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkJSON measures rows of the JSON document.
func BenchmarkJSON(b *testing.B) {
	var out countingWriter
	p := NewJSON(&out, Options{Location: time.UTC})
	for r := range accountingtest.Random(1, b.N) {
		if err := p.Print(&r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// countingWriter counts bytes.
type countingWriter int64

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}
