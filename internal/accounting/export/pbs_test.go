package export

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

// pbsLine is the pattern of a line that the shredder of XDMoD has for PBS.
var pbsLine = regexp.MustCompile(`^(\d{2}/\d{2}/\d{4})\s(\d{2}:\d{2}:\d{2});(\w);([^;]+);(.*)`)

// pbsID is the number of a job and the index of a task in it.
var pbsID = regexp.MustCompile(`^(\d+)(?:\[(\d+)?\])?$`)

// pbsJob is what the shredder of XDMoD makes of an E record.
type pbsJob struct {
	seq, index  int64 // index is -1 if there is none
	host        string
	nodes, cpus int
	values      map[string]string // attributes as in the line
	node        string
}

// shredPBS reads a line by the rules of the shredder of XDMoD 11.5 for PBS. It returns
// the type of the record, and reads only E records further.
func shredPBS(line string) (kind string, j pbsJob, err error) {
	line = strings.TrimRight(line, " \t\n\r\x00\v")
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	m := pbsLine.FindStringSubmatch(line)
	if m == nil {
		return "", j, fmt.Errorf("malformed line %q", line)
	}
	if kind = m[3]; kind != "E" {
		return kind, j, nil
	}
	sequence, host, _ := strings.Cut(m[4], ".")
	id := pbsID.FindStringSubmatch(sequence)
	if id == nil {
		return kind, j, fmt.Errorf("unknown form of id %q", m[4])
	}
	j.host, j.index = host, -1
	j.seq, _ = strconv.ParseInt(id[1], 10, 64)
	if id[2] != "" {
		j.index, _ = strconv.ParseInt(id[2], 10, 64)
	}
	j.values = map[string]string{}
	for _, param := range regexp.MustCompile(`\s+`).Split(m[5], -1) {
		key, value, ok := strings.Cut(param, "=")
		if !ok {
			return kind, j, fmt.Errorf("%q has no =: a value has a blank", param)
		}
		j.values[key] = value
	}
	hosts := map[string]int{}
	for part := range strings.SplitSeq(j.values["exec_host"], "+") {
		node, list, ok := strings.Cut(part, "/")
		if !ok {
			return kind, j, fmt.Errorf("exec_host %q", part)
		}
		for cpu := range strings.SplitSeq(list, ",") {
			n := 1
			if _, count, many := strings.Cut(cpu, "*"); many {
				if n, err = strconv.Atoi(count); err != nil {
					return kind, j, err
				}
			}
			hosts[node] += n
			j.cpus += n
		}
		j.node = node
	}
	j.nodes = len(hosts)
	start, end := j.number("start"), j.number("end")
	if start == 0 || end == 0 || start > end || j.nodes == 0 || j.nodes > j.cpus {
		return kind, j, fmt.Errorf("job %d: %d to %d on %d nodes, %d CPUs", j.seq, start, end, j.nodes, j.cpus)
	}
	return kind, j, nil
}

