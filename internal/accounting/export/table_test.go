package export

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

// parseCSV reads a file by the grammar of RFC 4180. encoding/csv would change line ends
// in values.
func parseCSV(text string) (rows [][]string, err error) {
	row, value := []string(nil), strings.Builder{}
	for i := 0; i < len(text); {
		if text[i] == '"' {
			for i++; ; i++ {
				if i >= len(text) {
					return nil, errors.New("a quoted value has no end")
				}
				if text[i] == '"' {
					if i++; i >= len(text) || text[i] != '"' {
						break
					}
				}
				value.WriteByte(text[i])
			}
		} else {
			for i < len(text) && text[i] != ',' && text[i] != '\r' {
				if text[i] == '"' || text[i] == '\n' {
					return nil, fmt.Errorf("%q stands outside of quotes", text[i])
				}
				value.WriteByte(text[i])
				i++
			}
		}
		row = append(row, value.String())
		value.Reset()
		switch {
		case strings.HasPrefix(text[i:], ","):
			i++
		case strings.HasPrefix(text[i:], "\r\n"):
			i += 2
			rows, row = append(rows, row), nil
		default:
			return nil, fmt.Errorf("a value is followed by %.10q", text[i:])
		}
	}
	if row != nil || len(rows) == 0 {
		return nil, errors.New("the last line has no end")
	}
	return rows, nil
}

// readCSV calls the values of a file by the names in its head.
func readCSV(text string) (records []map[string]string, err error) {
	rows, err := parseCSV(text)
	if err != nil {
		return nil, err
	}
	for _, r := range rows[1:] {
		if len(r) != len(rows[0]) {
			return nil, fmt.Errorf("a record has %d values, and the head %d", len(r), len(rows[0]))
		}
		record := map[string]string{}
		for i, name := range rows[0] {
			if r[i] != "" {
				record[name] = strings.TrimPrefix(r[i], "'")
			}
		}
		records = append(records, record)
	}
	return records, nil
}

// readJSONLines reads the same from JSON Lines.
func readJSONLines(text string) (records []map[string]string, err error) {
	for line := range strings.Lines(text) {
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		if object["v"] != json.Number("1") {
			return nil, fmt.Errorf("version %v", object["v"])
		}
		delete(object, "v")
		record := map[string]string{}
		for name, v := range object {
			record[name] = fmt.Sprint(v)
		}
		records = append(records, record)
	}
	return records, nil
}

// recordReader reads values of a record, and remembers the first error.
type recordReader struct {
	values map[string]string
	err    error
}

func (r *recordReader) fail(name string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s=%q: %w", name, r.values[name], err)
	}
}

func (r *recordReader) integer(name string) int64 {
	n, err := strconv.ParseInt(r.values[name], 10, 64)
	r.fail(name, err)
	return n
}

func (r *recordReader) thousandths(name string) int64 {
	whole, fraction, _ := strings.Cut(r.values[name], ".")
	n, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	r.fail(name, err)
	return n
}

func (r *recordReader) millis(name string) accounting.Millis {
	if r.values[name] == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, r.values[name])
	r.fail(name, err)
	return accounting.Millis(t.UnixMilli())
}

func (r *recordReader) truth(name string) bool {
	b, err := strconv.ParseBool(r.values[name])
	r.fail(name, err)
	return b
}

func (r *recordReader) resources(prefix string) roost.Resources {
	return roost.Resources{CPU: roost.MilliCPU(r.thousandths(prefix + "cpus")),
		Memory: roost.Bytes(r.integer(prefix + "memory_bytes")), Disk: roost.Bytes(r.integer(prefix + "disk_bytes")),
		GPUs: int(r.integer(prefix + "gpus")), GPUMemory: roost.Bytes(r.integer(prefix + "gpu_memory_bytes"))}
}

