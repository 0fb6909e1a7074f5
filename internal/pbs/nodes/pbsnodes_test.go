package nodes

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

func nodes() []*Node {
	at := time.Date(2026, 1, 13, 18, 2, 2, 0, time.UTC)
	return []*Node{
		{Name: "n1", Host: "n1", Arch: "linux", CPUs: 8, Memory: 16 * roost.GiB, Changed: at},
		{
			Name: "n2.example.org", Host: "n2.example.org", Arch: "linux", Version: "roost-1", CPUs: 4, GPUs: 2,
			Memory: 8174924 * roost.KiB, UsedCPUs: 4000, UsedGPUs: 1, UsedMem: 5 * roost.GiB,
			Jobs:    []RunningTask{{"12.srv", 2, false}, {"13[4].srv", 1, true}, {"14.srv", 0, false}},
			Comment: "a \"new\"\nfan", Condition: NodeCondition{Offline: true}, Changed: at, Used: at.Add(time.Hour),
		},
		{Name: "desk", Host: "desk", Arch: "linux", CPUs: 2, Memory: 1000 * roost.MiB, UsedCPUs: 500, UsedMem: 100,
			Jobs: []RunningTask{{"15.srv", 1, true}}, Condition: NodeCondition{Busy: true}},
		{Name: "gone", Host: "gone", Condition: NodeCondition{Unknown: true, Offline: true}, Comment: "burnt"},
		{Name: "a-machine-with-a-long-name", Host: "a-machine-with-a-long-name", CPUs: 128, Memory: 2 * roost.TiB,
			Condition: NodeCondition{Reserved: true, Asleep: true}},
	}
}

// TestFormats compares each format byte for byte.
func TestFormats(t *testing.T) {
	for name, o := range map[string]CommandOptions{
		"lines": {}, "dsv": {Format: Delimited, Delimiter: "|"}, "json": {Format: JSON}, "S": {Summary: true},
		"Sj":  {Summary: true, Jobs: true},
		"SjL": {Summary: true, Jobs: true, Long: true}, "SL": {Summary: true, Long: true},
		"S-dsv":  {Summary: true, Format: Delimited, Delimiter: ";;"},
		"Sj-dsv": {Summary: true, Jobs: true, Format: Delimited, Delimiter: "|"}, "torque": {Format: Torque},
		"xml": {Format: XML}, "S-json": {Summary: true, Format: JSON},
		"Sj-json": {Summary: true, Jobs: true, Format: JSON},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			p := NewPrinter(&got, &o, JSONHeader{Now: time.Unix(1795266000, 0).UTC(), Version: "roost-1",
				Server: "srv"})
			for _, n := range nodes() {
				if err := p.Print(n); err != nil {
					t.Fatal(err)
				}
			}
			if printed, err := p.Unknown("never"); printed != (o.Format == JSON) || err != nil {
				t.Errorf("an unknown node is printed: %v, %v", printed, err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, got.Bytes())
			if o.Format == JSON && !json.Valid(got.Bytes()) {
				t.Error("that is not JSON")
			}
		})
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *updateGolden {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
	}
}

// TestNoNodes checks that without nodes JSON still has its key, and that the other
// formats print nothing.
func TestNoNodes(t *testing.T) {
	for _, o := range []CommandOptions{{}, {Summary: true}, {Format: Delimited}, {Format: JSON}} {
		var got bytes.Buffer
		if err := NewPrinter(&got, &o, JSONHeader{}).Close(); err != nil {
			t.Fatal(err)
		}
		var doc struct{ Nodes map[string]any }
		if o.Format != JSON && got.Len() > 0 || o.Format == JSON &&
			(json.Unmarshal(got.Bytes(), &doc) != nil || doc.Nodes == nil) {
			t.Errorf("%+v: got %q", o, got.String())
		}
	}
}

// TestShort checks that memory is rounded as by OpenPBS, up from kilobytes.
func TestShort(t *testing.T) {
	for size, want := range map[roost.Bytes]string{
		0: "0kb", 1: "1kb", 999 * roost.KiB: "999kb", 1000 * roost.KiB: "1mb", 8174924 * roost.KiB: "8gb",
		16 * roost.GiB: "16gb", 2 * roost.TiB: "2tb", 900 * roost.MiB: "900mb",
	} {
		if got := shortSize(size); got != want {
			t.Errorf("%d: got %s, want %s", size, got, want)
		}
	}
}