// number reads an attribute: a number, a duration in seconds, or a size in bytes.
func (j *pbsJob) number(key string) int64 {
	text := j.values[key]
	if h, rest, ok := strings.Cut(text, ":"); ok {
		m, s, _ := strings.Cut(rest, ":")
		hours, _ := strconv.ParseInt(h, 10, 64)
		minutes, _ := strconv.ParseInt(m, 10, 64)
		seconds, _ := strconv.ParseInt(s, 10, 64)
		return hours*3600 + minutes*60 + seconds
	}
	if kib, ok := strings.CutSuffix(text, "kb"); ok {
		n, _ := strconv.ParseInt(kib, 10, 64)
		return n * 1024
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// text reads a name.
func (j *pbsJob) text(t *testing.T, key string) string {
	t.Helper()
	text, err := accountingtest.Unescape(j.values[key])
	if err != nil {
		t.Errorf("%s=%s: %v", key, j.values[key], err)
	}
	return text
}

// checkPBSJob compares what XDMoD reads with the attempt.
func checkPBSJob(t *testing.T, j *pbsJob, a *accounting.AttemptRecord) {
	t.Helper()
	index := int64(-1)
	if a.Job.Array {
		index = int64(a.Index)
	}
	end := a.Ended
	if end < a.Started {
		end = a.Started + accounting.Millis(a.Wall)
	}
	got := []int64{j.seq, j.index, j.number("ctime"), j.number("start"), j.number("end"),
		j.number("resources_used.walltime"), j.number("resources_used.cput"), j.number("resources_used.mem"),
		int64(j.cpus),
		j.number("Resource_List.walltime"), j.number("Resource_List.mem"), j.number("run_count"), int64(j.nodes)}
	want := []int64{int64(a.Job.Seq), index, int64(a.Job.Submitted) / 1000, int64(a.Started) / 1000, int64(end) / 1000,
		(a.Wall - a.Suspended) / 1000, (a.UserCPU + a.SystemCPU) / 1000, int64(a.Peak.Memory+1023) / 1024 * 1024,
		int64(a.Held.CPU+999) / 1000, a.Job.Walltime / 1000, int64(a.Job.Request.Memory), int64(a.Attempt), 1}
	if !slices.Equal(got, want) {
		t.Errorf("job %d: numbers\n%v, want\n%v", a.Job.Seq, got, want)
	}
	account := cmp.Or(a.Job.Project, a.Job.Group)
	names := map[string]string{"user": a.Job.Owner, "group": cmp.Or(a.Job.UnixGroup, "200"), "account": account,
		"jobname": a.Job.Name,
		"queue":   cmp.Or(a.Job.Queue, roost.DefaultQueueName), "project": a.Job.Group}
	for _, key := range []string{"user", "group", "queue"} { // its tables need them
		if _, there := j.values[key]; !there {
			t.Errorf("job %d: there is no %s", a.Job.Seq, key)
		}
	}
	for key, want := range names {
		if got := j.text(t, key); got != want {
			t.Errorf("job %d: %s: got %q, want %q", a.Job.Seq, key, got, want)
		}
	}
	if node, err := accountingtest.Unescape(j.node); err != nil || node != a.Node {
		t.Errorf("job %d: node %q, want %q (%v)", a.Job.Seq, node, a.Node, err)
	}
}

// sampleRecords returns the sample as the records of a log, with some actions.
func sampleRecords(t *testing.T, rows []*accounting.AttemptRecord) PBSRecords {
	t.Helper()
	var jobs []*accounting.JobEntry
	byKey := map[accounting.JobKey]*accounting.JobEntry{}
	for _, r := range rows {
		if byKey[r.Job.JobKey] == nil {
			byKey[r.Job.JobKey] = r.Job
			jobs = append(jobs, r.Job)
		}
	}
	started := func(a *accounting.AttemptRecord) accounting.Millis { return a.Started }
	ended := func(a *accounting.AttemptRecord) accounting.Millis { return a.Ended }
	sortedBy := func(at func(*accounting.AttemptRecord) accounting.Millis) []*accounting.AttemptRecord {
		list := slices.DeleteFunc(slices.Clone(rows), func(a *accounting.AttemptRecord) bool { return at(a) == 0 })
		slices.SortStableFunc(list, func(a, b *accounting.AttemptRecord) int { return cmp.Compare(at(a), at(b)) })
		return list
	}
	var actions []*accounting.JobAction
	for i, what := range []string{"removed", "removed", "checkpointed", "restored", "suspended", "resumed", "held"} {
		actions = append(actions, &accounting.JobAction{
			JobKey: rows[len(rows)-2].Job.JobKey, Index: i - 1, What: what,
			Time: accountingtest.Begin + accounting.Millis(i)*1000_000, By: []string{"root", ""}[i%2],
			Reason: "it depends on a job\nthat failed",
		})
	}
	return PBSRecords{
		Jobs:    accountingtest.Rows(jobs),
		Started: accountingtest.Rows(sortedBy(started)),
		Ended:   accountingtest.Rows(sortedBy(ended)),
		Actions: accountingtest.Rows(actions),
		FindJob: func(key accounting.JobKey) (*accounting.JobEntry, error) {
			if j := byKey[key]; j != nil {
				return j, nil
			}
			return nil, roost.NotFound
		},
	}
}

// TestPBS writes the sample, and reads it back as XDMoD would.
func TestPBS(t *testing.T) {
	rows := accountingtest.Sample()
	var b bytes.Buffer
	n, err := writePBS(&b, sampleRecords(t, rows), time.FixedZone("CET", 3600))
	if err != nil {
		t.Fatal(err)
	}
	accountingtest.CheckGolden(t, "pbs.txt", b.Bytes())
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if n != int64(len(lines)) {
		t.Errorf("%d records, and %d lines", n, len(lines))
	}
	kinds := map[string]int{}
	want := map[string]*accounting.AttemptRecord{}
	for _, r := range rows {
		if r.Ended != 0 && r.Cause.IsCharged() {
			want[fmt.Sprint(r.Job.Seq, r.Index, r.Attempt)] = r
		}
	}
	last := ""
	for i, line := range lines {
		if stamp := line[:19]; stamp < last {
			t.Errorf("line %d: the record is older than the one before it", i+1)
		} else {
			last = stamp
		}
		kind, j, err := shredPBS(line)
		if err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
		if kinds[kind]++; kind == "E" {
			key := fmt.Sprint(j.seq, max(j.index, 0), j.number("run_count"))
			if want[key] == nil {
				t.Fatalf("line %d: it is no attempt, or a second time: %s", i+1, line)
			}
			checkPBSJob(t, &j, want[key])
			delete(want, key)
		}
	}
	if len(want) != 0 {
		t.Errorf("these attempts have no E record: %v", slices.Sorted(maps.Keys(want)))
	}
	for _, kind := range []string{"Q", "S", "E", "D", "A", "R", "C", "T", "z", "r"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s record in the sample", kind)
		}
	}
}

// TestPBSOddNames writes names that a line cannot hold, and reads them back.
func TestPBSOddNames(t *testing.T) {
	for _, name := range accountingtest.OddNames() {
		row := accountingtest.WithNames(name)
		if name == "" {
			row.Node = "node1"
		}
		var b bytes.Buffer
		n, err := writePBS(&b, PBSRecords{Ended: accountingtest.Rows([]*accounting.AttemptRecord{row})}, time.UTC)
		if err != nil || n != 1 || strings.Count(b.String(), "\n") != 1 {
			t.Fatalf("%q: %d records (%v): %q", name, n, err, b.String())
		}
		_, j, err := shredPBS(b.String())
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		checkPBSJob(t, &j, row)
	}
}

// FuzzPBS holds that any record is one line that XDMoD reads, within the bound of PBS.
func FuzzPBS(f *testing.F) {
	for _, name := range accountingtest.OddNames() {
		f.Add(name, int64(1000), int64(0))
	}
	f.Add(strings.Repeat("\xff", 300), int64(1<<62), int64(-1<<63))
	f.Fuzz(func(t *testing.T, name string, a, b int64) {
		row := accountingtest.WithNames(name)
		row.Node = "n" + name
		row.Job.Array, row.Job.Seq, row.Index = true, uint64(a), int(uint32(b))
		row.Held = roost.Resources{CPU: roost.MilliCPU(a), Memory: roost.Bytes(a), GPUs: int(a)}
		row.Job.Request, row.Peak = row.Held, row.Held
		row.Wall, row.Suspended, row.UserCPU, row.Job.Walltime = a, b, a, a
		row.ExitCode, row.Signal = int32(a), int32(b)
		var out bytes.Buffer
		rows := []*accounting.AttemptRecord{row}
		n, err := writePBS(&out, PBSRecords{Ended: accountingtest.Rows(rows), Started: accountingtest.Rows(rows),
			Jobs: accountingtest.Rows([]*accounting.JobEntry{row.Job})}, time.UTC)
		lines := strings.SplitAfter(out.String(), "\n")
		if err != nil || n != 3 || len(lines) != 4 || lines[3] != "" {
			t.Fatalf("%d records (%v): %q", n, err, out.String())
		}
		for _, line := range lines[:3] {
			if len(line) > PBSLineBytes {
				t.Errorf("a line has %d bytes", len(line))
			}
		}
		_, j, err := shredPBS(lines[2])
		if err != nil {
			t.Fatalf("%v: %q", err, lines[2])
		}
		if got := j.text(t, "user"); !strings.HasPrefix(name, got) || len(name) < pbsNameBytes/3 && got != name {
			t.Errorf("user %q, want %q", got, name)
		}
	})
}

// file is a file in memory.
type file struct {
	bytes.Buffer
	closed int
}

func (f *file) Close() error {
	f.closed++
	return nil
}

// TestPBSDays writes a file for each local day, and closes each once.
func TestPBSDays(t *testing.T) {
	zone := time.FixedZone("UTC-1", -3600)
	var jobs []*accounting.JobEntry
	for i := range 49 {
		j := accountingtest.Job(uint64(i) + 1)
		j.Submitted = accountingtest.Begin + accounting.Millis(i)*3600_000
		jobs = append(jobs, j)
	}
	files := map[string]*file{}
	var order []string
	open := func(name string) (io.WriteCloser, error) {
		order = append(order, name)
		files[name] = &file{}
		return files[name], nil
	}
	if n, err := WritePBSDays(open, PBSRecords{Jobs: accountingtest.Rows(jobs)}, zone); n != 49 || err != nil {
		t.Fatalf("%d records (%v)", n, err)
	}
	if want := []string{"20261031", "20261101", "20261102"}; !slices.Equal(order, want) {
		t.Errorf("files %v, want %v", order, want)
	}
	for name, f := range files {
		date := name[4:6] + "/" + name[6:8] + "/" + name[:4]
		for line := range strings.Lines(f.String()) {
			if !strings.HasPrefix(line, date) {
				t.Errorf("file %s has %s", name, line)
			}
		}
		if f.closed != 1 {
			t.Errorf("file %s was closed %d times", name, f.closed)
		}
	}
	if got := strings.Count(files["20261101"].String(), "\n"); got != 24 {
		t.Errorf("the whole day has %d records, want 24", got)
	}
}

// TestPBSErrors returns errors of records, of files, and of records out of order.
func TestPBSErrors(t *testing.T) {
	broken := errors.New("disk error")
	late, early := accountingtest.Job(1), accountingtest.Job(2)
	late.Submitted += 5
	_, err := writePBS(io.Discard, PBSRecords{Jobs: accountingtest.Rows([]*accounting.JobEntry{late, early})}, time.UTC)
	if !errors.Is(err, roost.Invalid) {
		t.Errorf("records out of order: %v", err)
	}
	_, err = writePBS(io.Discard, PBSRecords{Jobs: func(yield func(accounting.JobEntry, error) bool) {
		_ = yield(*early, nil) && yield(accounting.JobEntry{}, broken)
	}}, time.UTC)
	if !errors.Is(err, broken) {
		t.Errorf("an error of the store: %v", err)
	}
	_, err = WritePBSDays(func(string) (io.WriteCloser, error) { return nil, broken },
		PBSRecords{Jobs: accountingtest.Rows([]*accounting.JobEntry{early})}, time.UTC)
	if !errors.Is(err, broken) {
		t.Errorf("an error of a file: %v", err)
	}
}

// BenchmarkPBS measures records of ends. A day of 1e6 should take 20 s at most.
func BenchmarkPBS(b *testing.B) {
	b.ReportAllocs()
	if _, err := writePBS(io.Discard, PBSRecords{Ended: accountingtest.Random(1, b.N)}, time.UTC); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// writePBS writes an accounting log of PBS in the order of time. The zone is of the time
// at the begin of each record. It returns the number of records.
func writePBS(w io.Writer, records PBSRecords, zone *time.Location) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	n, err := mergePBS(records, zone, func(_ accounting.Millis, line []byte) error {
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}
