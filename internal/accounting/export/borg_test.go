package export

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

// borgFields are the fields of the messages of the format of 2019, in their order.
var borgFields = map[string]string{
	"collection_events": "time type collection_id scheduling_class missing_type collection_type priority " +
		"alloc_collection_id user collection_name collection_logical_name parent_collection_id " +
		"start_after_collection_ids max_per_machine max_per_switch vertical_scaling scheduler",
	"instance_events": "time type collection_id scheduling_class missing_type collection_type priority " +
		"alloc_collection_id instance_index machine_id alloc_instance_index resource_request.cpus " +
		"resource_request.memory constraint",
	"machine_events": "time machine_id type switch_id capacity.cpus capacity.memory platform_id " +
		"missing_data_reason",
	"machine_attributes": "time machine_id name value deleted",
	"instance_usage": "start_time end_time collection_id instance_index machine_id alloc_collection_id " +
		"alloc_instance_index collection_type average_usage.cpus average_usage.memory maximum_usage.cpus " +
		"maximum_usage.memory random_sample_usage.cpus random_sample_usage.memory assigned_memory page_cache_memory " +
		"cycles_per_instruction memory_accesses_per_instruction sample_rate cpu_usage_distribution " +
		"tail_cpu_usage_distribution",
}

var borgOptions = BorgOptions{
	Key: []byte("sixteen bytes it has"), CPU: 64_000, Memory: 256 * roost.GiB,
	Window: accounting.TimeRange{From: accountingtest.Begin, To: accountingtest.Begin + 2*3600_000},
}

