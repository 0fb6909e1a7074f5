package sbatch

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// parse parses a command line and a script.
func parse(script string, environ []string, args ...string) (Result, error) {
	return Parse(args, qsub.QsubCaller{Dir: "/data", Home: "/home/ada", User: "ada", Host: "h", Environ: environ,
		Now: now, Stdin: func() ([]byte, error) { return []byte(script), nil },
		Read: func(path string) ([]byte, error) {
			if path != "/data/job.sh" {
				return nil, os.ErrNotExist
			}
			return []byte(script), nil
		}})
}

func TestLayouts(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "1:ncpus=1:mpiprocs=1",
		"-n 4":                         "1:ncpus=4:mpiprocs=4",
		"-N 2":                         "2:ncpus=1:mpiprocs=1",
		"-N 2 -n 5 -c 2":               "1:ncpus=6:mpiprocs=3+1:ncpus=4:mpiprocs=2",
		"-n 4 --ntasks-per-node=2":     "2:ncpus=2:mpiprocs=2",
		"-N3 -n2":                      "2:ncpus=1:mpiprocs=1",
		"--mem=2G":                     "1:ncpus=1:mpiprocs=1:mem=2048mb",
		"-n 2 -c 2 --mem-per-cpu=500":  "1:ncpus=4:mpiprocs=2:mem=2000mb",
		"--mem=1G --mem-per-cpu=100M":  "1:ncpus=1:mpiprocs=1:mem=100mb",
		"--gres=gpu:2":                 "1:ncpus=1:mpiprocs=1:ngpus=2",
		"-N 2 --gpus=4":                "2:ncpus=1:mpiprocs=1:ngpus=2",
		"-n 2 --gpus-per-task=1":       "1:ncpus=2:mpiprocs=2:ngpus=2",
		"-w n[1-2]":                    "1:ncpus=1:mpiprocs=1:host=n1+1:ncpus=1:mpiprocs=1:host=n2",
		"-N 2-4":                       "2:ncpus=1:mpiprocs=1",
		"-N 2 --ntasks-per-node=2 -c3": "2:ncpus=6:mpiprocs=2",
	} {
		r, err := parse("#!/bin/sh\n", nil, append(strings.Fields(line), "job.sh")...)
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if environment, _ := r.Job.Ad.Strings(roost.AttrEnvironment); len(environment) == 0 {
			t.Errorf("%q: no environment", line)
		}
		s := &submission{caller: qsub.QsubCaller{Now: now}}
		s.given, _, _ = (&getopt.Table{Options: Options()}).Parse(strings.Fields(line))
		s.given = dropConflicts(s.given)
		l, err := s.readLayout()
		if got := l.selectText(); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestOrder(t *testing.T) {
	script := "#!/bin/sh\n# text\n#SBATCH -J directive --time=5 # comment\n\n  # text\n#SBATCH --comment='a # b'\n" +
		"#SBATCHX\necho\n#SBATCH -J late\n"
	for _, c := range []struct {
		environ []string
		args    string
		name    string
	}{
		{nil, "job.sh", "directive"}, {[]string{"SBATCH_JOB_NAME=variable"}, "job.sh", "variable"},
		{[]string{"SBATCH_JOB_NAME=variable"}, "-J line job.sh a -b", "line"},
	} {
		r, err := parse(script, c.environ, strings.Fields(c.args)...)
		if err != nil || r.Job.Name != c.name {
			t.Errorf("%q, %q: %q, %v", c.environ, c.args, r.Job.Name, err)
		}
		if limit, _ := r.Job.Ad.Int(roost.AttrWalltime); limit != 300 {
			t.Errorf("walltime %d", limit)
		}
	}
}

func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--x job.sh":               "255 sbatch: unrecognized option '--x'",
		"missing.sh":               "1 sbatch: error: Unable to open file missing.sh",
		"-t soon job.sh":           "255 sbatch: error: Invalid --time specification",
		"-n 0 job.sh":              "1 sbatch: error: Invalid numeric value \"0\" for --ntasks.",
		"--mem=x job.sh":           "255 sbatch: error: Invalid --mem specification",
		"-a 5-1 job.sh":            "1 sbatch: error: Batch job submission failed: Invalid job array specification",
		"-d what:1 job.sh":         "1 sbatch: error: Batch job submission failed: Job dependency problem",
		"-q long job.sh":           "1 sbatch: error: Batch job submission failed: Invalid qos specification",
		"--gres=fpga:1 job.sh":     "1 sbatch: error: Invalid generic resource (gres)",
		"--uid=1 job.sh":           "1 sbatch: error: --uid is not supported",
		"-C a; job.sh":             "1 sbatch: error: Batch job submission failed: Invalid feature specification",
		"--wrap=true job.sh":       "1 sbatch: error: Script arguments not permitted with --wrap option",
		"--mail-type=NEVER job.sh": "255 sbatch: error: Invalid --mail-type specification",
	} {
		_, err := parse("#!/bin/sh\n", nil, strings.Fields(line)...)
		var f *Failure
		if !errors.As(err, &f) {
			t.Errorf("%q: %v", line, err)
			continue
		}
		status, text, _ := strings.Cut(want, " ")
		if (status == "255") != (f.Status == UsageStatus) || !strings.HasPrefix(f.Text, text) {
			t.Errorf("%q: %d %q, want %q", line, f.Status, f.Text, want)
		}
	}
	for script, want := range map[string]string{
		"": "Batch script is empty!", "echo\n": "This does not look like a batch script.",
		"#!/bin/sh\r\necho\r\n":    "Batch script contains DOS line breaks",
		"#!/bin/sh\n#SBATCH -t\n":  "sbatch: option requires an argument -- 't'",
		"#!/bin/sh\n#SBATCH foo\n": "Invalid directive found in batch script: foo",
	} {
		if _, err := parse(script, nil, "job.sh"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", script, err)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]time.Duration{"5": 5 * time.Minute, "1:30": 90 * time.Second,
		"0:300": 5 * time.Minute, "1:00:00": time.Hour, "2-0": 48 * time.Hour, "1-2:30": 26*time.Hour + 30*time.Minute,
		"1-2:3:4": 26*time.Hour + 3*time.Minute + 4*time.Second} {
		if got, unlimited, ok := ParseTime(text); got != want || unlimited || !ok {
			t.Errorf("%q: %v, %v, %v", text, got, unlimited, ok)
		}
	}
	for _, bad := range []string{"", "x", "1:2:3:4", "1-", "-1-1", "99999999999"} {
		if got, _, ok := ParseTime(bad); ok {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
	for text, want := range map[string]string{"now+2hours": "12:00", "now+90": "10:01", "16:00": "16:00",
		"noon":             "12:00",
		"2026-11-23T10:30": "10:30", "now+1h": "11:00"} {
		if at, ok := ParseBegin(text, now); !ok || at.Format("15:04") != want {
			t.Errorf("%q: %v, %v", text, at, ok)
		}
	}
}

func TestSignals(t *testing.T) {
	for text, want := range map[string]EndSignal{"USR1": {10, 60, false}, "B:SIGUSR2@30": {12, 30, true},
		"b:int@0": {2, 0, true}, "R:TERM": {15, 60, false}, "RB:9@65535": {9, 65535, true}} {
		if got, ok := ParseSignal(text); !ok || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, bad := range []string{"", "B:", "X:USR1", "USR1@", "USR1@-1", "USR1@65536", "0", "65", "NONE"} {
		if got, ok := ParseSignal(bad); ok {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("#!/bin/sh\n#SBATCH -a 1-3 -o %j\n", "-n 2")
	f.Fuzz(func(t *testing.T, script, line string) {
		_, err := parse(script, nil, append(strings.Fields(line), "job.sh")...)
		var failure *Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatal(err)
		}
	})
}
