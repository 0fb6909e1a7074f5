package qstat

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var updateGolden = flag.Bool("update", false, "write the golden files instead of comparing with them")

var testNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testObjects returns jobs with difficult values: folded ones, ambiguous ones, and ones
// with control characters.
func testObjects() []*Object {
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprintf("n%d/0*%d", i, 1+i%8)
	}
	return []*Object{
		{Name: "1.pool.example.org", Attributes: []ObjectAttribute{
			{Name: "Job_Name", Value: "007"}, {Name: "Job_Owner", Value: "ann@n1"}, {Name: "resources_used",
				Resource: "ncpus", Value: "4"}, {Name: "resources_used", Resource: "walltime", Value: "00:01:02"},
			{Name: "job_state", Value: "R"}, {Name: "ctime", Value: "Thu Jan 13 18:02:02 2022"},
			{Name: "exec_host", Value: strings.Join(long, "+")},
			{Name: "Priority", Value: "-3"},
			{Name: "Mail_Users", Value: strings.Repeat("somebody@example.org,", 9) + "last@example.org"},
			{Name: "Variable_List", List: []string{"A=1,2", "EMPTY=", "LONG=" + strings.Repeat("x", 100), "N=0123",
				"BIG=123456789012345678901234567890", "HUGE=1e999", `J={"a": 1}`, "ESC=\x1b[2J\n\f\x7f\u009b",
				"RAW=\xff", "T=true"}},
			{Name: "comment", Value: "Job run at Thu Jan 13 at 18:02 on (n1:ncpus=4)|done"},
			{Name: "Exit_status", Value: "271"}, {Name: "project", Value: "1"},
		}},
		{Name: "2[].pool.example.org", Attributes: []ObjectAttribute{{Name: "Job_Name", Value: "b"},
			{Name: "array", Value: "True"}}},
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	if *updateGolden {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test -update and look at the change\ngot:\n%s", file, got)
	}
}

func TestFull(t *testing.T) {
	for name, make := range map[string]func(io.Writer) FullPrinter{
		"lines": func(w io.Writer) FullPrinter { return NewLines(w, false) },
		"wide":  func(w io.Writer) FullPrinter { return NewLines(w, true) },
		"dsv":   func(w io.Writer) FullPrinter { return NewDelimited(w, "|") },
		"comma": func(w io.Writer) FullPrinter { return NewDelimited(w, ",") },
		"xml":   func(w io.Writer) FullPrinter { return NewXML(w, false) },
		"json":  func(w io.Writer) FullPrinter { return NewJSON(w, testNoon, "roost-1", "pool") },
	} {
		var b bytes.Buffer
		full := make(&b)
		for _, o := range testObjects() {
			if err := full.Print(o); err != nil {
				t.Fatal(err)
			}
		}
		if err := full.Close(); err != nil {
			t.Fatal(err)
		}
		compareGolden(t, name, b.Bytes())
		if name == "json" && !json.Valid(b.Bytes()) {
			t.Error("what should be JSON is none")
		}
	}
	var b bytes.Buffer
	NewJSON(&b, testNoon, "roost-1", "pool").Close()
	NewXML(&b, false).Close()
	NewXML(&b, true).Close()
	compareGolden(t, "nothing", b.Bytes())
}

// TestFold checks that unfolding gives the value back, and that no line is too long.
func TestFold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var pieces []string
		for range 1 + rng.IntN(8) {
			pieces = append(pieces, strings.Repeat("aé", rng.IntN(60)))
		}
		value, name := strings.Join(pieces, ","), strings.Repeat("N", 1+rng.IntN(30))
		got := string(foldValue(nil, len(name)+7, value))
		if plain := strings.ReplaceAll(got, "\n\t", ""); plain != value {
			t.Fatalf("%q became %q", value, plain)
		}
		for i, line := range strings.Split(got, "\n\t") {
			if start := []int{len(name) + 7, tabColumn}[min(i, 1)]; start+
				len(line)-strings.Count(line, ",") > lastColumn+3 {
				t.Fatalf("a line of %d columns: %q", start+len(line), line)
			}
		}
	}
}

