package translate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// readJobs reads a job file as the web daemon does, which has no files.
func readJobs(text string) ([]jobspec.Job, error) {
	jobs, diags := submit.ParseFile([]byte(text), submit.ParseOptions{Filename: "job.hcl", Dir: "/home/ann/sims",
		Home: "/home/ann", User: "ann", Environ: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PRICE=5$"},
		Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)})
	if diags.HasErrors() {
		return nil, diags
	}
	return jobs, nil
}

// queued is a job as a schedd would have it.
func queued(j jobspec.Job) QueuedJob {
	q := QueuedJob{Ad: j.Ad.Copy(), Count: j.Count, Columns: j.Columns, Array: j.Array}
	list, _ := q.Ad.Strings(roost.AttrDependsOn)
	for _, d := range list {
		if kind, of, _ := strings.Cut(d, ":@"); of != "" {
			d = kind + ":10" + of + ".host"
		}
		q.Depends = append(q.Depends, d)
	}
	if set, ok := q.Ad.Str(roost.AttrInAlloc); ok && strings.HasPrefix(set, "@") {
		q.Ad.SetString(roost.AttrInAlloc, "10"+set[1:]+".host")
	}
	q.Ad.SetInt(roost.AttrQDate, 1)
	q.Ad.SetString(roost.AttrOwner, "ann")
	return q
}

// TestJobsAgain writes the job files of all jobs that there are examples of, and reads
// them. Each has to be the same job again, and nothing may be left out of it.
func TestJobsAgain(t *testing.T) {
	files, _ := filepath.Glob("../submit/testdata/jobs/*.hcl")
	samples, _ := filepath.Glob("../../etc/jobs/*.hcl")
	jobs, unread := 0, 0
	for _, name := range append(files, samples...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := readJobs(string(text))
		if err != nil { // it reads files, or needs values of variables
			unread++
			continue
		}
		for _, j := range all {
			names := j.Ad.Names()
			if !slices.ContainsFunc([]string{roost.AttrCmd, roost.AttrScript, roost.AttrUseEntrypoint, roost.AttrAlloc},
				func(name string) bool { return slices.Contains(names, name) }) {
				unread++ // what it runs depends on files
				continue
			}
			jobs++
			checkAgain(t, fmt.Sprintf("%s, job %s", filepath.Base(name), j.Name), queued(j))
		}
	}
	t.Logf("%d jobs, and %d files that cannot be read without files", jobs, unread)
	if jobs < 60 || unread > 12 {
		t.Errorf("%d jobs were looked at, and %d files were not read", jobs, unread)
	}
}

// checkAgain writes a job, reads it, and compares.
func checkAgain(t *testing.T, name string, q QueuedJob) string {
	t.Helper()
	file, err := WriteJob(q)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	again, err := readJobs(file.Text)
	if err != nil || len(again) != 1 {
		t.Errorf("%s: %v\n%s", name, err, file.Text)
		return ""
	}
	if different := Differences(q, queued(again[0])); len(different) > 0 || len(file.Notes) > 0 {
		t.Errorf("%s: differs in %q, notes %q\n%s\nwas %s\nand is %s", name, different, file.Notes, file.Text, q.Ad,
			again[0].Ad)
	}
	if depends, _ := again[0].Ad.Strings(roost.AttrDependsOn); !slices.Equal(depends, q.Depends) {
		t.Errorf("%s: depends on %q, want %q", name, depends, q.Depends)
	}
	return file.Text
}

// TestJobFileText looks at the text of a job with values of its tasks.
func TestJobFileText(t *testing.T) {
	jobs, err := readJobs(`job "grid" {
  for_each    = [{ lr = 0.1, mode = "fast" }, { lr = 0.01, mode = "it's $5 ${1 + 1}" }]
  command     = ["train", "--lr=${each.value.lr}", each.value.mode, "$HOME", "%%{x}", "$${HOME}"]
  environment = { NAME = "run-${task.index}", API_TOKEN = "t0ps3cret" }
  inputs      = { "data.csv" = "/shared/data.csv" }
  stdout      = "out.${task.job}.${task.index}"
  memory      = "1GiB"
  override {
    tasks  = [1]
    memory = "2GiB"
  }
}
`)
	if err != nil {
		t.Fatal(err)
	}
	file, err := WriteJob(queued(jobs[0]))
	if err != nil {
		t.Fatal(err)
	}
	const want = `job "grid" {
  for_each = [
    { lr = "0.1", mode = "fast" },
    { lr = "0.01", mode = "it's $5 2" },
  ]

  command = ["train", "--lr=${each.value.lr}", "${each.value.mode}", "$HOME", "%%{x}", "$${HOME}"]

  directory = "/home/ann/sims"
  environment = {
    NAME = "run-${task.index}"
  }

  stdout = "/home/ann/sims/out.${task.job}.${task.index}"
  inputs = {
    "data.csv" = "/shared/data.csv"
  }

  cpus   = 1
  memory = "1GiB"

  override {
    tasks  = "1"
    memory = "2GiB"
  }
}
`
	if file.Text != want {
		t.Errorf("got\n%s\nwant\n%s", file.Text, want)
	}
	if len(file.Notes) != 1 || !strings.Contains(file.Notes[0], "API_TOKEN") ||
		strings.Contains(file.Text+file.Notes[0], "t0ps3cret") {
		t.Errorf("notes %q", file.Notes)
	}
	again, err := readJobs(file.Text)
	if err != nil {
		t.Fatal(err)
	}
	if d := Differences(queued(jobs[0]), queued(again[0])); !slices.Equal(d, []string{roost.AttrEnvironment}) {
		t.Errorf("differs in %q", d)
	}
}

