package translate

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

var updateGolden = flag.Bool("update", false, "rewrite the expected results in testdata")

// TestGolden compares the translations of realistic scripts with testdata; -update
// rewrites it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".hcl") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := TranslateFile(src, SourceOptions{Name: filepath.Base(file)})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s# %s: %d jobs, %d carried, %d lost, %d differ\n", r.Text, r.From, r.Jobs,
				r.CarriedOver, r.Lost, r.Different)
			want, err := os.ReadFile(file + ".hcl")
			if *updateGolden {
				err = os.WriteFile(file+".hcl", []byte(got), 0o644)
				want = []byte(got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("run go test -update and look at the change; got:\n%s", got)
			}
			if again, err := TranslateFile(src, SourceOptions{Name: filepath.Base(file)}); err != nil ||
				again.Text != r.Text {
				t.Errorf("the second time it is another text (%v)", err)
			}
			parseJobFile(t, r.Text)
		})
	}
}

// parseJobFile parses a job file.
func parseJobFile(t *testing.T, text string) []submit.Job {
	t.Helper()
	environ := []string{}
	// everything that getenv may name
	for _, name := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`).FindAllString(text, -1) {
		environ = append(environ, name+"=x")
	}
	jobs, diags := submit.ParseFile([]byte(text), submit.ParseOptions{Filename: "x.hcl", Dir: "/data/ann",
		Home: "/home/ann", User: "ann", Environ: environ, Now: time.Unix(1e9, 0).UTC()})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return jobs
}

// twoLineFiles is a directory in which every file has two lines.
type twoLineFiles struct{ submit.FileAccess }

func (twoLineFiles) Read(string, int64) ([]byte, error) { return []byte("a  b\n c,d \n"), nil }
func (twoLineFiles) Glob(pattern string) ([]string, error) {
	return []string{"/data/ann/1.dat", "/data/ann/2.dat"}, nil
}
func (twoLineFiles) LookPath(name string) (string, error) { return "/bin/" + name, nil }
func (twoLineFiles) Access(string, bool) error            { return nil }
func (twoLineFiles) Stat(name string) (fs.FileInfo, error) {
	return fstest.MapFS{"x": {}}.Stat("x")
}

// TestItems checks the items of queue commands that come from files.
func TestItems(t *testing.T) {
	for _, test := range []struct{ queue, want string }{
		{"queue x, y from list.txt", "x=a y=b p=0; x=c y=d p=1; "},
		{"queue x from list.txt", "x=a  b y= p=0; x= c,d y= p=1; "},
		{"queue 2 x from list.txt", "x=a  b y= p=0; x=a  b y= p=1; x= c,d y= p=2; x= c,d y= p=3; "},
		{"queue x matching *.dat", "x=1.dat y= p=0; x=2.dat y= p=1; "},
		{"queue x, y from (\n 1 , 2\n 3, 4 5\n)", "x=1 y=2 p=0; x=3 y=4 5 p=1; "},
		{"queue 3", "x= y= p=0; x= y= p=1; x= y= p=2; "},
		{"queue", "x= y= p=0; "},
	} {
		src := "executable = /bin/echo\narguments = \"'x=$(x:)' 'y=$(y:)' p=$(Process)\"\n" + test.queue + "\n"
		r, err := TranslateFile([]byte(src), SourceOptions{Name: "x.sub", From: Condor})
		if err != nil {
			t.Fatal(err)
		}
		jobs, diags := submit.ParseFile([]byte(r.Text),
			submit.ParseOptions{Filename: "x", Dir: "/data/ann", Home: "/home/ann", Files: twoLineFiles{}})
		if diags.HasErrors() {
			t.Fatalf("%s: %v\n%s", test.queue, diags, r.Text)
		}
		got := ""
		args, _ := jobs[0].Ad.Strings(roost.AttrArguments)
		for i := range jobs[0].Count {
			line := strings.ReplaceAll(strings.Join(args, " "), "$(TaskIndex)", strconv.Itoa(i))
			for _, c := range jobs[0].Columns {
				line = strings.ReplaceAll(line, "$("+c.Name+")", c.Values[i])
			}
			got += line + "; "
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q\n%s", test.queue, got, test.want, r.Text)
		}
	}
}

// TestGPUModel checks that the condition for a GPU model holds on a machine that has one,
// and on no other.
func TestGPUModel(t *testing.T) {
	r, err := TranslateFile([]byte("#!/bin/sh\n#SBATCH --gres=gpu:a100:1\nx\n"), SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := parseJobFile(t, r.Text)[0].Ad.Lookup(roost.AttrRequirements)
	for models, want := range map[string]bool{`{"NVIDIA A100-SXM4-40GB"}`: true, `{"Tesla V100", "nvidia a100"}`: true,
		`{"Tesla V100"}`: false, `{}`: false} {
		ad, err := classad.Parse("[GpuModels = " + models + "]")
		if err != nil {
			t.Fatal(err)
		}
		job := classad.New()
		job.Insert(roost.AttrRequirements, e)
		ad.SetBool(roost.AttrRequirements, true)
		if got := classad.Match(job, ad, nil).Matched; got != want {
			t.Errorf("%s: %v, want %v", models, got, want)
		}
	}
}

// TestAmounts checks durations and sizes in the spellings of the other systems.
func TestAmounts(t *testing.T) {
	for in, want := range map[string]string{"90": "1h30m", "5:30": "5m30s", "1:00:00": "1h", "2-3": "2d3h",
		"2-3:30": "2d3h30m", "1-0:0:1": "1d1s", "UNLIMITED": "none", "0": "none", "1:2:3:4": "bad", "x": "bad",
		"": "bad", "1-": "bad"} {
		d, none, ok := parseSlurmTime(in)
		got := durationText(d)
		if none {
			got = "none"
		}
		if !ok {
			got = "bad"
		}
		if got != want {
			t.Errorf("slurmTime(%q) is %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"500": "500MiB", "4G": "4GiB", "1.5g": "1536MiB", "2048k": "2MiB",
		"1T": "1TiB", "512MiB": "512MiB", "1kw": "8KiB", "8gb": "8GiB", "x": "bad", "9999999999P": "bad"} {
		n, ok := parseSlurmSize(in)
		got := sizeText(n)
		if !ok {
			got = "bad"
		}
		if got != want {
			t.Errorf("slurmSize(%q) is %s, want %s", in, got, want)
		}
	}
}