// TestJSONRoundTrip checks that every value gives valid JSON, and is read back unchanged.
func TestJSONRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune("ab01\"\\\n\t\r\f\b\x00\x1f\x7f{}[]:,.-+eE é\u2028\U0001f600")
	for range 3000 {
		value := make([]rune, rng.IntN(12))
		for i := range value {
			value[i] = alphabet[rng.IntN(len(alphabet))]
		}
		var b bytes.Buffer
		full := NewJSON(&b, testNoon, "v", "s")
		full.Print(&Object{Name: "1.s", Attributes: []ObjectAttribute{{Name: "comment", Value: string(value)},
			{Name: "Job_Name", Value: string(value)}}})
		full.Close()
		var got struct {
			Jobs map[string]struct {
				Name    string `json:"Job_Name"`
				Comment any    `json:"comment"`
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v in\n%s", string(value), err, b.Bytes())
		}
		if got.Jobs["1.s"].Name != string(value) {
			t.Fatalf("%q became %q", string(value), got.Jobs["1.s"].Name)
		}
		if text, ok := got.Jobs["1.s"].Comment.(string); ok && text != string(value) && string(value)[0] != '"' {
			t.Fatalf("%q became %q", string(value), text)
		}
	}
}

// TestXMLRoundTrip checks that every value gives valid XML, and is read back unchanged.
// Characters that XML cannot hold are replaced.
func TestXMLRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	alphabet := []rune("ab<>&'\"\n\t =]]>é\u2028\U0001f600")
	for range 2000 {
		value := make([]rune, rng.IntN(12))
		for i := range value {
			value[i] = alphabet[rng.IntN(len(alphabet))]
		}
		var b bytes.Buffer
		full := NewXML(&b, false)
		for range 2 {
			full.Print(&Object{Name: string(value),
				Attributes: []ObjectAttribute{{Name: "comment", Value: string(value)}, {Name: "Resource_List",
					Resource: "nodes", Value: string(value)}, {Name: "Resource_List", Resource: "mem", Value: "1"}}})
		}
		full.Close()
		var got struct {
			Job []struct {
				ID      string `xml:"Job_Id"`
				Comment string `xml:"comment"`
				Nodes   string `xml:"Resource_List>nodes"`
				Memory  string `xml:"Resource_List>mem"`
			}
		}
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v in\n%s", string(value), err, b.Bytes())
		}
		for _, j := range got.Job {
			if j.ID != string(value) || j.Comment != string(value) || j.Nodes != string(value) || j.Memory != "1" ||
				len(got.Job) != 2 {
				t.Fatalf("%q became %+v", string(value), got.Job)
			}
		}
	}
}

// testRows returns a job in each state.
func testRows() []*JobRow {
	all := []*JobRow{
		{ID: "1.pool.example.org", Name: "short", User: "ann", State: "R", CPU: "00:00:30", Wall: "00:01:00",
			RequestedWall: "01:00:00", Nodes: "1", Tasks: "4", Memory: "4096mb", Host: "n1.example.org/0*4",
			Comment: "Job run at Sun Mar 01 at 11:59 on (n1:ncpus=4:mem=4096mb)", Started: testNoon.Unix() - 60},
		{ID: "2[].pool.example.org", Name: "fifteen-letters", User: "bartholomew-the-elder", State: "B", Nodes: "1",
			Tasks: "1", Memory: "100gb", Subjobs: 8, Expired: 3, Started: testNoon.Unix() - 600},
		{ID: "2[1].pool.example.org", Name: "exactly-sixteen1", User: "bob", State: "X", CPU: "1:02:03",
			Wall: "123:00:00"},
		{ID: "123456789012.a-very-long-name-of-a-host", Name: "seventeen-letters", User: "ann", State: "Q",
			Comment:  "Not Running: " + strings.Repeat("no machine has what it asks for; ", 6),
			Estimate: testNoon.Unix() + 1800, RequestedCPU: "10:00:00", Memory: "9000000kb"},
		{ID: "5.pool", Name: "h", User: "ann", State: "H", Estimate: testNoon.Unix() + 3*86400},
		{ID: "6.pool", Name: "w", User: "ann", State: "W"},
		{ID: "7.pool", Name: "s", User: "ann", State: "S", CPU: "00:30:00", RequestedCPU: "01:00:00", Wall: "00:10:00",
			RequestedWall: "01:00:00", Started: testNoon.Unix() - 900,
			Host: strings.Repeat("node1/0*8+", 12) + "10.0.0.1/0"},
		{ID: "8.pool", Name: "q", User: "ann", State: "Q", Estimate: testNoon.Unix() + 40*86400},
		{ID: "9.pool", Name: "e", User: "ann", State: "E", Tasks: "1234", Memory: "17b"},
		{ID: "10.pool", Name: "f", User: "ann", State: "F", CPU: "00:00:00"},
	}
	for _, r := range all {
		r.Queue = map[bool]string{true: "a-queue-of-a-long-name", false: "batch"}[r.State == "W"]
	}
	return all
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	for _, form := range []struct{ wide, done bool }{{}, {wide: true}, {done: true}, {wide: true, done: true}} {
		fmt.Fprintf(&b, "== %+v\n", form)
		table := NewTable(&b, form.wide, form.done)
		for _, r := range testRows() {
			table.Print(r)
		}
	}
	b.WriteString("== of Torque\n")
	table := NewTorqueTable(&b)
	for _, r := range testRows() {
		table.Print(r)
	}
	compareGolden(t, "table", b.Bytes())
	b.Reset()
	for _, form := range []AlternateList{
		{}, {Wide: true}, {Hosts: true}, {Comments: true}, {Hosts: true, Comments: true}, {Hosts: true, SameLine: true},
		{Comments: true, SameLine: true}, {Comments: true, Hosts: true, SameLine: true},
		{Wide: true, Comments: true}, {Gigabytes: true}, {Megawords: true}, {Estimates: true},
		{Estimates: true, Wide: true},
	} {
		fmt.Fprintf(&b, "== %+v\n", form)
		form.Writer, form.Server, form.Now = &b, "pool", testNoon
		for _, r := range testRows() {
			form.Print(r)
		}
		form.Close()
	}
	for _, form := range []TorqueList{{}, {AlternateList{Hosts: true}}, {AlternateList{Comments: true, Hosts: true}},
		{AlternateList{Hosts: true, SameLine: true}}, {AlternateList{Gigabytes: true}}} {
		fmt.Fprintf(&b, "== Torque %+v\n", form.AlternateList)
		form.Writer, form.Server = &b, "pool"
		for _, r := range testRows() {
			form.Print(r)
		}
	}
	compareGolden(t, "alternate", bytes.ReplaceAll(b.Bytes(), []byte("W:<nil> "), nil))
}