// TestIndexedJob writes jobs whose tasks have both indexes and values, and a script that
// cannot be written as lines.
func TestIndexedJob(t *testing.T) {
	for _, text := range []string{
		"job \"a\" {\n  indexes = \"2-8:3\"\n  command = [\"echo\", each.value, \"${each.value * 2}\"]\n}\n",
		"job \"b\" {\n  script = \"printf 'a\\\\r\\\\n'\\r\\n\\u0001 END\"\n}\n",
		"job \"d\" {\n  command = [\"a\"]\n  count = 3\n  cpus = 4\n  cores = \"whole\"\n  threads_per_core = 1\n" +
			"  numa = \"one\"\n  cpu_slack = false\n  memory_slack = true\n  disk_io = \"50MB/s\"\n" +
			"  network = \"100Mbit/s\"\n  override {\n    tasks = [1]\n    disk_io = \"7KiB/s\"\n  }\n}\n",
		"job \"c\" {\n  script = <<-E\n    echo END\n      $${HOME} $HOME %%{x}\n    END\n    E\n  count = 3\n}\n",
	} {
		jobs, err := readJobs(text)
		if err != nil {
			t.Fatal(err)
		}
		checkAgain(t, text, queued(jobs[0]))
	}
}

// TestUnwritableJobs are jobs that no job file can make.
func TestUnwritableJobs(t *testing.T) {
	for name, ad := range map[string]string{"script": `[JobName = "a"; Script = "#!/bin/sh"; ScriptFile = "00ff"]`,
		"flow": `[JobName = "a"; IsFlow = true]`, "terminal": `[JobName = "a"; Cmd = "sh"; Interactive = true]`} {
		parsed, err := classad.Parse(ad)
		if err != nil {
			t.Fatal(err)
		}
		if file, err := WriteJob(QueuedJob{Ad: parsed, Count: 1}); err == nil {
			t.Errorf("%s: %s", name, file.Text)
		}
	}
	odd, err := classad.Parse(`[JobName = "my job"; Cmd = "true"; Strange = 7; PBS = [Resource_List = [x = 1]];
		Arguments = { "$(NodeName)" }]`)
	if err != nil {
		t.Fatal(err)
	}
	file, err := WriteJob(QueuedJob{Ad: odd, Count: 1})
	if err != nil || len(file.Notes) != 4 {
		t.Errorf("%v, notes %q", err, file.Notes)
	}
}

// TestDifferences holds that each change of a job is seen.
func TestDifferences(t *testing.T) {
	read := func(text string) QueuedJob {
		jobs, err := readJobs(text)
		if err != nil {
			t.Fatal(err)
		}
		return queued(jobs[0])
	}
	was := read("job \"a\" {\n  for_each = [\"x\", \"y\"]\n  command = [\"echo\", each.value]\n  cpus = 2\n}\n")
	const form = "job %q {\n  for_each = [\"x\", %s]\n  command = [%q, each.value]\n  cpus = %s\n}\n"
	for want, text := range map[string]string{
		"Arguments":   fmt.Sprintf(form, "a", `"z"`, "echo", "2"),
		"RequestCpus": fmt.Sprintf(form, "a", `"y"`, "echo", "task.index + 2"),
		"JobName":     fmt.Sprintf(form, "b", `"y"`, "echo", "2"),
		"Cmd":         fmt.Sprintf(form, "a", `"y"`, "cat", "2"),
		"TaskCount":   fmt.Sprintf(form, "a", `"y", "z"`, "echo", "2"),
	} {
		if got := Differences(was, read(text)); !slices.Equal(got, []string{want}) {
			t.Errorf("differs in %q, want %s", got, want)
		}
	}
	same := read("job \"a\" {\n  for_each = [{ v = \"x\" }, { v = \"y\" }]\n" +
		"  command = [\"echo\", \"${each.value.v}\"]\n  cpus = \"2000m\"\n}\n")
	if got := Differences(was, same); len(got) > 0 {
		t.Errorf("differs in %q", got)
	}
}