// givenOf returns a command line as getopt would.
func givenOf(line string) (given []GivenOption) {
	for _, word := range strings.Fields(line) {
		if word[0] != '-' {
			given = append(given, GivenOption{0, word})
			continue
		}
		letter, value, _ := strings.Cut(word[1:], "=")
		given = append(given, GivenOption{letter[0], value})
	}
	return given
}

// TestRead checks which command lines are valid. In a line, "=" separates a letter from
// its value, and other words are operands.
func TestRead(t *testing.T) {
	for line, want := range map[string]string{
		"":              "usage",
		"n1 n2":         "show [n1 n2]",
		"-a":            "all []",
		"-a -v":         "all vnodes []",
		"-v n1":         "show vnodes [n1]",
		"-v":            "usage",
		"-a -S -j":      "all S j []",
		"-a -F=JSON":    "all json []",
		"-a -F=xml":     "usage",
		"-a -F=dsv":     "all dsv []",
		"-H n1":         "host [n1]",
		"-H":            "usage",
		"-a -H n1":      "usage",
		"-l":            "marked []",
		"-l n1":         "usage",
		"-o n1":         "offline [n1]",
		"-o":            "usage",
		"-o -C=fan n1":  "offline fan [n1]",
		"-C=fan -o n1":  "offline fan [n1]",
		"-r n1":         "clear [n1]",
		"-c n1":         "clear [n1]",
		"-C=fan n1":     "remark fan [n1]",
		"-C=fan":        "usage",
		"-a -o n1":      "usage",
		"-o -S n1":      "usage",
		"-d n1":         "usage",
		"-x":            "all xml []",
		"-x -a n1":      "show xml [n1]",
		"-N=fan n1":     "remark fan [n1]",
		"-q -s=srv -a":  "all []",
		"-S -L -D=; n1": "show S L [n1]",
	} {
		o, ok := ParseCommandLine(givenOf(line), roost.OpenPBS)
		got := "usage"
		if ok {
			got = setFields(o)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// TestReadTorque is TestRead in the Torque dialect.
func TestReadTorque(t *testing.T) {
	for line, want := range map[string]string{
		"":             "all torque []",
		"n1":           "show torque [n1]",
		"-a n1":        "show torque [n1]",
		"-x -q":        "all xml []",
		"-a -F=json":   "all json []",
		"-a -S -j":     "all S j []",
		"-l":           "marked torque []",
		"-l n1":        "marked torque [n1]",
		"-l free n1":   "marked torque free [n1]",
		"-l -n up":     "marked notes torque up []",
		"-o -N=fan n1": "offline torque fan [n1]",
		"-A=more n1":   "remark torque more added [n1]",
		"-o -N=n n1":   "offline torque [n1]",
		"-o":           "usage",
		"-c -d n1":     "usage",
	} {
		o, ok := ParseCommandLine(givenOf(line), roost.Torque)
		got := "usage"
		if ok {
			got = setFields(o)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func setFields(o CommandOptions) string {
	words := []string{[]string{"show", "all", "host", "marked", "offline", "clear", "remark"}[o.Action]}
	for word, is := range map[string]bool{"vnodes": o.Vnodes, "S": o.Summary, "notes": o.Notes} {
		if is {
			words = append(words, word)
		}
	}
	if o.Jobs {
		words = append(words, "j")
	}
	if o.Long {
		words = append(words, "L")
	}
	if o.Format != Lines {
		words = append(words, []string{"", "dsv", "json", "torque", "xml"}[o.Format])
	}
	if o.Comment != "" {
		words = append(words, o.Comment)
	}
	if o.Appended {
		words = append(words, "added")
	}
	if o.Wanted != "" {
		words = append(words, o.Wanted)
	}
	return fmt.Sprint(strings.Join(words, " "), " ", o.Nodes)
}

// TestExclusiveNode checks that an exclusive node without free processors has state
// job-exclusive.
func TestExclusiveNode(t *testing.T) {
	n := Node{CPUs: 4, UsedCPUs: 4000, Condition: NodeCondition{Exclusive: true}}
	if got, want := n.State(), "job-exclusive"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