func TestQueueTables(t *testing.T) {
	var b bytes.Buffer
	queues := []QueueRow{
		{Name: "fast", Enabled: true, Started: true, MaxRun: "8", Memory: "4gb", Walltime: "01:00:00",
			Type: "Execution", StateCounts: StateCounts{Queued: 3, Running: 123456, Held: 1, Waiting: 2, Exiting: 1,
				Begun: 1}},
		{Name: "a-queue-of-a-long-name", Type: "Route"},
	}
	QueueTable(&b, queues)
	QueueLimits(&b, "pool", queues, false, false)
	QueueLimits(&b, "pool", queues, false, true)
	ServerTable(&b, []ServerRow{{Name: "pool", Status: "Active", StateCounts: queues[0].StateCounts},
		{Name: "another-host.example.org", Status: "Terminating"}})
	compareGolden(t, "queues", b.Bytes())
}

func TestOptions(t *testing.T) {
	var b bytes.Buffer
	for _, line := range []string{
		"", "f", "f w", "f 1", "1 f", "f n", "n f", "s f", "a", "a i", "a r", "i H", "q a", "G M", "F=json", "f F=JSON",
		"f F=dsv D=;", "D=; f F=dsv", "f F=xml", "f F=json a", "f F=json 1", "f F=json w",
		"f F=json x", "f F=json H", "f F=default a", "1", "1 n", "1 s", "Q", "Q f", "Q a", "B", "B Q", "Q B",
		"B f F=json", "q", "q f", "q G", "u=ann,bob@n1", "f u=ann", "x u=ann", "T", "p", "J t", "E", "H", "i",
		"r", "W=iu ann,bob", "W=z", "W=a s", "Q w", "x", "f x", "x n", "l e c", "R",
	} {
		var given []GivenOption
		for _, word := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "iu ann", "iu_ann"),
			"a s", "a_s")) {
			letter, value, _ := strings.Cut(word, "=")
			given = append(given, GivenOption{letter[0], strings.ReplaceAll(value, "_", " ")})
		}
		o, wrong := ParseCommandLine(given)
		if len(wrong) > 0 {
			fmt.Fprintf(&b, "%-16s refused: %q\n", line, wrong)
		} else {
			fmt.Fprintf(&b, "%-16s %s\n", line, setFields(o))
			if plain := setFields(o); strings.Contains(line, "x") {
				o.InDialect(roost.Torque)
				if setFields(o) != plain {
					fmt.Fprintf(&b, "%-16s %s\n", "", setFields(o))
				}
			}
		}
	}
	compareGolden(t, "options", b.Bytes())
}

// setFields lists the fields of options that are not zero.
func setFields(o CommandOptions) string {
	var out []string
	for _, f := range strings.Fields(strings.Trim(fmt.Sprintf("%+v", o), "{}")) {
		if name, value, _ := strings.Cut(f, ":"); value != "" && value != "false" && value != "0" && value != "[]" {
			out = append(out, name+":"+value)
		}
	}
	return strings.Join(out, " ")
}