// attempt reads an attempt and its job back. The table has neither segments nor amounts
// that peaks do not have.
func (r *recordReader) attempt() *accounting.AttemptRecord {
	id, err := hex.DecodeString(r.values["source"])
	r.fail("source", err)
	source := accounting.SourceID{}
	copy(source[:], id)
	seq, host, _ := strings.Cut(r.values["job"], ".")
	number, err := strconv.ParseUint(seq, 10, 64)
	r.fail("job", err)
	band, err := roost.ParsePriorityBand(r.values["band"])
	r.fail("band", err)
	j := &accounting.JobEntry{
		JobKey: accounting.JobKey{Source: source, Seq: number}, Host: host, Name: r.values["name"],
		Owner: r.values["owner"], UID: uint32(r.integer("uid")), GID: uint32(r.integer("gid")),
		UnixGroup: r.values["unix_group"], Group: r.values["group"], Project: r.values["project"], Band: band,
		Queue: r.values["queue"], Array: r.truth("array"), Tasks: int(r.integer("tasks")),
		Request: r.resources("request_"), Walltime: r.thousandths("walltime_seconds"), Arguments: r.values["command"],
		WorkDir: r.values["work_dir"], Submitted: r.millis("submitted"), Eligible: r.millis("eligible"),
		Ended: r.millis("job_ended"), Removed: r.truth("removed"),
	}
	a := accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{JobKey: j.JobKey, Index: int(r.integer("index")),
			Attempt: roost.AttemptNumber(r.integer("attempt"))},
		Node: r.values["node"], Class: r.values["class"], AppClass: r.values["app_class"],
		Assigned: r.millis("assigned"), Started: r.millis("started"),
		Ended: r.millis("ended"), Held: r.resources("held_"), Wall: r.thousandths("wall_seconds"),
		UserCPU: r.thousandths("user_cpu_seconds"), SystemCPU: r.thousandths("system_cpu_seconds"),
		Suspended: r.thousandths("suspended_seconds"), Useful: r.thousandths("useful_seconds"),
		Peak: roost.Resources{Memory: roost.Bytes(r.integer("peak_memory_bytes")),
			Disk:      roost.Bytes(r.integer("peak_disk_bytes")),
			GPUMemory: roost.Bytes(r.integer("peak_gpu_memory_bytes"))},
		Read: r.integer("read_bytes"), Written: r.integer("written_bytes"), ExitCode: int32(r.integer("exit_code")),
		Signal: int32(r.integer("signal")), Reason: r.values["reason"],
	}
	for cause, name := range causeNames() {
		if name == r.values["cause"] {
			a.Cause = accounting.EndCause(cause)
		}
	}
	return &accounting.AttemptRecord{AttemptEntry: a, Job: j}
}

// formats are the two formats of tables with their readers.
var formats = map[string]struct {
	write func(*Table[accounting.AttemptRecord], io.Writer, iter.Seq2[accounting.AttemptRecord, error]) (int64, error)
	read  func(string) ([]map[string]string, error)
}{
	"csv":   {(*Table[accounting.AttemptRecord]).WriteCSV, readCSV},
	"jsonl": {(*Table[accounting.AttemptRecord]).WriteJSONLines, readJSONLines},
}

// checkAttempts compares the attempts that were read with those that were written.
func checkAttempts(t *testing.T, format string, records []map[string]string, rows []*accounting.AttemptRecord) {
	t.Helper()
	if len(records) != len(rows) {
		t.Fatalf("%s: %d records, want %d", format, len(records), len(rows))
	}
	for i, record := range records {
		r := recordReader{values: record}
		got, want := r.attempt(), *rows[i]
		want.Segments = nil
		if r.err != nil {
			t.Errorf("%s: record %d: %v", format, i, r.err)
		}
		if g, w := fmt.Sprintf("%+v %+v", *got.Job, got.AttemptEntry), fmt.Sprintf("%+v %+v", *want.Job,
			want.AttemptEntry); g != w {
			t.Errorf("%s: record %d:\n%q\nwant\n%q", format, i, g, w)
		}
	}
}