func newTrace(t testing.TB, o BorgOptions) *BorgTrace {
	t.Helper()
	trace, err := NewBorgTrace(o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// readBorg unpacks a table, and reads it with encoding/csv, as readers of traces do.
func readBorg(t testing.TB, table string, packed *bytes.Buffer) (records []map[string]string, text string) {
	t.Helper()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(all)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if head := strings.Join(rows[0], " "); head != borgFields[table] {
		t.Errorf("%s has the fields\n%s\nwant\n%s", table, head, borgFields[table])
	}
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		records = append(records, record)
	}
	return records, string(all)
}

// jobsOf are the jobs of attempts, each once.
func jobsOf(rows []*accounting.AttemptRecord) (jobs []*accounting.JobEntry) {
	for _, r := range rows {
		if len(jobs) == 0 || jobs[len(jobs)-1].JobKey != r.Job.JobKey {
			jobs = append(jobs, r.Job)
		}
	}
	return jobs
}

// borgSample writes the events of the sample.
func borgSample(t testing.TB, trace *BorgTrace, rows []*accounting.AttemptRecord) (collections,
	instances []map[string]string, text string,
) {
	t.Helper()
	attempts := slices.DeleteFunc(slices.Clone(rows), func(a *accounting.AttemptRecord) bool { return a.Attempt == 0 })
	var c, i bytes.Buffer
	err := trace.WriteEvents(&c, &i, accountingtest.Rows(jobsOf(rows)), accountingtest.Rows(attempts))
	if err != nil {
		t.Fatal(err)
	}
	collections, one := readBorg(t, "collection_events", &c)
	instances, other := readBorg(t, "instance_events", &i)
	return collections, instances, one + other
}

// borgNext says which event may follow which in the life of an instance or collection.
// SUBMIT QUEUE ENABLE SCHEDULE EVICT FAIL FINISH KILL LOST are 0 to 8, as in the format.
var borgNext = map[string]string{"": "0", "0": "1 3 7", "1": "2 7", "2": "3 7", "3": "4 5 6 7 8", "4": "0", "5": "0"}

// checkLives holds that the events of each instance are a life, in the order of time.
func checkLives(t *testing.T, records []map[string]string) (lives map[string][]map[string]string) {
	t.Helper()
	lives = map[string][]map[string]string{}
	last, at := map[string]string{}, map[string]int64{}
	for _, r := range records {
		id := r["collection_id"] + "/" + r["instance_index"]
		if !slices.Contains(strings.Fields(borgNext[last[id]]), r["type"]) {
			t.Errorf("%s: event %s follows %s", id, r["type"], last[id])
		}
		now, err := strconv.ParseInt(r["time"], 10, 64)
		if err != nil || now < at[id] {
			t.Errorf("%s: event %s at %d follows one at %d (%v)", id, r["type"], now, at[id], err)
		}
		last[id], at[id] = r["type"], now
		lives[id] = append(lives[id], r)
	}
	return lives
}

// TestBorgEvents writes the sample, and finds each attempt in it.
func TestBorgEvents(t *testing.T) {
	trace := newTrace(t, borgOptions)
	rows := accountingtest.Sample()
	for i := range rows { // another job: of three tasks one ran; it was removed while another one waited
		if rows[i].Job.Array {
			rows[i].Job.Removed = true
			rows[i].Job.Tasks = 5
		}
	}
	collections, instances, text := borgSample(t, trace, rows)
	accountingtest.CheckGolden(t, "borg-events.csv", []byte(text))
	if got := len(checkLives(t, collections)); got != len(jobsOf(rows)) {
		t.Errorf("%d collections, want %d", got, len(jobsOf(rows)))
	}
	lives := checkLives(t, instances)
	machines := map[string]string{}
	for _, a := range rows {
		life := lives[fmt.Sprint(trace.collection(&a.Job.JobKey), "/", a.Index)]
		if a.Attempt == 0 {
			if got := life[len(life)-1]["type"]; got != "2" {
				t.Errorf("job %d waits, and its last event is %s", a.Job.Seq, got)
			}
			continue
		}
		starts := slices.DeleteFunc(slices.Clone(life), func(r map[string]string) bool { return r["type"] != "3" })
		start := starts[a.Attempt-1]
		if want := int64(a.Started-borgOptions.Window.From)*1000 + 600_000_000; start["time"] != fmt.Sprint(want) {
			t.Errorf("job %d: start %s, want %d", a.Job.Seq, start["time"], want)
		}
		if known := machines[a.Node]; known != "" && known != start["machine_id"] || start["machine_id"] == "0" {
			t.Errorf("job %d: machine %s, want %s", a.Job.Seq, start["machine_id"], known)
		}
		machines[a.Node] = start["machine_id"]
		cpus, err := strconv.ParseFloat(start["resource_request.cpus"], 64)
		memory, err2 := strconv.ParseFloat(start["resource_request.memory"], 64)
		if err != nil || err2 != nil || math.Abs(cpus*64_000-float64(a.Job.Request.CPU)) > 0.01 ||
			memory*float64(256*roost.GiB) != float64(a.Job.Request.Memory) {
			t.Errorf("job %d: request %g, %g", a.Job.Seq, cpus, memory)
		}
	}
	ends := map[string]int{}
	for _, r := range instances {
		if r["type"] >= "4" {
			ends[r["type"]]++
		}
	}
	// By the causes of the sample: 6 and one of the array were evicted; 8 failed; and
	// those that were evicted and did not run again were killed, with the two that never
	// ran.
	if got := fmt.Sprint(ends); got != "map[4:7 5:8 6:6 7:9]" {
		t.Errorf("ends by type: %s", got)
	}
	var kinds []string
	for _, r := range collections {
		if r["collection_id"] == fmt.Sprint(trace.collection(&rows[len(rows)-2].Job.JobKey)) {
			kinds = append(kinds, r["type"])
		}
	}
	if got := strings.Join(kinds, " "); got != "0 1 2 3 7" {
		t.Errorf("events of the array: %s", got)
	}
}

// TestBorgNames holds that no name is in a trace. Equal names have equal hashes, and
// others with another key.
func TestBorgNames(t *testing.T) {
	rows := accountingtest.Sample()
	rows[1].Job.Owner = "bob"
	collections, _, text := borgSample(t, newTrace(t, borgOptions), rows)
	for _, name := range []string{"ann", "bob", "node7", "fit", "scan", "physics", "higgs", "staff", "submit1"} {
		if strings.Contains(text, name) {
			t.Errorf("the trace names %s", name)
		}
	}
	users := map[string]bool{}
	for _, r := range collections {
		users[r["user"]] = true
	}
	if len(users) != 2 {
		t.Errorf("%d users, want 2", len(users))
	}
	other := borgOptions
	other.Key = []byte("another key of names")
	for i, r := range first(borgSample(t, newTrace(t, other), rows)) {
		if users[r["user"]] || r["collection_id"] == collections[i]["collection_id"] {
			t.Errorf("with another key event %d has the same names", i)
		}
	}
	for i, r := range first(borgSample(t, newTrace(t, borgOptions), rows)) {
		if r["user"] != collections[i]["user"] {
			t.Errorf("with the same key event %d has other names", i)
		}
	}
}

func first(collections, _ []map[string]string, _ string) []map[string]string { return collections }

// TestBorgMachines writes machines. The owners of machines do not show.
func TestBorgMachines(t *testing.T) {
	trace := newTrace(t, borgOptions)
	var b bytes.Buffer
	if _, err := trace.WriteMachineEvents(&b, accountingtest.Rows(accountingtest.Machines())); err != nil {
		t.Fatal(err)
	}
	events, text := readBorg(t, "machine_events", &b)
	var kinds []string
	for _, r := range events {
		kinds = append(kinds, r["type"])
		if r["capacity.cpus"] != "1" || r["capacity.memory"] != "1" {
			t.Errorf("capacity of the largest machine: %v", r)
		}
	}
	if got := strings.Join(kinds, " "); got != "1 3 2 1 3 2" {
		t.Errorf("types %s", got)
	}
	b.Reset()
	if _, err := trace.WriteMachineAttributes(&b, accountingtest.Rows(accountingtest.Machines())); err != nil {
		t.Fatal(err)
	}
	attributes, more := readBorg(t, "machine_attributes", &b)
	accountingtest.CheckGolden(t, "borg-machines.csv", []byte(text+more))
	names := map[string]int{}
	for _, r := range attributes {
		if names[r["name"]]++; (r["value"] == "") != (r["deleted"] == "true") {
			t.Errorf("attribute %v", r)
		}
	}
	if len(names) != 3 || len(attributes) != 12 {
		t.Errorf("attributes by name: %v", names)
	}
}

// TestBorgUsage writes usage, and scales it back.
func TestBorgUsage(t *testing.T) {
	trace := newTrace(t, borgOptions)
	rows := accountingtest.Sample()[:1]
	var b bytes.Buffer
	if _, err := trace.WriteUsage(&b, UsageOf(accountingtest.Rows(rows), usageHours)); err != nil {
		t.Fatal(err)
	}
	records, text := readBorg(t, "instance_usage", &b)
	accountingtest.CheckGolden(t, "borg-usage.csv", []byte(text))
	if len(records) != 2 {
		t.Fatalf("%d windows, want 2", len(records))
	}
	for name, want := range map[string]float64{"average_usage.cpus": 1200.0 / 64_000,
		"maximum_usage.cpus": 1500.0 / 64_000, "maximum_usage.memory": 3.0 / 256, "assigned_memory": 4.0 / 256,
		"page_cache_memory": 1.0 / 256 / 1024,
		"start_time":        660_125_000, "end_time": 900_000_000} {
		if got, err := strconv.ParseFloat(records[0][name], 64); err != nil || math.Abs(got-want) > want*1e-6 {
			t.Errorf("%s: got %g, want %g (%v)", name, got, want, err)
		}
	}
	if got := records[0]["collection_id"]; got != fmt.Sprint(trace.collection(&rows[0].JobKey)) {
		t.Errorf("collection %s", got)
	}
}

// TestBorgTimes gives what lies outside of the window the times of the format.
func TestBorgTimes(t *testing.T) {
	trace := newTrace(t, borgOptions)
	w := borgOptions.Window
	for at, want := range map[accounting.Millis]int64{w.From - 1: 0, w.From: 600_000_000, w.From + 1: 600_001_000,
		w.To - 1: 600_000_000 + 7200_000_000 - 1000, w.To: math.MaxInt64} {
		if got := trace.time(at); got != want {
			t.Errorf("%d: got %d, want %d", at-w.From, got, want)
		}
	}
}

// TestBorgErrors refuses traces without a key, window or machine, and returns the errors
// of records.
func TestBorgErrors(t *testing.T) {
	for name, change := range map[string]func(*BorgOptions){
		"key":    func(o *BorgOptions) { o.Key = o.Key[:15] },
		"window": func(o *BorgOptions) { o.Window.To = o.Window.From },
		"begin":  func(o *BorgOptions) { o.Window.From = 0 },
		"cpus":   func(o *BorgOptions) { o.CPU = 0 },
		"memory": func(o *BorgOptions) { o.Memory = 0 },
	} {
		o := borgOptions
		if change(&o); !refuses(o) {
			t.Errorf("a trace with a bad %s is made", name)
		}
	}
	broken := errors.New("disk error")
	trace := newTrace(t, borgOptions)
	failing := func(yield func(accounting.AttemptRecord, error) bool) { yield(accounting.AttemptRecord{}, broken) }
	if err := trace.WriteEvents(io.Discard, io.Discard, nil, failing); !errors.Is(err, broken) {
		t.Errorf("an error of the attempts: %v", err)
	}
	jobs := accountingtest.Rows(jobsOf(accountingtest.Sample()))
	if err := trace.WriteEvents(failingWriter{broken}, io.Discard, jobs, nil); !errors.Is(err, broken) {
		t.Errorf("an error of the writer: %v", err)
	}
}

func refuses(o BorgOptions) bool {
	_, err := NewBorgTrace(o)
	return errors.Is(err, roost.Invalid)
}

// FuzzBorg holds that records of any names and numbers are read back, and that no name
// shows.
func FuzzBorg(f *testing.F) {
	for _, name := range accountingtest.OddNames() {
		f.Add(name, int64(accountingtest.Begin), int64(1), uint8(1), int32(1))
	}
	f.Fuzz(func(t *testing.T, name string, at, wall int64, cause uint8, attempt int32) {
		row := accountingtest.WithNames("secret" + name)
		row.Job.Tasks, row.Job.Submitted, row.Job.Eligible = 1, 1, 0
		row.Started = accounting.Millis(max(at, 2))
		row.Ended = accounting.Millis(max(at, 2) + max(wall, 0)%1e9)
		row.Job.Ended = row.Ended
		row.Cause, row.Attempt = accounting.EndCause(cause), roost.AttemptNumber(max(attempt, 1))
		row.Job.Band = roost.PriorityBand(cause)
		row.Job.Request.CPU = roost.MilliCPU(wall)
		if row.Ended < row.Started {
			return
		}
		_, instances, text := borgSample(t, newTrace(t, borgOptions), []*accounting.AttemptRecord{row})
		if strings.Contains(text, "secret") {
			t.Errorf("the name shows: %s", text)
		}
		checkLives(t, instances)
	})
}

// BenchmarkBorg measures attempts with their jobs into the two tables of events. A day of
// 1e6 should take 20 s at most.
func BenchmarkBorg(b *testing.B) {
	trace := newTrace(b, borgOptions)
	attempts := func(yield func(accounting.AttemptRecord, error) bool) {
		for a, err := range accountingtest.Random(1, b.N) {
			if a.Job.Submitted = accountingtest.Begin; !yield(a, err) {
				return
			}
		}
	}
	b.ReportAllocs()
	var none iter.Seq2[accounting.JobEntry, error]
	if err := trace.WriteEvents(io.Discard, io.Discard, none, attempts); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