// TestAttempts writes the sample and odd names, and reads them back whole.
func TestAttempts(t *testing.T) {
	rows := accountingtest.Sample()
	rows = rows[:len(rows)-1] // the job without attempts
	for _, name := range accountingtest.OddNames() {
		rows = append(rows, accountingtest.WithNames(strings.ToValidUTF8(name, "\ufffd")))
	}
	for format, f := range formats {
		var b bytes.Buffer
		n, err := f.write(Attempts(), &b, accountingtest.Rows(rows))
		if err != nil || n != int64(len(rows)) {
			t.Fatalf("%s: %d records (%v)", format, n, err)
		}
		accountingtest.CheckGolden(t, "attempts."+format, b.Bytes())
		records, err := f.read(b.String())
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		checkAttempts(t, format, records, rows)
	}
}

// FuzzTables holds that any names and numbers come back from CSV and JSON Lines. No value
// of CSV may be a formula.
func FuzzTables(f *testing.F) {
	for _, name := range accountingtest.OddNames() {
		f.Add(name, int64(1500), int64(-1))
	}
	f.Fuzz(func(t *testing.T, name string, a, b int64) {
		row := accountingtest.WithNames(strings.ToValidUTF8(name, "\ufffd"))
		row.Wall, row.Suspended, row.Read, row.Written, row.UserCPU = a, b, a, b, b
		row.Held = roost.Resources{CPU: roost.MilliCPU(a), Memory: roost.Bytes(b), GPUs: int(a)}
		rows := []*accounting.AttemptRecord{row}
		for format, f := range formats {
			var out bytes.Buffer
			dirty := *row
			job := *row.Job
			job.Name, dirty.Job = name, &job
			_, err := f.write(Attempts(), &out, accountingtest.Rows([]*accounting.AttemptRecord{&dirty}))
			if err != nil {
				t.Fatal(err)
			}
			records, err := f.read(out.String())
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			checkAttempts(t, format, records, rows)
			if format == "csv" {
				checkFormulas(t, out.String())
			}
		}
	})
}

// checkFormulas holds that no value of a file is a formula. A number may have a sign.
func checkFormulas(t *testing.T, text string) {
	t.Helper()
	rows, err := parseCSV(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, value := range row {
			_, err := strconv.ParseFloat(value, 64)
			if value = strings.TrimSpace(value); err != nil && value != "" && strings.IndexByte("=+-@", value[0]) >= 0 {
				t.Errorf("%q is a formula", value)
			}
		}
	}
}

// TestFormulas compares what a spreadsheet would take for a formula with how it is
// written.
func TestFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": `"'=1+1"`, "+1": `"'+1"`, "-1": "-1", "-x": `"'-x"`, "@x": `"'@x"`, "\t=1": "\"'\t=1\"", " =1": `"' =1"`,
		"'x": `"''x"`, "\uff1d1": "\"'\uff1d1\"", "|x": `"'|x"`, "a=1": "a=1",
		"a,b": `"a,b"`, `a"b`: `"a""b"`, "a\nb": "\"a\nb\"",
		"": "", "\xff=1": "\ufffd=1",
	} {
		if got := string(appendCSVText(nil, text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// writeBoth writes a table in both formats, and compares it with its golden file.
func writeBoth[T any](t *testing.T, table *Table[T], rows []*T) (records []map[string]string) {
	t.Helper()
	var b, lines bytes.Buffer
	if _, err := table.WriteCSV(&b, accountingtest.Rows(rows)); err != nil {
		t.Fatal(err)
	}
	if _, err := table.WriteJSONLines(&lines, accountingtest.Rows(rows)); err != nil {
		t.Fatal(err)
	}
	accountingtest.CheckGolden(t, table.Name+".csv", b.Bytes())
	records, err := readCSV(b.String())
	if err != nil {
		t.Fatalf("%s: %v", table.Name, err)
	}
	same, err := readJSONLines(lines.String())
	if err != nil || fmt.Sprint(same) != fmt.Sprint(records) {
		t.Errorf("%s: the two formats differ (%v):\n%v\n%v", table.Name, err, same, records)
	}
	return records
}

// TestOtherTables writes the other tables, and reads parts of them back.
func TestOtherTables(t *testing.T) {
	rows := accountingtest.Sample()
	jobs := writeBoth(t, Jobs(), []*accounting.JobEntry{rows[0].Job, rows[len(rows)-1].Job})
	if jobs[0]["job"] != "11.submit1.pool" || jobs[1]["job_ended"] != "" {
		t.Errorf("jobs: %v", jobs)
	}
	machines := writeBoth(t, Machines(), accountingtest.Machines())
	for i, m := range accountingtest.Machines() {
		r := recordReader{values: machines[i]}
		if got := r.resources(""); got != m.Capacity || r.millis("time") != m.Time || machines[i]["node"] != m.Node ||
			machines[i]["what"] != machineChanges()[m.What] || machines[i]["by"] != m.By || r.err != nil {
			t.Errorf("machine %d: %v (%v)", i, machines[i], r.err)
		}
	}
	var segments []*SegmentRecord
	for s, err := range SegmentsOf(accountingtest.Rows(rows)) {
		if err != nil {
			t.Fatal(err)
		}
		segments = append(segments, &s)
	}
	var total int64
	for i, record := range writeBoth(t, Segments(), segments) {
		r := recordReader{values: record}
		total += r.thousandths("wall_seconds")
		if got := r.truth("suspended"); got != segments[i].Segment.Suspended || r.err != nil {
			t.Errorf("segment %d: %v (%v)", i, record, r.err)
		}
	}
	if len(segments) != 3 || total != segments[0].Wall {
		t.Errorf("%d segments of %d ms, want 3 of %d ms", len(segments), total, segments[0].Wall)
	}
}

// usageHours returns an hour of usage for each attempt, with two windows.
func usageHours(key accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error] {
	h := accounting.UsageHour{AttemptKey: key, Hour: accountingtest.Begin}
	h.Windows[0] = accounting.UsageSample{CPUMean: 1200, CPUMax: 1500, MemoryMax: 3 * roost.GiB, Cache: roost.MiB,
		GPUMax: 5, Read: 6, Written: 7}
	h.Windows[11] = accounting.UsageSample{CPUMean: 1, MemoryMax: roost.GiB}
	return accountingtest.Rows([]*accounting.UsageHour{&h})
}

// TestUsage writes windows of usage. They lie within their attempts.
func TestUsage(t *testing.T) {
	rows := accountingtest.Sample()[:1]
	var windows []*UsageWindow
	for w, err := range UsageOf(accountingtest.Rows(rows), usageHours) {
		if err != nil {
			t.Fatal(err)
		}
		windows = append(windows, &w)
	}
	records := writeBoth(t, Usage(), windows)
	if len(records) != 2 {
		t.Fatalf("%d windows, want 2", len(records))
	}
	for i, want := range []struct {
		begin, end accounting.Millis
		cpus       string
	}{
		{rows[0].Started, accountingtest.Begin + 300_000, "1.2"},
		{accountingtest.Begin + 3300_000, rows[0].Ended, "0.001"},
	} {
		r := recordReader{values: records[i]}
		if r.millis("begin") != want.begin || r.millis("end") != want.end || records[i]["cpus_mean"] != want.cpus {
			t.Errorf("window %d: %v, want %+v", i, records[i], want)
		}
	}
}

// TestTableErrors returns the errors of records and of writers.
func TestTableErrors(t *testing.T) {
	broken := errors.New("disk error")
	for format, f := range formats {
		rows := func(yield func(accounting.AttemptRecord, error) bool) {
			_ = yield(*accountingtest.Sample()[0], nil) && yield(accounting.AttemptRecord{}, broken)
		}
		if n, err := f.write(Attempts(), io.Discard, rows); !errors.Is(err, broken) || n != 1 {
			t.Errorf("%s: %d records, %v", format, n, err)
		}
		_, err := f.write(Attempts(), failingWriter{broken}, accountingtest.Random(1, 1000))
		if !errors.Is(err, broken) {
			t.Errorf("%s: an error of the writer: %v", format, err)
		}
	}
}

// failingWriter returns an error.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// BenchmarkTables measures records of attempts. A day of 1e6 should take 20 s at most.
func BenchmarkTables(b *testing.B) {
	for format, f := range formats {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			if _, err := f.write(Attempts(), io.Discard, accountingtest.Random(1, b.N)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
